"""The images of a clip with their times, from a folder of JPEGs or a video file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import av

from norm_core.decoding.picture_decoding import encode_jpeg
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, s_to_ns
from sim_replays.items.target import SuiteError

# Folders beside the data.
FRAMES = "frames"
VIDEOS = "videos"

VIDEO_SUFFIXES = (".mp4", ".mkv", ".webm", ".avi", ".mov")
_JPEG_QUALITY = 95  # of 100
_TIME_TOLERANCE_S = 1e-6  # A container rounds the times of its frames.


@record
class Shot:
    """One image and its time in the clip. In a video file, it is the first image at or after `at_s`."""

    path: Path
    offset_ns: int
    at_s: float | None = None


def list_shots_by_second(paths: Sequence[Path]) -> tuple[Shot, ...]:
    """List images taken one second apart."""
    return tuple(Shot(path=path, offset_ns=second * NS_PER_S) for second, path in enumerate(paths))


def list_shots(folder: Path, name: str, *, duration_s: float | None, max_count: int) -> tuple[Shot, ...]:
    """List `max_count` evenly spaced images of a clip, or one a second if it is 0.

    They lie in folder/frames/NAME/*.jpg, evenly spread over the clip, or in a video folder/videos/NAME.mp4.
    """
    pictures = sorted((folder / FRAMES / name).glob("*.jpg"))
    video = next((path for suffix in VIDEO_SUFFIXES if (path := folder / VIDEOS / f"{name}{suffix}").is_file()), None)
    if not pictures and video is None:
        raise SuiteError(
            f"{folder}: has no pictures of {name}: put frames/{name}/*.jpg or videos/{name}.mp4 there, or choose a "
            "setting without pictures, as text"
        )
    length_s = duration_s or (float(len(pictures)) if pictures else _measure_video_s(video))
    if max_count:
        times_s = [length_s * index / max_count for index in range(max_count)]
    else:
        times_s = [float(second) for second in range(max(1, round(length_s)))]
    if not pictures:
        assert video
        return tuple(Shot(path=video, offset_ns=s_to_ns(at_s), at_s=at_s) for at_s in times_s)
    period_s = length_s / len(pictures)
    indices = dict.fromkeys(min(len(pictures) - 1, round(at_s / period_s)) for at_s in times_s)
    return tuple(Shot(path=pictures[index], offset_ns=s_to_ns(index * period_s)) for index in indices)


def read_jpegs(shots: Sequence[Shot]) -> Iterator[tuple[Shot, bytes]]:
    """Yield each shot with its JPEG, in the same order. Shots of one video must be in order of time."""
    waiting = list(shots)
    while waiting:
        shot = waiting[0]
        if shot.at_s is None:
            yield shot, shot.path.read_bytes()
            waiting.pop(0)
            continue
        video_shots = [other for other in waiting if other.path == shot.path]
        times_s = [other.at_s or 0.0 for other in video_shots]
        yield from zip(video_shots, _decode_video(shot.path, times_s), strict=True)
        waiting = [other for other in waiting if other.path != shot.path]


def _decode_video(path: Path, times_s: Sequence[float]) -> Iterator[bytes]:
    """Yield the first image at or after each time, or the last image of a shorter video."""
    try:
        with av.open(str(path)) as container:
            due_s = list(times_s)
            last_frame = None
            for frame in container.decode(video=0):
                last_frame = frame
                while due_s and frame.time is not None and frame.time >= due_s[0] - _TIME_TOLERANCE_S:
                    due_s.pop(0)
                    yield encode_jpeg(frame.to_ndarray(format="bgr24"), _JPEG_QUALITY)
                if not due_s:
                    return
            if last_frame is None:
                raise SuiteError(f"{path}: holds no picture; convert or fetch the video again")
            for _ in due_s:
                yield encode_jpeg(last_frame.to_ndarray(format="bgr24"), _JPEG_QUALITY)
    except (av.error.FFmpegError, OSError, IndexError) as error:
        raise SuiteError(f"{path}: cannot be read as a video: {error}; convert or fetch it again") from error


def _measure_video_s(path: Path | None) -> float:
    """Return the length of a video."""
    try:
        with av.open(str(path)) as container:
            return (container.duration or 0) / av.time_base
    except (av.error.FFmpegError, OSError) as error:
        raise SuiteError(f"{path}: cannot be read as a video: {error}; convert or fetch it again") from error


def find_pictures_folder(pictures: str, data: Path, names: tuple[str, ...]) -> Path:
    """Return the configured folder of images, or else the folder beside the data with one of these names."""
    if pictures:
        return Path(pictures)
    beside = data if data.is_dir() else data.parent
    folder = next((beside / name for name in names if (beside / name).is_dir()), None)
    if folder is None:
        wanted = " or ".join(str(beside / name) for name in names)
        raise SuiteError(f"there are no pictures in {wanted}; name their folder with -T pictures=FOLDER")
    return folder
