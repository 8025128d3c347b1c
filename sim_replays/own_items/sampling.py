"""Sample moments before somebody acts from bags, sessions, videos and pictures, where two or more people are seen."""

import heapq
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from norm_core.bags.reader import BagError, BagReader
from norm_core.bags.storage import is_bag
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.senses.camera.picture import PictureFormatError
from sim_replays.own_items.item_run import PICTURES, REFUSED, Drop, ItemError, ItemRun, PhaseCount, Scene, Source
from sim_replays.runs.items.clip import VIDEO_SUFFIXES, Shot, jpegs, video_length_s
from study_desk.privacy.blur import FindFaces, Pixels, encode_jpeg
from study_desk.privacy.contact_sheet import CERTAIN
from study_desk.privacy.picture_blurring import NEIGHBOURS_NS, PictureBlurring, pixels_of
from study_desk.privacy.topic_treatments import NoFacePolicy
from study_desk.report.clips import reason_against_clips
from study_desk.report.pictures import camera_topic
from study_desk.study.study_folder import Study, is_study

PICTURE_SUFFIXES = (".jpg", ".jpeg", ".png")
MIN_PEOPLE, MAX_OF_SOURCE = 2, 3
CLIP_FRAMES, MIN_GAP_S, MAX_SIDE_PX = 5, 10.0, 1024
DETECTED_PX = 448  # in which people are counted; blurring searches the whole picture
_ALIKE = 4.0  # mean difference of two thumbnails, of 255, below which they show the same
_THUMB, _QUALITY, _SHEET_PX = (32, 18), 90, 320


@dataclass(order=True)
class _Moment:
    """A moment by how much more moves after it than before."""

    rise: float
    at_s: float
    faces: int = field(compare=False)
    thumb: Any = field(compare=False)
    jpegs: tuple[bytes, ...] = field(compare=False)  # for a clip, the last one is of after the moment


def find_sources(paths: Sequence[Path], licence: str, consent: str, *, is_hsri: bool = False) -> list[Source]:
    """List the bags, sessions, videos and pictures in paths. Raises ItemError where there are none."""
    found: dict[str, tuple[Path, str]] = {}
    for path in paths:
        if not path.exists():
            raise ItemError(f"{path}: there is no such file or folder; check the path")
        if is_study(path):
            found |= _sessions(Study(path), is_hsri)
            continue
        inner = [] if is_hsri else [path] if path.is_file() or is_bag(path) else sorted(path.iterdir())
        for each in inner:
            if is_bag(each) or each.suffix.lower() in (*VIDEO_SUFFIXES, *PICTURE_SUFFIXES):
                name = re.sub(r"[^\w.-]+", "-", each.stem)
                found[name if name not in found else f"{name}-{len(found)}"] = each, consent.strip()
    if not found:
        wanted = "a study with coded sessions" if is_hsri else "bags, a study or a folder of videos or pictures"
        raise ItemError(f"{', '.join(map(str, paths))}: holds no recording; name {wanted}")
    if not licence.strip() or not all(given for _, given in found.values()):
        raise ItemError("--licence, --consent: say under which licence and by whose consent the recordings are used")
    return [Source(name=n, path=str(p.resolve()), licence=licence, consent=given) for n, (p, given) in found.items()]


def _sessions(study: Study, is_hsri: bool) -> Iterator[tuple[str, tuple[Path, str]]]:
    """Yield the sessions with what their participants consent to: clips of a bag, or else their words."""
    for name, log in study.logs():
        recording, bag = study.recording_of(name), study.file.sessions[name].bag
        if is_hsri:
            silent = [each.pseudonym for each in recording.info.participants if not each.transcript]
            reason = f"{', '.join(silent)} did not consent to a transcript" if silent else ""
            yield name, (log, REFUSED + reason if reason else "words, by every participant")
        elif bag:
            reason = reason_against_clips(recording)
            yield name, (study.folder / bag, REFUSED + reason if reason else "clips, by every participant")


