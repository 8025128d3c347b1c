"""Make a video with sound from a bag, for coders. Each picture and each sample is at the time of its stamp."""

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np

from norm_core.bags.reader import BagError, BagMessage, BagReader
from norm_core.files.atomic_file import private_path
from norm_core.records.frame import Frame
from norm_core.records.messages import MessageError
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_MS, NS_PER_S, ns_to_s
from norm_core.runtime.wording import count_of
from norm_monitor.privacy.blur import PICTURES, FindFaces, NoFacePolicy, PictureBlurring, Pixels, decode_pixels
from norm_monitor.privacy.sound import find_sound_formats
from norm_monitor.senses.camera.picture import PictureFormatError, make_picture
from norm_monitor.senses.microphone.audio_message import SoundChunk, decode
from norm_monitor.senses.microphone.pcm import PcmFormat, Resampler, Samples, SoundError

FPS = 60
RATE_HZ = 48_000
_FRAME_NS = NS_PER_S // FPS
# The samples that are encoded at a time.
_BLOCK_SAMPLES = 1024
# A stamp this close to the end of the samples before it continues them.
_MAX_JITTER_NS = 10 * NS_PER_MS
# A stamp farther from the time of recording is of another clock, and the time of recording counts.
_MAX_DELAY_NS = 10 * NS_PER_S
# A picture stays until the next one, but for this time at most: then the video is black.
_MAX_HOLD_NS = 5 * NS_PER_S
# How far messages may come out of the order of their stamps.
_MAX_DISORDER_NS = NS_PER_S // 2


@record
class VideoOptions:
    """The settings of a video. Sound is audible only within the spans in `audible_ns`; None: everywhere."""

    camera: str = ""  # topic; empty: the one with most pictures
    microphone: str = ""  # topic; empty: the one with most sound
    has_sound: bool = True
    audible_ns: tuple[tuple[int, int], ...] | None = ()
    shows_faces: bool = False
    no_face: NoFacePolicy = NoFacePolicy.BLUR
    start_ns: int | None = None  # None: the start of the bag


@record
class VideoReport:
    """The contents of a video, with counts of messages that are unusable or have stamps of another clock."""

    made: str
    length_s: float
    camera: str
    microphone: str
    pictures: int
    sounds: int
    unreadable: int
    stamped_otherwise: int
    assumes_format: bool

    @property
    def remarks(self) -> list[str]:
        """Describe what the video lacks."""
        texts = []
        if not (self.pictures and self.sounds):
            texts.append("the video has no pictures" if self.sounds else "the video has no sound")
        if self.unreadable:
            texts.append(f"{count_of(self.unreadable, 'message')} left out, as they cannot be read")
        if self.stamped_otherwise:
            texts.append(
                f"{count_of(self.stamped_otherwise, 'message')} placed by the time of recording, as their stamps are "
                "of another clock; picture and sound may be out of step"
            )
        if self.assumes_format and self.sounds:
            texts.append(
                f"{self.microphone} may not state its format, so 16 kHz, mono, 16 bit is assumed: if it sounds wrong, "
                "record the AudioInfo of the driver too"
            )
        return texts


def write_video(
    bag: Path,
    made: Path,
    options: VideoOptions,
    find: FindFaces | None = None,
    progress: Callable[[int, int], None] = lambda done, whole: None,
) -> VideoReport:
    """Write an MP4 of H.264 and AAC, with a constant rate of frames. Without `find`, whole pictures are blurred.

    Raises BagError for a bag without pictures and sound.
    """
    with BagReader(bag) as reader, private_path(made) as part:
        video = _VideoMaker(reader, options, find)
        video.find_faces(progress)
        with av.open(str(part), "w", format="mp4", options={"movflags": "faststart"}) as container:
            video.encode(container, progress)
        return video.report(made)


