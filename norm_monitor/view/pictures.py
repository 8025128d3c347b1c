"""Stills of a bag or a running graph with the faces blurred."""

import threading
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from norm_core.bags.reader import BagReader
from norm_core.decoding.picture_decoding import encode_jpeg
from norm_core.records.frame import Frame
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S
from norm_monitor.privacy.blur import PICTURES, FindFaces, Pixels, blur_faces, decode_pixels
from norm_monitor.senses.camera.picture import PictureFormatError
from norm_monitor.session_log.recording import Recording, make_bag_ref

SMALL_WIDTH_PX = 320
WIDTH_PX = 640
# In a still of this width, the search for faces takes a third of the time that it takes in a whole frame.
LIVE_WIDTH_PX = 320
# The number of stills in memory.
MAX_STILLS = 64
# The number of stored frames of a running graph: more than ten minutes at one a second.
MAX_FRAMES = 700
# A larger frame does not come from Tactful's camera node.
MAX_FRAME_BYTES = 200_000
_JPEG_QUALITY = 70  # of 100
# An older picture does not show the moment.
_MAX_AGE_NS = 2 * NS_PER_S
LIVE_REACH_NS = 5 * NS_PER_S
# For the first moment of a bag, a picture may come this much later.
_MAX_AHEAD_NS = NS_PER_S // 2


def camera_topic(bag: Path) -> str | None:
    """Return the topic to take pictures from: stored frames, then compressed images, then raw ones."""
    with BagReader(bag) as reader:
        for wanted in reversed(PICTURES):
            for topic in reader.topics:
                if topic.type_name == wanted and topic.message_count:
                    return topic.topic
    return None


def shrink_picture(decoded: Any, width_px: int = SMALL_WIDTH_PX) -> Pixels | None:
    """Decode a message to a small BGR image, or None where it holds none."""
    try:
        image = decode_pixels(decoded)
    except PictureFormatError:
        return None
    scale = min(1.0, width_px / image.shape[1])
    size = (max(2, round(image.shape[1] * scale) // 2 * 2), max(2, round(image.shape[0] * scale) // 2 * 2))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


class StillCache:
    """Pictures as JPEG by their stamps. If `find` is None, whole pictures are blurred."""

    def __init__(self, find: FindFaces | None, *, shows_faces: bool = False, width_px: int = WIDTH_PX) -> None:
        self._find = find
        self._shows_faces = shows_faces
        self._width_px = width_px
        self._stills: OrderedDict[int, bytes | None] = OrderedDict()

    def jpeg(self, stamp_ns: int, decode: Callable[[], Any]) -> bytes | None:
        """Return the still of a stamp. `decode` returns its message, if the still is not in memory."""
        if stamp_ns not in self._stills:
            self._stills[stamp_ns] = self._make(decode())
            if len(self._stills) > MAX_STILLS:
                self._stills.popitem(last=False)
        return self._stills[stamp_ns]

    def _make(self, message: Any) -> bytes | None:
        try:
            image = shrink_picture(message, self._width_px)
            if image is not None and not self._shows_faces:
                image = blur_faces(image, self._find(image) if self._find else None)
        except cv2.error:  # such as a picture of no bytes
            return None
        return None if image is None else encode_jpeg(image, _JPEG_QUALITY)


class BagStills:
    """The camera's pictures of a bag."""

    def __init__(self, bag: Path, find: FindFaces | None, *, shows_faces: bool = False) -> None:
        """Choose the camera. The bag is opened for each still, so that threads share no reader."""
        self.topic = camera_topic(bag)
        self._bag, self._cache = bag, StillCache(find, shows_faces=shows_faces)
        self._lock = threading.Lock()

    def at(self, stamp_ns: int) -> bytes | None:
        """Return the last picture up to a time, or else the next, as JPEG; None if neither is near."""
        if self.topic is None:
            return None
        with self._lock, BagReader(self._bag) as reader:
            before = deque(reader.messages([self.topic], stamp_ns - _MAX_AGE_NS, stamp_ns + 1), maxlen=1)
            after = reader.messages([self.topic], stamp_ns + 1, stamp_ns + _MAX_AHEAD_NS)
            latest = before[0] if before else next(after, None)
            return None if latest is None else self._cache.jpeg(latest.stamp_ns, lambda: reader.decode(latest))


class LiveStills:
    """The frames of the last ten minutes of a running graph. Any thread may add or look."""

    def __init__(self, find: FindFaces | None, *, shows_faces: bool = False) -> None:
        # In the order of their times, each with its arrival: on a busy machine, long after its time.
        self._frames: deque[tuple[int, int, Frame]] = deque(maxlen=MAX_FRAMES)
        self._cache = StillCache(find, shows_faces=shows_faces, width_px=LIVE_WIDTH_PX)
        self._adding, self._looking = threading.Lock(), threading.Lock()

    def take(self, frame: Frame, stamp_ns: int, arrival_ns: int = 0) -> None:
        """Add a frame with its time on the viewer's clock; where stamps jump back, its arrival counts."""
        with self._adding:
            if self._frames and self._frames[-1][0] >= stamp_ns:
                stamp_ns = max(arrival_ns, self._frames[-1][0] + 1)
            if len(frame.tile_jpeg) <= MAX_FRAME_BYTES:
                self._frames.append((stamp_ns, arrival_ns, frame))

    def at(self, stamp_ns: int) -> bytes | None:
        """Return the last picture up to a time as JPEG; None if it is not near."""
        with self._adding:
            index = bisect_right(self._frames, stamp_ns, key=lambda entry: entry[0])
            latest = self._frames[index - 1] if index else None
        if latest is None or stamp_ns - max(latest[:2]) > LIVE_REACH_NS:
            return None
        with self._looking:
            return self._cache.jpeg(latest[0], lambda: latest[2])


class OtherBagError(TactfulError, ValueError):
    """A bag is not the one of a log. The message gives the remedy."""


def check_bag(recording: Recording, bag: Path) -> None:
    """Raise OtherBagError unless the log names this bag: consent covers no other images."""
    named = recording.info.bag
    if named is None:
        raise OtherBagError(
            f"{recording.source}: does not say which bag it is of; name it first: {PROGRAM} study add LOG BAG"
        )
    if make_bag_ref(bag, 0).sha256 != named.sha256:
        raise OtherBagError(
            f"{bag}: is not the bag that {recording.source} is of, which is {named.name}, sha256 {named.sha256[:16]}; "
            f"give that one, or name another that holds the same session: {PROGRAM} study add LOG BAG"
        )