def sample(
    run: ItemRun, find: FindFaces, progress: Callable[[str], None], *, max_of_source: int = MAX_OF_SOURCE
) -> PhaseCount:
    """Sample each source: clips for EgoNormia, single pictures for EgoGapBench. Writes a contact sheet."""
    kept: list[Scene] = []
    drops: list[Drop] = []
    thumbs: list[Any] = []
    for source in run.file.sources:
        progress(source.name)
        if source.consent.startswith(REFUSED):
            drops.append(Drop(id=source.name, why="no consent", detail=source.consent.removeprefix(REFUSED)))
            continue
        try:
            moments, reason = _moments(source, run.file.suite == "egonormia", find, max_of_source)
        except (TactfulError, OSError, cv2.error) as error:
            drops.append(Drop(id=source.name, why="cannot be read", detail=str(error)))
            continue
        if reason:
            drops.append(Drop(id=source.name, why=reason))
        for number, moment in enumerate(moments):
            name = f"{source.name}-m_{number}"  # whose source a suite reads from it
            if any(_is_alike(moment.thumb, thumb) for thumb in thumbs):
                drops.append(Drop(id=name, why="shows what another shows"))
                continue
            thumbs.append(moment.thumb)
            names = [f"{PICTURES}/{name}/{place:03}.jpg" for place in range(len(moment.jpegs))]
            for path, jpeg in zip(names, _blurred(moment.jpegs, find, run.file.faces == "blurred"), strict=True):
                run.write(path, jpeg)
            seen, after = (tuple(names[:-1]), names[-1]) if len(names) > 1 else (tuple(names), "")
            kept.append(
                Scene(id=name, source=source.name, at_s=moment.at_s, faces=moment.faces, pictures=seen, after=after)
            )
    if kept:
        run.write("contact_sheet.png", _contact_sheet(run, kept))
    return run.finish("sample", kept, drops)


def _is_alike(thumb: Any, other: Any) -> bool:
    return bool(np.abs(thumb - other).mean() < _ALIKE)


def _moments(source: Source, needs_clip: bool, find: FindFaces, most: int) -> tuple[list[_Moment], str]:
    """Return the moments of a source in order of time, and why there is none."""
    best: list[_Moment] = []
    recent: deque[tuple[float, Pixels, Any, float]] = deque(maxlen=CLIP_FRAMES)
    count = crowded = 0
    path = Path(source.path)
    for at_s, pixels in chain(_frames(path), [(0.0, None)]):
        thumb = None if pixels is None else cv2.resize(cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY), _THUMB).astype(float)
        moved = float(np.abs(thumb - recent[-1][2]).mean()) if recent and thumb is not None else 0.0
        is_picture = path.suffix.lower() in PICTURE_SUFFIXES
        if recent and (thumb is not None or is_picture):  # a moment is followed by what is done in it
            before_s, shown, before, moved_before = recent[-1]
            people = sum(face.confidence >= CERTAIN for face in find(_small(shown, DETECTED_PX)))
            crowded += people >= MIN_PEOPLE
            if people >= MIN_PEOPLE and not (needs_clip and len(recent) < 2):
                clip = [*(each for _, each, _, _ in recent), pixels] if needs_clip and pixels is not None else [shown]
                jpeg = tuple(encode_jpeg(each, _QUALITY) for each in clip)
                moment = _Moment(rise=moved - moved_before, at_s=before_s, faces=people, thumb=before, jpegs=jpeg)
                near = [m for m in best if abs(m.at_s - before_s) < MIN_GAP_S or _is_alike(m.thumb, before)]
                if all(other < moment for other in near):
                    best = heapq.nlargest(most, [*(other for other in best if other not in near), moment])
        if pixels is not None:
            count += 1
            recent.append((at_s, pixels, thumb, moved))
    reason = "no picture" if not count else "" if best else "fewer than two people seen" if count > 1 else "one frame"
    if count == 1 and path.suffix.lower() in PICTURE_SUFFIXES and not best:
        reason = "one frame, and a clip is needed" if needs_clip and crowded else "fewer than two people seen"
    return sorted(best, key=lambda moment: moment.at_s), reason


