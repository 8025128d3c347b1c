"""Write a `.boris` project to code in: an observation for each session, and the codebook as ethogram with keys."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import av

from norm_core.records.flag import Polarity, Severity
from norm_core.records.record import record
from study_desk.coding.forms.boris_project import OURS
from study_desk.coding.forms.eaf_template import MediaLink
from study_desk.coding.forms.sheet import in_place_of
from study_desk.coding.labels import one_line
from study_desk.study.study_file import Code

_FORMAT = "7.0"
_NO_DATE = "1970-01-01T00:00:00"  # the day of a session is nothing to code by
_PLAYERS = [str(number) for number in range(1, 9)]
# BORIS asks once, at the end of an event, and notes it at both ends. Otherwise it would ask twice.
_SEVERITY = {
    "name": "severity",
    "description": "how severe the error is",
    "type": 0,
    "ask at stop": True,
    "values": [severity.value for severity in Severity],
}
_COLORS = {Polarity.ERROR: "#d55e00", Polarity.COMPETENCE: "#0072b2"}


@record
class BorisObservation:
    """One session to code. Without media, BORIS counts time on its own clock."""

    session: str
    origin_ns: int
    media: tuple[MediaLink, ...] = ()


def write_boris_project(
    path: Path, observations: Iterable[BorisObservation], codebook: Iterable[Code], *, study: str, coder: str
) -> None:
    """Write a project of BORIS 7 or later. It names the coder in an independent variable, which BORIS exports."""
    listed = list(observations)
    codes = list(codebook)
    project = {
        "time_format": "hh:mm:ss",
        "project_date": _NO_DATE,
        "project_name": one_line(study),
        "project_description": "",
        "project_format_version": _FORMAT,
        "subjects_conf": {},
        "behaviors_conf": {str(number): _behaviour(code) for number, code in enumerate(codes)},
        "observations": {one_line(each.session): _observation(each, coder) for each in listed},
        "behavioral_categories": [polarity.value for polarity in Polarity],
        "independent_variables": {
            "0": {
                "label": "coder",
                "description": "pseudonym of the coder",
                "type": "text",
                "default value": coder,
                "possible values": "",
            }
        },
        "coding_map": {},
        "behaviors_coding_map": [],
        "converters": {},
        OURS: {"study": study, "coder": coder, "origin_ns": {one_line(e.session): e.origin_ns for e in listed}},
    }
    with in_place_of(path) as part:
        part.write_text(json.dumps(project, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


def is_playable(media: Path) -> bool:
    """Whether the length of a video or sound file can be told, which BORIS needs."""
    try:
        return _length_s(media) > 0
    except (av.error.FFmpegError, OSError):
        return False


def _behaviour(code: Code) -> dict[str, Any]:
    return {
        "type": "State event",
        "key": code.key,
        "code": one_line(code.name),
        "description": one_line(code.definition),
        "color": _COLORS[code.polarity],
        "category": code.polarity.value,
        "modifiers": {"0": _SEVERITY} if code.polarity is Polarity.ERROR else {},
        "excluded": "",
        "coding map": "",
    }


def _observation(each: BorisObservation, coder: str) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "file": {player: [] for player in _PLAYERS},
        "type": "MEDIA" if each.media else "LIVE",
        "date": _NO_DATE,
        "description": "",
        "time offset": 0.0,
        "events": [],
        "observation time interval": [0, 0],
        "independent_variables": {"coder": coder},
        "visualize_spectrogram": False,
        "visualize_waveform": False,
        "media_creation_date_as_offset": False,
        "media_scan_sampling_duration": 0,
        "image_display_duration": 1,
        "close_behaviors_between_videos": False,
        "scan_sampling_time": 0,
        "start_from_current_time": False,
        "start_from_current_epoch_time": False,
    }
    info: dict[str, dict[str, Any]] = {"length": {}, "fps": {}, "hasVideo": {}, "hasAudio": {}, "offset": {}}
    for player, link in zip(_PLAYERS, each.media, strict=False):
        plain["file"][player] = [link.relative]
        with av.open(str(link.path)) as container:
            pictures = container.streams.video
            rate = pictures[0].average_rate if pictures else None
            info["fps"][link.relative] = float(rate) if rate else 0.0
            info["hasVideo"][link.relative] = bool(pictures)
            info["hasAudio"][link.relative] = bool(container.streams.audio)
        info["length"][link.relative] = _length_s(link.path)
        info["offset"][player] = 0.0
    return plain | ({"media_info": info} if each.media else {})


def _length_s(media: Path) -> float:
    with av.open(str(media)) as container:
        return (container.duration or 0) / av.time_base
