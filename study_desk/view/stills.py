"""Stills of a bag's camera, read where the viewer looks, with the faces blurred."""

import threading
from collections import OrderedDict, deque
from pathlib import Path

from norm_core.bags.reader import BagMessage, BagReader
from norm_core.runtime.time import NS_PER_S
from study_desk.privacy.blur import FindFaces, blur_faces, encode_jpeg
from study_desk.report.pictures import camera_topic, small_pixels

WIDTH_PX = 640
MOST_STILLS = 64  # in memory
_REACH_NS = 2 * NS_PER_S  # an older picture is no picture of the moment
_AHEAD_NS = NS_PER_S // 2  # for the first moment of a bag


class BagStills:
    """The camera's pictures of a bag as JPEG. If `find` is None, whole pictures are blurred."""

    def __init__(self, bag: Path, find: FindFaces | None, *, shows_faces: bool = False) -> None:
        """Choose the camera. The bag is opened for each still, so that threads share no reader."""
        self.topic = camera_topic(bag)
        self._bag, self._find, self._shows_faces = bag, find, shows_faces
        self._stills: OrderedDict[int, bytes | None] = OrderedDict()  # by stamp
        self._lock = threading.Lock()

    def at(self, stamp_ns: int) -> bytes | None:
        """Return the last picture up to a time, or else the next, as JPEG; None if neither is near."""
        if self.topic is None:
            return None
        with self._lock, BagReader(self._bag) as reader:
            before = deque(reader.messages([self.topic], stamp_ns - _REACH_NS, stamp_ns + 1), maxlen=1)
            after = reader.messages([self.topic], stamp_ns + 1, stamp_ns + _AHEAD_NS)
            latest = before[0] if before else next(after, None)
            if latest is None:
                return None
            if latest.stamp_ns not in self._stills:
                self._stills[latest.stamp_ns] = self._jpeg(reader, latest)
                if len(self._stills) > MOST_STILLS:
                    self._stills.popitem(last=False)
            return self._stills[latest.stamp_ns]

    def _jpeg(self, reader: BagReader, message: BagMessage) -> bytes | None:
        image = small_pixels(reader.decode(message), WIDTH_PX)
        if image is None:
            return None
        if not self._shows_faces:
            image = blur_faces(image, self._find(image) if self._find else None)
        return encode_jpeg(image)
