"""Write projects of BORIS, and read them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import av

from norm_core.files.atomic_file import private_path
from norm_core.files.data_files import shipped_text
from norm_core.records.flag import Polarity, Severity
from norm_core.records.record import record
from norm_monitor.session_log.labels import fold_lines, sort_labels
from norm_monitor.session_log.schema import Label, LinkedMedia, make_relative_link
from norm_monitor.session_log.study_file import Code
from study_desk.coding.forms.sheet import CodingTarget, FormError, FormPart, check_text, to_stamps_ns
from study_desk.coding.forms.tables import read_text

# The key of our own data in a project, which BORIS keeps.
_OWN_KEY = "tactful"
_MAX_TIME_S = Decimal(10) ** 9
# The parts of an empty project, as BORIS 7 saves them. BORIS asks for the severity once, at the end of an event, and
# notes it at both ends. The project has no date, as the day of a session would tell a coder more than they should know.
_PROJECT = shipped_text("study_desk.coding.forms", "boris_project.json")
_COLORS = {Polarity.ERROR: "#d55e00", Polarity.COMPETENCE: "#0072b2"}


@record
class BorisEvent:
    """One event. A state has two, its start and its stop."""

    place: str
    time_s: Decimal
    subject: str
    behaviour: str
    modifiers: str
    comment: str
    is_point: bool


class BorisProject:
    """A project, whose observations are sessions. Each names its coder by the independent variable "coder"."""

    def __init__(self, path: Path) -> None:
        """Raises FormError if the file is not a project."""
        self._path = path
        text = read_text(path)
        try:
            project = json.loads(text)
            self._observations: dict[str, Any] = dict(project["observations"])
            kinds = {str(behaviour["code"]): str(behaviour["type"]) for behaviour in project["behaviors_conf"].values()}
            self._states = {code for code, kind in kinds.items() if kind.lower().startswith("state")}
            own_data = dict(project.get(_OWN_KEY, {}))
            self._study = str(own_data.get("study", ""))
            self._origins_ns = {str(name): int(ns) for name, ns in dict(own_data.get("origin_ns", {})).items()}
            self.parts = tuple(map(self._read_part, self._observations)) or (FormPart(),)
            self._events = {name: self._read_events(name) for name in self._observations}
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            if isinstance(error, FormError):
                raise
            raise FormError(f"{path}: is not a project of BORIS: {error!r}; save it in BORIS again") from error

    def read_labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the labels of the target's observation, or of the only one."""
        name = target.part or next(iter(self._observations), "")
        if name not in self._observations:
            names = ", ".join(self._observations) or "none"
            raise FormError(f"{self._path}: has no observation {name}; it has {names}: rename one in BORIS")
        origin_ns = self._origins_ns.get(name, target.origin_ns)
        return sort_labels(_pair_events(self._events[name], replace(target, origin_ns=origin_ns)))

    def _read_part(self, name: str) -> FormPart:
        coder = self._observations[name].get("independent_variables", {}).get("coder", "")
        return FormPart(name=name, coder=str(coder), study=self._study)

    def _read_events(self, name: str) -> list[BorisEvent]:
        """Read the events of an observation. Raises FormError with the place of a fault."""
        observation = self._observations[name]
        prefix = f"{self._path}, observation {name}"
        if Decimal(str(observation.get("time offset") or 0)):
            raise FormError(f"{prefix}: has a time offset of {observation['time offset']} s; set it to 0 in BORIS")
        events = []
        for number, (time, *cells) in enumerate(observation["events"], 1):
            place = f"{prefix}, event {number}"
            subject, behaviour, modifiers, comment, *_ = (str(cell or "") for cell in cells)
            check_text(place, (subject, behaviour, modifiers, comment))
            events.append(
                BorisEvent(
                    place=place,
                    time_s=_read_seconds(place, time),
                    subject=subject,
                    behaviour=behaviour,
                    modifiers=modifiers,
                    comment=comment,
                    is_point=behaviour not in self._states,
                )
            )
        return sorted(events, key=lambda event: event.time_s)  # as BORIS sorts them


def _read_seconds(place: str, time: Any) -> Decimal:
    try:
        seconds = Decimal(str(time))
    except InvalidOperation as error:
        raise FormError(f"{place}: {time!r} is not a time in seconds; correct it in BORIS") from error
    if not (seconds.is_finite() and abs(seconds) < _MAX_TIME_S):
        raise FormError(f"{place}: {time!r} is not a time in seconds; correct it in BORIS")
    return seconds