def _frames(path: Path) -> Iterator[tuple[float, Pixels]]:
    """Yield one picture a second with its time, at most `MAX_SIDE_PX` wide."""
    if is_bag(path):
        yield from _bag_frames(path)
        return
    shots = [Shot(path=path, offset_ns=0)]
    if path.suffix.lower() in VIDEO_SUFFIXES:
        seconds = range(max(1, int(video_length_s(path))))
        shots = [Shot(path=path, offset_ns=s_to_ns(second), at_s=float(second)) for second in seconds]
    for shot, jpeg in jpegs(shots):
        yield shot.at_s or 0.0, _small(_decoded(jpeg, path))


def _bag_frames(path: Path) -> Iterator[tuple[float, Pixels]]:
    topic = camera_topic(path)
    if topic is None:
        raise BagError(f"{path}: holds no pictures; record a camera's topic")
    with BagReader(path) as reader:
        start_ns, due_ns = 0, -1
        for message in reader.messages([topic]):
            start_ns = start_ns or message.stamp_ns
            if message.stamp_ns >= due_ns:
                try:
                    pixels = pixels_of(reader.decode(message))
                except PictureFormatError:
                    continue
                due_ns = message.stamp_ns + NS_PER_S
                yield (message.stamp_ns - start_ns) / NS_PER_S, _small(pixels)


def _decoded(jpeg: bytes, path: Path | str = "picture") -> Pixels:
    pixels = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR) if jpeg else None
    if pixels is None:
        raise ItemError(f"{path}: is no picture; remove it, or save it as JPEG or PNG")
    return np.asarray(pixels, np.uint8)


def _small(pixels: Pixels, side_px: int = MAX_SIDE_PX) -> Pixels:
    scale = min(1.0, side_px / max(pixels.shape[:2]))
    return np.asarray(cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA), np.uint8)


def _blurred(clip: Sequence[bytes], find: FindFaces, blurs: bool) -> Iterator[bytes]:
    """Blur the faces of a clip's pictures, also those found in the picture before or after; else the whole picture."""
    frames = [_decoded(jpeg) for jpeg in clip]
    blurring = PictureBlurring(find, NoFacePolicy.BLUR)
    for place, pixels in enumerate(frames if blurs else ()):
        blurring.collect_pixels(pixels, place * NEIGHBOURS_NS)
    for jpeg, pixels in zip(clip, frames, strict=True):
        blurred = blurring.blur(pixels) if blurs else None
        yield jpeg if blurred is None else encode_jpeg(blurred, _QUALITY)


def _contact_sheet(run: ItemRun, scenes: Sequence[Scene]) -> bytes:
    """Draw the last picture of each moment, six in a row, as PNG."""
    height = _SHEET_PX * 3 // 4
    cells = []
    for scene in scenes:
        jpeg = (run.folder / scene.pictures[-1]).read_bytes()
        pixels = _decoded(jpeg)
        small = _small(pixels, min(_SHEET_PX, (height - 24) * max(pixels.shape[:2]) // pixels.shape[0]))
        cell = np.full((height, _SHEET_PX, 3), 255, np.uint8)
        cell[: small.shape[0], : small.shape[1]] = small
        label = f"{scene.id}, {scene.at_s:.0f} s, {scene.faces} faces"
        cv2.putText(cell, label, (4, height - 8), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (0, 0, 0), 1, cv2.LINE_AA)
        cells.append(cell)
    cells += [np.full_like(cells[0], 255)] * (-len(cells) % 6)
    rows = [np.hstack(cells[at : at + 6]) for at in range(0, len(cells), 6)]
    return cv2.imencode(".png", np.vstack(rows))[1].tobytes()
