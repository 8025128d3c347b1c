"""Small folders of VideoNorms and HSRI in the documented layout, made here: the data are given on request only."""

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from norm_core.records.flag import Attribute
from sim_replays.suites import hsri, videonorms


def norm(number: int, **other: Any) -> dict[str, Any]:
    """One of a norm's annotations; two to a clip."""
    return {
        "id": f"n{number}",
        "clip": f"clip{number // 2}",
        "show": "Suits" if number % 3 else "Home",
        "culture": "us" if number % 2 else "cn",
        "category": "greeting",
        "norm": "Say hello.",
        "label": "adherence" if number % 4 else "violation",
        "verbal": ["hello"],
        **other,
    }


def segment(number: int, **other: Any) -> dict[str, Any]:
    """One segment of talk: an error, a competence or neither in turn."""
    kind = ("error", "competence", "none")[number % 3]
    attributes = [] if kind == "none" else [list(Attribute)[number % 7].value, list(Attribute)[number % 5].value]
    return {
        "id": f"s{number}",
        "session": f"talk{number // 4}",
        "kind": kind,
        "attributes": sorted(set(attributes)),
        "transcript": [
            {"speaker": "user", "text": f"Question {number}?"},
            {"speaker": "agent", "text": f"Answer {number}."},
        ],
        "rationale": f"It is wrong for reason {number}." if kind == "error" else "",
        "correction": f"Do {number} instead." if kind == "error" else "",
        **other,
    }


def pictures(folder: Path, name: str, count: int) -> None:
    """So many grey JPEGs of a clip, each a little lighter."""
    (folder / "frames" / name).mkdir(parents=True)
    for place in range(count):
        encoded, jpeg = cv2.imencode(".jpg", np.full((24, 32, 3), 20 + 10 * place, np.uint8))
        assert encoded
        (folder / "frames" / name / f"{place:03}.jpg").write_bytes(jpeg.tobytes())


def videonorms_folder(folder: Path, count: int = 4) -> Path:
    """Annotations with a transcript, and three pictures a clip."""
    folder.mkdir(parents=True, exist_ok=True)
    talk = {"transcript": "ANNA: Hello there.\nBEN: Hi.", "nonverbal": ["A smile."], "duration_s": 3}
    lines = [norm(number, **talk) for number in range(count)]
    (folder / videonorms.FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for clip in sorted({line["clip"] for line in lines}):
        pictures(folder, clip, 3)
    return folder


def hsri_folder(folder: Path, count: int = 24, with_pictures: bool = False) -> Path:
    """Segments, and where wanted two pictures of each."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [segment(number) for number in range(count)]
    (folder / hsri.FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for line in lines if with_pictures else ():
        pictures(folder, line["id"], 2)
    return folder