def _pair_events(events: Iterable[BorisEvent], target: CodingTarget) -> Iterator[Label]:
    """Pair starts with stops as BORIS does: by subject, behaviour and modifiers, in their order."""
    starts: dict[tuple[str, str, str], BorisEvent] = {}
    for event in events:
        target.require_code(event.place, event.behaviour)
        key = (event.subject, event.behaviour, event.modifiers)
        if event.is_point:
            yield _make_label(event, event, target)
        elif start := starts.pop(key, None):
            yield _make_label(start, event, target)
        else:
            starts[key] = event
    for event in starts.values():
        raise FormError(
            f"{event.place}: {event.behaviour!r} of {event.subject!r} begins and never stops; add its stop in BORIS"
        )


def _make_label(start: BorisEvent, stop: BorisEvent, target: CodingTarget) -> Label:
    """Convert a state to a label. A point event is its own stop."""
    modifiers = [modifier.strip().lower() for modifier in start.modifiers.replace(",", "|").split("|")]
    severity = next((severity for severity in Severity if severity.value in modifiers), None)
    comments = dict.fromkeys(event.comment.strip() for event in (start, stop))
    start_ms, end_ms = (float(event.time_s * 1000) for event in (start, stop))
    return target.make_label(
        stop.place,
        to_stamps_ns(start_ms, end_ms, target.origin_ns),
        target.require_code(start.place, start.behaviour),
        coder=start.subject.split(" +", maxsplit=1)[0],
        fields={"severity": severity, "comment": "; ".join(filter(None, comments))},
    )


@record
class BorisObservation:
    """One session to code. Without media, BORIS counts time on its own clock."""

    session: str
    origin_ns: int
    media: tuple[LinkedMedia, ...] = ()


def write_boris_project(
    path: Path,
    observations: Iterable[BorisObservation],
    codebook: Iterable[Code],
    severities: Mapping[Severity, str],
    *,
    study: str,
    coder: str,
) -> None:
    """Write a project of BORIS 7 or later. It names the coder in an independent variable."""
    by_name = {fold_lines(observation.session): observation for observation in observations}
    project = json.loads(_PROJECT)["project"]
    project["independent_variables"]["0"]["default value"] = coder
    project |= {
        "project_name": fold_lines(study),
        "behaviors_conf": {str(index): _make_behaviour(code, severities) for index, code in enumerate(codebook)},
        "observations": {name: _make_observation(by_name[name], coder, path.parent) for name in by_name},
        _OWN_KEY: {
            "study": study,
            "coder": coder,
            "origin_ns": {name: observation.origin_ns for name, observation in by_name.items()},
        },
    }
    with private_path(path) as part:
        part.write_text(json.dumps(project, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


def has_length(media: str) -> bool:
    """Whether a video or sound file has a length, which BORIS needs."""
    try:
        with av.open(media) as container:
            return _measure_length_s(container) > 0
    except (av.error.FFmpegError, OSError):
        return False


def _make_behaviour(code: Code, severities: Mapping[Severity, str]) -> dict[str, Any]:
    """Make the behaviour of a code. That of an error has the severities as modifiers."""
    parts = json.loads(_PROJECT)
    behaviour: dict[str, Any] = parts["behaviour"]
    meanings = "; ".join(f"{severity.value}: {meaning}" for severity, meaning in severities.items())
    modifier = {**parts["severity"], "description": fold_lines(meanings), "values": [*severities]}
    return behaviour | {
        "key": code.key,
        "code": fold_lines(code.name),
        "description": fold_lines(code.description),
        "color": _COLORS[code.polarity],
        "category": code.polarity.value,
        "modifiers": {"0": modifier} if code.polarity is Polarity.ERROR else {},
    }


def _make_observation(observation: BorisObservation, coder: str, folder: Path) -> dict[str, Any]:
    """Make an observation without events, whose media are named from the folder."""
    plain: dict[str, Any] = json.loads(_PROJECT)["observation"]
    plain |= {"type": "MEDIA" if observation.media else "LIVE", "independent_variables": {"coder": coder}}
    info: dict[str, dict[str, Any]] = {"length": {}, "fps": {}, "hasVideo": {}, "hasAudio": {}, "offset": {}}
    for player, link in zip(plain["file"], observation.media, strict=False):
        relative = make_relative_link(link, folder).removeprefix("./")
        plain["file"][player] = [relative]
        with av.open(link.path) as container:
            pictures = container.streams.video
            rate = pictures[0].average_rate if pictures else None
            info["fps"][relative] = float(rate) if rate else 0.0
            info["hasVideo"][relative] = bool(pictures)
            info["hasAudio"][relative] = bool(container.streams.audio)
            info["length"][relative] = _measure_length_s(container)
        info["offset"][player] = 0.0
    return plain | ({"media_info": info} if observation.media else {})


def _measure_length_s(container: av.container.InputContainer) -> float:
    return (container.duration or 0) / av.time_base
