"""Read a clip's images with their times from its start, from a JPEG folder or a video file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import av
import cv2

from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, s_to_ns
from sim_replays.items.target import SuiteError

FRAMES, VIDEOS = "frames", "videos"
VIDEO_SUFFIXES = (".mp4", ".mkv", ".webm", ".avi", ".mov")
_QUALITY = 95


@record
class Shot:
    """One image and its time. In a video file, it is the first image at or after `at_s`."""

    path: Path
    offset_ns: int
    at_s: float | None = None


def one_a_second(paths: Sequence[Path]) -> tuple[Shot, ...]:
    """List images taken one second apart."""
    return tuple(Shot(path=path, offset_ns=second * NS_PER_S) for second, path in enumerate(paths))


def shots(folder: Path, name: str, *, duration_s: float | None, most: int) -> tuple[Shot, ...]:
    """List a clip's images: `most` evenly spaced ones if given, otherwise one per second.

    They lie in folder/frames/NAME/*.jpg, evenly spread over the clip, or in a video folder/videos/NAME.mp4.
    """
    pictures = sorted((folder / FRAMES / name).glob("*.jpg"))
    video = next((path for suffix in VIDEO_SUFFIXES if (path := folder / VIDEOS / f"{name}{suffix}").is_file()), None)
    if not pictures and video is None:
        raise SuiteError(
            f"{folder}: has no pictures of {name}: put frames/{name}/*.jpg or videos/{name}.mp4 there, or choose a "
            "setting without pictures, as text"
        )
    length_s = duration_s or (float(len(pictures)) if pictures else video_length_s(video))
    times_s = [length_s * place / most for place in range(most)] if most else list(range(max(1, round(length_s))))
    if not pictures:
        assert video
        return tuple(Shot(path=video, offset_ns=s_to_ns(at_s), at_s=at_s) for at_s in times_s)
    every_s = length_s / len(pictures)
    places = dict.fromkeys(min(len(pictures) - 1, round(at_s / every_s)) for at_s in times_s)
    return tuple(Shot(path=pictures[place], offset_ns=s_to_ns(place * every_s)) for place in places)


def jpegs(wanted: Sequence[Shot]) -> Iterator[tuple[Shot, bytes]]:
    """Yield each shot with its JPEG, in the given order. Shots of one video must be in order of time."""
    waiting = list(wanted)
    while waiting:
        shot = waiting[0]
        if shot.at_s is None:
            yield shot, shot.path.read_bytes()
            waiting.pop(0)
            continue
        of_video = [later for later in waiting if later.path == shot.path]
        yield from zip(of_video, _decoded(shot.path, [later.at_s or 0.0 for later in of_video]), strict=True)
        waiting = [later for later in waiting if later.path != shot.path]


def _decoded(path: Path, times_s: Sequence[float]) -> Iterator[bytes]:
    """Yield the first image at or after each time, or the last image of a shorter video."""
    try:
        with av.open(str(path)) as container:
            left, last = list(times_s), None
            for frame in container.decode(video=0):
                last = frame
                while left and frame.time is not None and frame.time >= left[0] - 1e-6:
                    left.pop(0)
                    yield _jpeg(frame)
                if not left:
                    return
            if last is None:
                raise SuiteError(f"{path}: holds no picture")
            for _ in left:
                yield _jpeg(last)
    except (av.error.FFmpegError, OSError, IndexError) as error:
        raise SuiteError(f"{path}: cannot be read as a video: {error}") from error


def _jpeg(frame: av.VideoFrame) -> bytes:
    encoded, jpeg = cv2.imencode(".jpg", frame.to_ndarray(format="bgr24"), (cv2.IMWRITE_JPEG_QUALITY, _QUALITY))
    if not encoded:
        raise SuiteError("the image library could not encode a JPEG")
    return bytes(jpeg.tobytes())


def video_length_s(path: Path | None) -> float:
    """Return how long a video is. Raises SuiteError where it cannot be read."""
    try:
        with av.open(str(path)) as container:
            return (container.duration or 0) / av.time_base
    except (av.error.FFmpegError, OSError) as error:
        raise SuiteError(f"{path}: cannot be read as a video: {error}") from error


def pictures_folder(pictures: str, data: Path, names: tuple[str, ...]) -> Path:
    """Find the folder of images: as configured, otherwise one with a usual name beside the data."""
    if pictures:
        return Path(pictures)
    beside = data if data.is_dir() else data.parent
    folder = next((beside / name for name in names if (beside / name).is_dir()), None)
    if folder is None:
        wanted = " or ".join(str(beside / name) for name in names)
        raise SuiteError(f"there are no pictures in {wanted}: name their folder with --pictures")
    return folder