class _VideoMaker:
    """The state of one bag's two passes: the first finds faces, the second encodes."""

    def __init__(self, reader: BagReader, options: VideoOptions, find: FindFaces | None) -> None:
        self._reader, self._options = reader, options
        formats = find_sound_formats(reader)
        self._camera = self._choose_topic(options.camera, [t.topic for t in reader.topics if t.type_name in PICTURES])
        self._microphone = self._choose_topic(options.microphone, list(formats)) if options.has_sound else ""
        if not (self._camera or self._microphone):
            raise BagError("the bag has neither pictures nor sound for a video; name another bag")
        first_ns, self._end_ns = reader.bounds_ns or (0, 0)
        self._start_ns = first_ns if options.start_ns is None else options.start_ns
        self._stated = formats.get(self._microphone) or PcmFormat()
        self._assumes_format = bool(self._microphone) and formats[self._microphone] is None
        self._faces = PictureBlurring(find, options.no_face)
        self._size: tuple[int, int] | None = None
        self._counts = dict.fromkeys(("pictures", "sounds", "unreadable", "stamped_otherwise"), 0)

    def find_faces(self, progress: Callable[[int, int], None]) -> None:
        """First pass: find the size of pictures, and the faces unless they are shown."""
        for count, message in enumerate(self._read_messages(self._camera), 1):
            pixels = self._read_pixels(message)
            if pixels is not None and self._size is None:
                self._size = (pixels.shape[1] // 2 * 2, pixels.shape[0] // 2 * 2)  # H.264 halves the colours
            if self._options.shows_faces and self._size:
                return
            self._faces.collect_pixels(pixels, message.stamp_ns)
            progress(count, 2 * self._reader.message_count)

    def encode(self, container: Any, progress: Callable[[int, int], None]) -> None:
        """Second pass: encode pictures and sound in the order of their stamps."""
        pictures = _PictureTrack(container, self._size) if self._size else None
        sound = _SoundTrack(container, self._start_ns, self._options.audible_ns) if self._microphone else None
        for at_ns, item in self._read_in_order(progress):
            if isinstance(item, SoundChunk):
                if sound:
                    sound.add(item, at_ns)
            elif pictures:
                pictures.add(item, at_ns - self._start_ns)
        if pictures:
            pictures.close(self._end_ns - self._start_ns)
        if sound:
            sound.close()

    def _read_in_order(self, progress: Callable[[int, int], None]) -> Iterator[tuple[int, Pixels | SoundChunk]]:
        """Yield pictures and sound in the order of their stamps."""
        waiting: list[tuple[int, int, Pixels | SoundChunk]] = []
        total = self._reader.message_count
        topics = [topic for topic in (self._camera, self._microphone) if topic]
        for count, message in enumerate(self._read_messages(*topics), 1):
            piece = self._read_picture(message) if message.topic == self._camera else self._read_sound(message)
            if piece:
                heappush(waiting, (piece[0], count, piece[1]))
            while waiting and waiting[0][0] < message.stamp_ns - _MAX_DISORDER_NS:
                yield waiting[0][0], heappop(waiting)[2]
            progress(total + count, 2 * total)
        while waiting:
            yield waiting[0][0], heappop(waiting)[2]

    def report(self, made: Path) -> VideoReport:
        return VideoReport(
            made=str(made),
            length_s=ns_to_s(self._end_ns - self._start_ns),
            camera=self._camera,
            microphone=self._microphone,
            assumes_format=self._assumes_format,
            **self._counts,
        )

    def _read_picture(self, message: BagMessage) -> tuple[int, Pixels] | None:
        try:
            decoded = self._reader.decode(message)
            pixels = decode_pixels(decoded)
        except (BagError, MessageError, PictureFormatError):
            self._faces.skip()
            self._counts["unreadable"] += 1
            return None
        shown = pixels if self._options.shows_faces else self._faces.blur(pixels)
        if shown is None:
            return None
        self._counts["pictures"] += 1
        stamp_ns = decoded.stamp_ns if isinstance(decoded, Frame) else make_picture(decoded).stamp_ns
        return self._choose_time(stamp_ns, message.stamp_ns), shown

    def _read_sound(self, message: BagMessage) -> tuple[int, SoundChunk] | None:
        try:
            chunk = decode(self._reader.decode(message), self._stated)
        except (BagError, MessageError, SoundError):
            self._counts["unreadable"] += 1
            return None
        self._counts["sounds"] += 1
        arrived_ns = message.stamp_ns - len(chunk.samples) * NS_PER_S // chunk.rate_hz
        return arrived_ns if chunk.stamp_ns is None else self._choose_time(chunk.stamp_ns, arrived_ns), chunk

    def _choose_time(self, stamp_ns: int, recorded_ns: int) -> int:
        """Return the stamp, or the time of recording if the stamp is of another clock."""
        if abs(stamp_ns - recorded_ns) <= _MAX_DELAY_NS:
            return stamp_ns
        self._counts["stamped_otherwise"] += 1
        return recorded_ns

    def _read_pixels(self, message: BagMessage) -> Pixels | None:
        try:
            return decode_pixels(self._reader.decode(message))
        except (BagError, MessageError, PictureFormatError):
            return None

    def _read_messages(self, *topics: str) -> Iterable[BagMessage]:
        return self._reader.messages(topics) if all(topics) else ()

    def _choose_topic(self, name: str, candidates: list[str]) -> str:
        """Return the topic of this name, or else the one with most messages. Raises BagError for one without any."""
        counts = {t.topic: t.message_count for t in self._reader.topics if t.topic in candidates and t.message_count}
        if name and name not in counts:
            raise BagError(f"{name}: holds nothing for a video; name one of {', '.join(counts) or 'another bag'}")
        return name or max(counts, key=lambda topic: counts[topic], default="")


class _PictureTrack:
    """Pictures as frames at a constant rate, in which every player can seek. Each is at most half a frame off."""

    def __init__(self, container: Any, size: tuple[int, int]) -> None:
        self._container, self._size = container, size
        # Without frames that refer to later ones, a player that ignores edit lists shows no frame late.
        options = {"preset": "veryfast", "crf": "23", "bf": "0", "g": str(FPS // 2)}
        self._stream = container.add_stream("libx264", rate=FPS, options=options)
        self._stream.width, self._stream.height, self._stream.pix_fmt = *size, "yuv420p"
        self._black = av.VideoFrame.from_ndarray(np.zeros((size[1], size[0], 3), np.uint8), format="bgr24")
        self._frame, self._hold_until_index = self._black, 0
        self._next_index, self._latest_index = 0, -1

    def add(self, pixels: Pixels, at_ns: int) -> None:
        index = (at_ns + _FRAME_NS // 2) // _FRAME_NS
        # Two pictures within one frame have one each, so that none is lost to jitter.
        self._latest_index = index + 1 if index == self._latest_index else max(index, self._latest_index)
        self._fill(self._latest_index)
        fitted = pixels if pixels.shape[1::-1] == self._size else cv2.resize(pixels, self._size)
        self._frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(fitted, np.uint8), format="bgr24")
        self._hold_until_index = self._latest_index + _MAX_HOLD_NS // _FRAME_NS

    def close(self, end_ns: int) -> None:
        self._fill(max(self._next_index + 1, end_ns // _FRAME_NS))
        self._container.mux(self._stream.encode(None))

    def _fill(self, index: int) -> None:
        """Repeat the current picture up to a frame, but black once it is too old."""
        for frame_index in range(self._next_index, index):
            frame = self._frame if frame_index < self._hold_until_index else self._black
            frame.pts = frame_index
            self._container.mux(self._stream.encode(frame))
        self._next_index = max(self._next_index, index)


class _SoundTrack:
    """Samples without a gap: silence where nothing was recorded, and where nobody may be heard."""

    def __init__(self, container: Any, start_ns: int, audible_ns: tuple[tuple[int, int], ...] | None) -> None:
        self._container = container
        self._stream = container.add_stream("aac", rate=RATE_HZ, layout="mono")
        self._start_ns, self._audible_ns = start_ns, audible_ns
        self._origin_ns = start_ns
        self._resampler: Resampler | None = None
        self._rate_hz = self._received = self._sample_count = 0

    def add(self, chunk: SoundChunk, stamp_ns: int) -> None:
        if self._resampler is None or chunk.rate_hz != self._rate_hz:
            self._begin(chunk.rate_hz)
        samples = np.ascontiguousarray(chunk.samples.mean(axis=1), np.float32)
        ahead_ns = stamp_ns - self._origin_ns - self._received * NS_PER_S // self._rate_hz
        if ahead_ns > _MAX_JITTER_NS:
            for left in range(ahead_ns * self._rate_hz // NS_PER_S, 0, -self._rate_hz):
                self._add_samples(np.zeros(min(left, self._rate_hz), np.float32))
        elif ahead_ns < -_MAX_JITTER_NS:
            samples = samples[-ahead_ns * self._rate_hz // NS_PER_S :]
        self._add_samples(samples)

    def close(self) -> None:
        self._begin(RATE_HZ)
        self._container.mux(self._stream.encode(None))

    def _begin(self, rate_hz: int) -> None:
        if self._resampler:
            self._encode(self._resampler.flush())
        self._origin_ns = self._start_ns + self._sample_count * NS_PER_S // RATE_HZ
        self._resampler, self._rate_hz, self._received = Resampler(rate_hz, RATE_HZ, _BLOCK_SAMPLES), rate_hz, 0

    def _add_samples(self, samples: Samples) -> None:
        assert self._resampler
        self._received += len(samples)
        self._encode(self._resampler.feed(samples))

    def _encode(self, blocks: Iterable[Samples]) -> None:
        for block in blocks:
            audible = block * self._make_mask(len(block))
            frame = av.AudioFrame.from_ndarray(audible.astype(np.float32).reshape(1, -1), format="fltp", layout="mono")
            frame.sample_rate, frame.pts = RATE_HZ, self._sample_count
            self._sample_count += len(block)
            self._container.mux(self._stream.encode(frame))

    def _make_mask(self, length: int) -> Samples:
        """Return 1 for each sample that may be heard, and 0 for the others."""
        if self._audible_ns is None:
            return np.ones(length, np.float32)
        mask = np.zeros(length, np.float32)
        for span in self._audible_ns:
            begin, end = ((ns - self._start_ns) * RATE_HZ // NS_PER_S - self._sample_count for ns in span)
            mask[max(0, begin) : max(0, end)] = 1
        return mask
