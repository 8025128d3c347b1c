"""Sample moments before somebody acts from bags, sessions, videos and pictures, where two or more people are seen."""

import heapq
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from norm_core.bags.reader import BagError, BagReader
from norm_core.bags.storage import is_bag
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S
from norm_monitor.privacy.blur import (
    CERTAIN,
    NEIGHBOURS_NS,
    FindFaces,
    NoFacePolicy,
    PictureBlurring,
    Pixels,
    encode_jpeg,
    pixels_of,
)
from norm_monitor.senses.camera.picture import PictureFormatError
from norm_monitor.session_log.study_folder import Study, is_study, study_of
from norm_monitor.view.pictures import camera_topic
from sim_replays.items.clip import VIDEO_SUFFIXES, Shot, jpegs, video_length_s
from sim_replays.own_items.item_run import PICTURES, REFUSED, Drop, ItemError, ItemRun, PhaseCount, Scene, Source

PICTURE_SUFFIXES = (".jpg", ".jpeg", ".png")
MIN_PEOPLE, MAX_OF_SOURCE = 2, 3
CLIP_FRAMES, MIN_GAP_S, MAX_SIDE_PX = 5, 10.0, 1024
MAX_PAUSE_S = 2.0  # of a camera within a clip
DETECTED_PX = 448  # in which people are counted; blurring searches the whole picture
_ALIKE = 4.0  # mean difference of two thumbnails, of 255, below which they show the same
_MAX_VIDEO_S = 86_400  # whatever length a broken file states
_THUMB, _QUALITY, _SHEET_PX = (32, 18), 90, (320, 200)


@dataclass(order=True)
class _Moment:
    """A moment by how much more moves after it than before."""

    rise: float
    at_s: float
    faces: int = field(compare=False)
    thumb: Any = field(compare=False)
    clip: tuple[Pixels, ...] = field(compare=False)  # of several, the last one is of after the moment


def find_sources(paths: Sequence[Path], licence: str, consent: str, suite: str) -> list[Source]:
    """List the bags, sessions, videos and pictures in paths. Raises ItemError where there are none."""
    places: dict[str, tuple[Path, tuple[Study, str] | None]] = {}
    is_hsri = suite == "hsri"
    if is_hsri and len(paths) > 1:
        raise ItemError(f"{paths[1]}: is a second source; make a run for each study")
    for path in paths:
        if not path.exists():
            raise ItemError(f"{path}: there is no such file or folder; check the path")
        if is_study(path):
            study = Study(path)
            for name, log in study.logs():
                if name in places:
                    raise ItemError(f"{path}: the session {name} has the name of another source; make a run for each")
                recording = log if is_hsri else study.folder / study.file.sessions[name].bag
                places |= {name: (recording, (study, name))} if recording != study.folder else {}
            continue
        inner = [] if is_hsri else [path] if path.is_file() or is_bag(path) else sorted(path.iterdir())
        for inner_path in inner:
            if is_bag(inner_path) or inner_path.suffix.lower() in (*VIDEO_SUFFIXES, *PICTURE_SUFFIXES):
                stem = re.sub(r"[^\w.-]+", "-", inner_path.stem)
                name = next(n for n in chain([stem], (f"{stem}-{k}" for k in count(1))) if n not in places)
                places[name] = inner_path, study_of(inner_path)
    if not places:
        wanted = "a study with coded sessions" if is_hsri else "bags, a study or a folder of videos or pictures"
        raise ItemError(f"{', '.join(map(str, paths))}: holds no recording; name {wanted}")
    if not licence.strip() or not (consent.strip() or all(member for _, member in places.values())):
        raise ItemError("--licence, --consent: say under which licence and by whose consent the recordings are used")
    plain = {"licence": licence, "consent": consent.strip()}
    sources = [
        Source(
            name=name,
            path=str(path.resolve()),
            study=str(of[0].folder.resolve()) if of else "",
            session=of[1] if of else "",
            **plain,
        )
        for name, (path, of) in places.items()
    ]
    return [source.with_consent(suite) for source in sources]


def sample(run: ItemRun, find: FindFaces, progress: Callable[[str], None]) -> PhaseCount:
    """Sample each source: clips for EgoNormia, pictures for EgoGapBench. Writes a contact sheet."""
    sampled, drops, thumbs = list[Scene](), list[Drop](), list[Any]()
    for source in run.file.sources:
        progress(source.name)
        if source.consent.startswith(REFUSED):
            drops.append(Drop(id=source.name, why="no consent", detail=source.consent.removeprefix(REFUSED)))
            continue
        try:
            moments, why = _moments(Path(source.path), run.file.suite == "egonormia", find)
            drops += [] if moments else [Drop(id=source.name, why=why)]
        except (TactfulError, OSError, cv2.error) as error:
            drops.append(Drop(id=source.name, why="cannot be read", detail=str(error)))
            continue
        for number, moment in enumerate(moments):
            name = f"{source.name}-m_{number}"  # from which a suite reads the source
            if any(_is_alike(moment.thumb, thumb) for thumb in thumbs):
                drops.append(Drop(id=name, why="shows what another shows"))
                continue
            thumbs.append(moment.thumb)
            scene = Scene(id=name, source=source.name, at_s=moment.at_s, faces=moment.faces)
            sampled.append(_pictured(run, find, scene, moment.clip))
    if sampled:
        run.write("contact_sheet.png", _contact_sheet(run, sampled))
    return run.finish("sample", sampled, drops)


