"""Read a `.boris` project with all its observations."""

import json
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from study_desk.coding.forms.boris_events import BorisEvent, labels_of_events
from study_desk.coding.forms.coding_target import CodingTarget, FormPart
from study_desk.coding.forms.sheet import FormError, check_text
from study_desk.coding.forms.text_table import read_text
from study_desk.coding.labels import in_order
from study_desk.log.schema import Label

# What we write into a project, and BORIS keeps.
OURS = "tactful"
_LARGEST_S = Decimal(10) ** 9


class BorisProject:
    """A project, whose observations are sessions. Each names its coder by the independent variable "coder"."""

    def __init__(self, path: Path) -> None:
        """Raises FormError for what is no project."""
        self._path = path
        text = read_text(path)
        try:
            project = json.loads(text)
            self._observations: dict[str, Any] = dict(project["observations"])
            self._states = {
                str(each["code"])
                for each in project["behaviors_conf"].values()
                if str(each["type"]).lower().startswith("state")
            }
            ours = dict(project.get(OURS, {}))
            self._study = str(ours.get("study", ""))
            self._origins_ns = {str(name): int(ns) for name, ns in dict(ours.get("origin_ns", {})).items()}
            self.parts = tuple(map(self._part, self._observations)) or (FormPart(),)
            self._events = {name: self._events_of(name) for name in self._observations}
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            if isinstance(error, FormError):
                raise
            raise FormError(f"{path}: is no project of BORIS: {error!r}; save it in BORIS again") from error

    def labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the labels of the target's observation, or of the only one."""
        listed = ", ".join(self._observations) or "none"
        if not target.part and len(self._observations) > 1:
            problem = f"holds {len(self._observations)} observations, and the log is of one session"
            raise FormError(f"{self._path}: {problem}; give one with --observation: {listed}")
        name = target.part or next(iter(self._observations), "")
        if name not in self._observations:
            raise FormError(f"{self._path}: has no observation {name}; it has {listed}")
        origin_ns = self._origins_ns.get(name, target.origin_ns)
        return in_order(labels_of_events(self._events[name], replace(target, origin_ns=origin_ns)))

    def _part(self, name: str) -> FormPart:
        coder = self._observations[name].get("independent_variables", {}).get("coder", "")
        return FormPart(name=name, coder=str(coder), study=self._study)

    def _events_of(self, name: str) -> list[BorisEvent]:
        observation = self._observations[name]
        where = f"{self._path}, observation {name}"
        if Decimal(str(observation.get("time offset") or 0)):
            raise FormError(f"{where}: has a time offset of {observation['time offset']} s; set it to 0 in BORIS")
        events = []
        for number, (time, subject, behaviour, modifiers, comment, *_) in enumerate(observation["events"], 1):
            place = f"{where}, event {number}"
            texts = [str(text or "") for text in (subject, behaviour, modifiers, comment)]
            check_text(place, texts)
            events.append(
                BorisEvent(
                    place=place,
                    time_s=_seconds(place, time),
                    subject=texts[0],
                    behaviour=texts[1],
                    modifiers=texts[2],
                    comment=texts[3],
                    is_point=texts[1] not in self._states,
                )
            )
        return sorted(events, key=lambda event: event.time_s)  # as BORIS sorts them


def _seconds(place: str, time: Any) -> Decimal:
    try:
        seconds = Decimal(str(time))
    except InvalidOperation as error:
        raise FormError(f"{place}: {time!r} is no time in seconds; correct it in BORIS") from error
    if not (seconds.is_finite() and abs(seconds) < _LARGEST_S):
        raise FormError(f"{place}: {time!r} is no time in seconds; correct it in BORIS")
    return seconds
