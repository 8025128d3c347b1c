"""A contact sheet of an anonymized bag: a page of stills to look through before the bag leaves."""

import html
import shutil
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

import cv2
import numpy as np

from norm_core.records.presence import Face
from norm_core.records.record import record
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.data_files import shipped_text
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S
from norm_core.runtime.wording import count_of
from study_desk.privacy.blur import Pixels, encode_jpeg

# Stills a topic that are spread over its time, and their largest width.
SAMPLES, WIDTH_PX = 60, 640
# Less certain boxes are blurred too, but alone they do not count as a found face.
CERTAIN = 0.5
_MODE, _FOLDER_MODE = 0o600, 0o700


class Check(StrEnum):
    """Why a still is on the sheet, the most urgent first."""

    FACE_GONE = "gone"
    FACE = "face"
    SAMPLE = "sample"


_HEADINGS = {
    Check.FACE_GONE: ("Look here first", "fewer faces were found here than in the picture before or after"),
    Check.FACE: ("Faces found", "is every face inside an outline, and blurred?"),
    Check.SAMPLE: ("Spread over the recording", "no face was found for certain in these: is there one?"),
}
_STYLE = shipped_text("study_desk.privacy", "contact_sheet.css")


@record
class _Still:
    check: Check
    topic: str
    stamp_ns: int
    faces: tuple[Face, ...]
    ratio: float
    file: str


class ContactSheet:
    """Collect stills of what is written to a bag in a folder with a page, which only their owner can read."""

    def __init__(self, folder: Path) -> None:
        """Raises TactfulError if `folder` exists, because it may hold another bag's sheet."""
        if folder.exists():
            raise TactfulError(f"{folder}: is there already: remove it once that bag is checked, or name another OUT")
        self._folder = folder
        self._stills: list[_Still] = []
        self._is_written = False

    def add(self, check: Check, topic: str, stamp_ns: int, pixels: Pixels, faces: Iterable[Face]) -> None:
        """Add a picture as it was written, with the places where faces were found in it."""
        height, width = pixels.shape[:2]
        if width > WIDTH_PX:
            size = WIDTH_PX, max(1, height * WIDTH_PX // width)
            pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
        if not self._stills:
            self._folder.mkdir(mode=_FOLDER_MODE, parents=True)
        file = f"{len(self._stills):06}.jpg"
        write_atomic(self._folder / file, encode_jpeg(pixels), mode=_MODE)
        still = _Still(check=check, topic=topic, stamp_ns=stamp_ns, faces=tuple(faces), ratio=width / height, file=file)
        self._stills.append(still)

    def write(
        self, title: str, start_ns: int, facts: Sequence[tuple[str, str]], warnings: Sequence[str]
    ) -> Path | None:
        """Write the page, and return it. Without a still there is none.

        `facts` tell what was done with each topic; times count from `start_ns`.
        """
        if not self._stills:
            return None
        stills = sorted(self._stills, key=lambda still: (still.topic, still.stamp_ns))
        sections = "".join(_section(check, [s for s in stills if s.check is check], start_ns) for check in Check)
        page = self._folder / "index.html"
        write_atomic(page, f"{_head(title)}{_summary(stills, facts, warnings)}{sections}</main>", mode=_MODE)
        self._is_written = True
        return page

    def close(self) -> None:
        """Delete the collected stills, if no page shows them."""
        if self._stills and not self._is_written:
            shutil.rmtree(self._folder)


def _section(check: Check, stills: Sequence[_Still], start_ns: int) -> str:
    if not stills:
        return ""
    heading, what = _HEADINGS[check]
    figures = "".join(_figure(still, start_ns) for still in stills)
    return f'<h2>{heading}</h2><p>{count_of(len(stills), "still")}: {what}</p><div class="stills">{figures}</div>'


def _figure(still: _Still, start_ns: int) -> str:
    boxes = "".join(map(_outline, still.faces))
    caption = f"{(still.stamp_ns - start_ns) / NS_PER_S:.2f} s, {html.escape(still.topic)}"
    return (
        f'<figure tabindex="0"><div style="--ratio:{still.ratio:.4f}"><img alt="{caption}" loading="lazy" '
        f'src="{still.file}">{boxes}</div><figcaption>{caption}</figcaption></figure>'
    )


def stills_to_check(stamps_ns: Sequence[int], faces: Sequence[int]) -> dict[int, Check]:
    """Choose the pictures to look at, by their place, from their stamps and numbers of faces.

    Every picture with a face, or with fewer than its neighbours, is chosen; others are spread over the time.
    """
    chosen: dict[int, Check] = {}
    for index, count in enumerate(faces):
        if count < max(faces[max(0, index - 1) : index + 2]):
            chosen[index] = Check.FACE_GONE
        elif count:
            chosen[index] = Check.FACE
    due_ns, step_ns = float(stamps_ns[0]), max(1, stamps_ns[-1] - stamps_ns[0]) / (SAMPLES - 1)
    for index, stamp_ns in enumerate(stamps_ns):
        if stamp_ns >= due_ns or index == len(stamps_ns) - 1:
            chosen.setdefault(index, Check.SAMPLE)
            due_ns = max(due_ns + step_ns, float(stamp_ns))
    return chosen


def _outline(face: Face) -> str:
    kind = "certain" if face.confidence >= CERTAIN else "uncertain"
    return (
        f'<i class="{kind}" style="left:{face.left_ratio:.2%};top:{face.top_ratio:.2%};'
        f'width:{face.width_ratio:.2%};height:{face.height_ratio:.2%}"></i>'
    )


def _head(title: str) -> str:
    title = html.escape(f"Contact sheet of {title}")
    return (
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src file:; '
        f"style-src 'unsafe-inline'\"><title>{title}</title><style>{_STYLE}</style><main><h1>{title}</h1>"
    )


def _summary(stills: Sequence[_Still], facts: Sequence[tuple[str, str]], warnings: Sequence[str]) -> str:
    rows = "".join(f"<tr><th>{html.escape(topic)}<td>{html.escape(told)}" for topic, told in facts)
    listed = "".join(f"<li>{html.escape(warning)}" for warning in warnings)
    return (
        f"<p>{count_of(len(stills), 'still')} as the bag holds them. Look for faces, name badges, screens, mirrors and "
        "writing that tell who somebody is. An outline marks where a face was found, a dashed one where there may be "
        "one. Click a still to enlarge it, and again to go back. This folder is not for sharing: delete it once the "
        "bag is checked.</p>"
        f"<ul>{listed}</ul><details><summary>What became of each topic</summary><table>{rows}</table></details>"
    )