def _pictured(run: ItemRun, find: FindFaces, scene: Scene, clip: Sequence[Pixels]) -> Scene:
    """Write the pictures of a moment; the last one of EgoNormia is of after it."""
    names = tuple(f"{PICTURES}/{scene.id}/{place:03}.jpg" for place in range(len(clip)))
    for path, pixels in zip(names, _blurred(clip, find, run.file.faces == "blurred"), strict=True):
        run.write(path, encode_jpeg(pixels, _QUALITY))
    seen, after = (names[:-1], names[-1]) if run.file.suite == "egonormia" else (names, "")
    return scene.model_copy(update={"pictures": seen, "after": after})


def _is_alike(thumb: Any, other: Any) -> bool:
    return bool(np.abs(thumb - other).mean() < _ALIKE)


def _moments(path: Path, needs_clip: bool, find: FindFaces) -> tuple[list[_Moment], str]:
    """Return the best moments of a source in order of time, and why there is none."""
    best: list[_Moment] = []
    recent: deque[tuple[float, Pixels, Any, float]] = deque(maxlen=CLIP_FRAMES)
    number, reason = 0, ""
    last = [] if needs_clip else [(0.0, None)]  # a clip's moment is followed by what is done in it
    for at_s, pixels in chain(_frames(path), last):
        if needs_clip and recent and at_s - recent[-1][0] > MAX_PAUSE_S:
            recent.clear()
            reason = reason or "the camera pauses"
        thumb = None if pixels is None else cv2.resize(cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY), _THUMB).astype(float)
        moved = float(np.abs(thumb - recent[-1][2]).mean()) if recent and thumb is not None else 0.0
        if len(recent) > needs_clip:
            reason = "fewer than two people seen"
            before_s, shown, before, moved_before = recent[-1]
            faces = sum(face.confidence >= CERTAIN for face in find(_small(shown, DETECTED_PX)))
            clip = (
                (*(picture for _, picture, _, _ in recent), pixels) if needs_clip and pixels is not None else (shown,)
            )
            moment = _Moment(rise=moved - moved_before, at_s=before_s, faces=faces, thumb=before, clip=clip)
            near = [m for m in best if abs(m.at_s - before_s) < MIN_GAP_S or _is_alike(m.thumb, before)]
            if faces >= MIN_PEOPLE and all(other < moment for other in near):
                best = heapq.nlargest(MAX_OF_SOURCE, [*(other for other in best if other not in near), moment])
        if pixels is not None:
            number += 1
            recent.append((at_s, pixels, thumb, moved))
    reason = reason or ("fewer than three frames" if number else "no picture")
    return sorted(best, key=lambda moment: moment.at_s), "" if best else reason


def _frames(path: Path) -> Iterator[tuple[float, Pixels]]:
    """Yield one picture a second with its time, at most `MAX_SIDE_PX` wide."""
    if not is_bag(path):
        is_video = path.suffix.lower() in VIDEO_SUFFIXES
        times_s = map(float, range(min(max(1, int(video_length_s(path))), _MAX_VIDEO_S))) if is_video else [None]
        for shot, jpeg in jpegs([Shot(path=path, offset_ns=0, at_s=at_s) for at_s in times_s]):
            yield shot.at_s or 0.0, _small(_decoded(jpeg))
        return
    topic = camera_topic(path)
    if topic is None:
        raise BagError(f"{path}: holds no pictures; record a camera's topic")
    with BagReader(path) as reader:
        start_ns, due_ns = None, -1
        for message in reader.messages([topic]):
            start_ns = message.stamp_ns if start_ns is None else start_ns
            if message.stamp_ns >= due_ns:
                with suppress(PictureFormatError):
                    yield (message.stamp_ns - start_ns) / NS_PER_S, _small(pixels_of(reader.decode(message)))
                    due_ns = message.stamp_ns + NS_PER_S


def _decoded(jpeg: bytes) -> Pixels:
    pixels = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR) if jpeg else None
    if pixels is None:
        raise ItemError("is no picture; remove it, or save it as JPEG or PNG")
    return np.asarray(pixels, np.uint8)


def _small(pixels: Pixels, side_px: int = MAX_SIDE_PX) -> Pixels:
    scale = min(1.0, side_px / max(pixels.shape[:2]))
    return np.asarray(cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA), np.uint8)


def _blurred(clip: Sequence[Pixels], find: FindFaces, blurs: bool) -> Iterator[Pixels]:
    """Blur the faces of a clip's pictures, also those found in the picture before or after; else the whole picture."""
    blurring = PictureBlurring(find, NoFacePolicy.BLUR)
    for place, pixels in enumerate(clip):
        blurring.collect_pixels(pixels if blurs else None, place * NEIGHBOURS_NS)
    for pixels in clip:
        blurred = blurring.blur(pixels) if blurs else None
        yield pixels if blurred is None else blurred


def _contact_sheet(run: ItemRun, scenes: Sequence[Scene]) -> bytes:
    cells = []
    for scene in scenes:
        pixels = cv2.resize(_decoded((run.folder / scene.pictures[-1]).read_bytes()), _SHEET_PX)
        cell = cv2.copyMakeBorder(pixels, 0, 24, 0, 0, cv2.BORDER_CONSTANT, value=(255, 255, 255))
        label, place = f"{scene.id}, {scene.at_s:.0f} s, {scene.faces} faces", (4, _SHEET_PX[1] + 16)
        cells.append(cv2.putText(cell, label, place, cv2.FONT_HERSHEY_SIMPLEX, 0.45, (0, 0, 0), 1, cv2.LINE_AA))
    cells += [np.full_like(cells[0], 255)] * (-len(cells) % 6)
    rows = [np.hstack(cells[at : at + 6]) for at in range(0, len(cells), 6)]
    return cv2.imencode(".png", np.vstack(rows))[1].tobytes()
