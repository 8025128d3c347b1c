"""When people speak again while a robot is silent: python -m calibration.real_robots.waiting --scout FILE.

A wait begins as a person's words end. It ends as the person speaks again, or is cut off as the robot answers or the
person only goes on with the same sentence. Rates are by the second of silence, so that cut-off waits count too.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from calibration.command import run_command
from calibration.real_robots.scout import CODINGS, Json, person_of, read_rows, read_sessions, shares_words
from calibration.real_robots.time_to_alarm import read_planned_talks
from norm_core.records.record import record
from norm_core.runtime.time import ns_to_s
from norm_monitor.context.spoken_words import estimate_duration_ns
from scoring.f1 import f1_score
from scoring.intervals import draw_clusters, percentile_interval

# Rows by which the robot shows that it works on the request, by SCOUT's relations; any other row answers.
_SIGNS = ("ack-doing", "ack-wilco", "ack-try", "ack-understand", "processing")
_RETURNS = {
    "continue": "goes on",
    "clar-repeat": "repeats",
    "summarization": "repeats",
    "clar-repair": "rephrases",
    "correction-cancel": "cancels",
    "correction-update": "corrects",
}
_GOES_ON, _REPEATS, _NEW = "goes on", "repeats", "asks something else"
_REQUESTS = {
    "a picture": re.compile(r"\b(picture|photo|image)s?\b"),
    "a movement": re.compile(r"\b(go|move|turn|drive|head|face|come|proceed|continue|rotate|back up|stop)\b"),
    "an answer": re.compile(r"^(what|where|how|which|who|is|are|do|does|did|can|could)\b"),
}
_PACE_ANSWERS, _MIN_PACE_ANSWERS = 12, 2
_PACES_S = (4.0, 8.0)
_PACE_NAMES = ("robot answers in under 4 s", "4 to 8 s", "8 s or more")
_SECONDS = 120
_SHOWN_S = (2, 4, 6, 8, 12, 16, 24, 40)
_FIXED_S = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 30)
_DRAWS = 1000

Array = NDArray[np.float64]


@record
class Wait:
    """A person's row, and what came after it; times are in seconds after its words."""

    person: str
    session: str
    row: str
    at_s: float
    request: str
    pace_s: float | None  # the robot's median time to its first reply so far
    first_sign_s: float | None  # before the wait ends
    end_s: float
    ends_by: str  # how the person speaks again; empty if the robot answered, or the recording ended
    robot_silent_s: float  # until any row of the robot's

    @property
    def is_return(self) -> bool:
        """Whether the person speaks again, other than to go on with the same sentence."""
        return self.ends_by not in {"", _GOES_ON}

    @property
    def pace_group(self) -> int:
        """The index of its pace among the groups; before two answers the robot counts as an average one."""
        return 1 if self.pace_s is None else int(np.searchsorted(_PACES_S, self.pace_s, "right"))


def measure_waiting(
    scout: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="SCOUT's sessions, one JSON a line.")],
    nodbot: Annotated[Path | None, typer.Option(file_okay=False, help="NodBot's folder HRI25_LBR/data.")] = None,
) -> None:
    """Print how many people have spoken again by each second of silence, and what a rule of silence finds."""
    waits = [wait for session in read_sessions(scout) for wait in find_waits(session)]
    table = Table("% of people who spoke again by", "waits", *(f"{second} s" for second in _SHOWN_S), "half, s")
    parts = {"SCOUT, no sign of work": waits}
    parts |= {name: [wait for wait in waits if wait.pace_group == group] for group, name in enumerate(_PACE_NAMES)}
    parts |= {f"asked for {name}": [wait for wait in waits if wait.request == name] for name in (*_REQUESTS, "else")}
    for name, part in parts.items():
        table.add_row(name, *_describe([_before_sign(wait) for wait in part]))
    signed = [_after_sign(wait) for wait in waits if wait.first_sign_s is not None]
    table.add_row("SCOUT, after a sign of work", *_describe(signed))
    if nodbot:
        table.add_row("NodBot", *_describe(list(_read_nodbot(nodbot))))
    console = Console(highlight=False, width=170)
    console.print(table)
    console.print(_tabulate_returns(waits))
    console.print(_tabulate_rules(waits))


def find_waits(session: Json) -> Iterator[Wait]:
    """Yield the waits of a session of SCOUT's."""
    rows = read_rows(session)
    answers_s: list[float] = []
    for index, row in enumerate(rows):
        if row["by"] != "person":
            continue
        at_s, following = float(row["at_s"]), rows[index + 1 :]
        person = next((other for other in following if other["by"] == "person"), None)
        robot = [other for other in following if other["by"] == "robot"]
        starts_s = max(0.0, person["at_s"] - at_s - ns_to_s(estimate_duration_ns(person["text"]))) if person else np.inf
        replies_s = [(other["at_s"] - at_s, other["relation"].startswith(_SIGNS)) for other in robot]
        answer_s = next((after_s for after_s, is_sign in replies_s if not is_sign), np.inf)
        first_s = replies_s[0][0] if replies_s else np.inf
        end_s = min(starts_s, answer_s)
        if np.isinf(end_s):
            continue
        is_person = person is not None and starts_s <= answer_s
        yield Wait(
            person=person_of(session["id"]),
            session=session["id"],
            row=row["id"],
            at_s=at_s,
            request=next((name for name, words in _REQUESTS.items() if words.search(row["text"].lower())), "else"),
            pace_s=median(answers_s[-_PACE_ANSWERS:]) if len(answers_s) >= _MIN_PACE_ANSWERS else None,
            first_sign_s=first_s if first_s < end_s else None,
            end_s=end_s,
            ends_by=_name_return(row, person) if is_person and person else "",
            robot_silent_s=first_s,
        )
        if first_s <= starts_s:
            answers_s.append(first_s)


def _name_return(row: Json, then: Json) -> str:
    relation = then["relation"].removesuffix("*").removesuffix("-error")
    return _RETURNS.get(relation) or (_REPEATS if shares_words(row, then) else _NEW)


Span = tuple[str, float, bool]  # a person, the seconds of a wait, and whether the person then spoke again


def _before_sign(wait: Wait) -> Span:
    return wait.person, min(wait.end_s, wait.first_sign_s or np.inf), wait.is_return and wait.first_sign_s is None


def _after_sign(wait: Wait) -> Span:
    return wait.person, wait.end_s - (wait.first_sign_s or 0.0), wait.is_return


def _read_nodbot(folder: Path) -> Iterator[Span]:
    for talk in read_planned_talks(folder):
        for turn, then in pairwise(talk.turns):
            if turn.speaker_id:
                yield talk.person, max(0.0, ns_to_s(then.start_ns - turn.end_ns)), bool(then.speaker_id)


@record
class Hazard:
    """Of each person, the seconds waited and the returns, by the second of silence."""

    people: tuple[str, ...]
    waited: Array
    returns: Array

    @classmethod
    def of(cls, spans: Sequence[Span]) -> "Hazard":
        """Count the spans."""
        people = tuple(sorted({person for person, _, _ in spans}))
        index = {person: place for place, person in enumerate(people)}
        waited, returns = np.zeros((2, len(people), _SECONDS))
        for person, span_s, is_return in spans:
            waited[index[person]] += np.clip(span_s - np.arange(_SECONDS), 0, 1)
            if is_return and span_s < _SECONDS:
                returns[index[person], int(span_s)] += 1
        return cls(people=people, waited=waited, returns=returns)

    def spoken_again(self, weights: Array) -> Array:
        """Return the share that has spoken again by the end of each second, for each row of people's weights."""
        rates = (weights @ self.returns) / np.maximum(weights @ self.waited, 1.0)
        return 1 - np.exp(-np.cumsum(rates, axis=-1))


def _describe(spans: Sequence[Span]) -> list[str]:
    hazard = Hazard.of(spans)
    whole = hazard.spoken_again(np.ones(len(hazard.people)))
    drawn = draw_clusters(len(hazard.people), _DRAWS)
    weights = np.array([np.bincount(row, minlength=len(hazard.people)) for row in drawn], float)
    shares = hazard.spoken_again(weights)
    cells = [str(len(spans))]
    for second in _SHOWN_S:
        low, high = percentile_interval(100 * shares[:, second - 1])
        cells.append(f"{100 * whole[second - 1]:.0f} [{low:.0f}, {high:.0f}]")
    halves = [_second_of_half(row) for row in shares]
    low, high = np.percentile(halves, [2.5, 97.5], method="nearest")
    return [*cells, f"{_show(_second_of_half(whole))} [{_show(low)}, {_show(high)}]"]


def _second_of_half(shares: Array) -> float:
    """Return the second from which it is more likely than not that a person has spoken again; infinite if none."""
    return float(np.argmax(shares >= 0.5) + 1) if shares[-1] >= 0.5 else np.inf


def _show(second: float) -> str:
    return f"over {_SECONDS}" if np.isinf(second) else f"{second:.0f}"


def _tabulate_returns(waits: Iterable[Wait]) -> Table:
    table = Table("how people speak again", "before any sign of work", "median, s", "after one", "median, s")
    returns = [wait for wait in waits if wait.ends_by]
    parts = [[wait for wait in returns if (wait.first_sign_s is None) is is_first] for is_first in (True, False)]
    for name in dict.fromkeys((*_RETURNS.values(), _NEW)):
        cells: list[str] = []
        for part in parts:
            ends_s = [wait.end_s for wait in part if wait.ends_by == name]
            cells += [f"{len(ends_s)} ({100 * len(ends_s) / len(part):.0f} %)", f"{median(ends_s or [0]):.1f}"]
        table.add_row(name, *cells)
    return table


@record
class _CodedWait:
    wait: Wait
    is_marked: bool
    likely: float  # how likely a person has spoken again by the end of the silence, by other people's waits


def _tabulate_rules(waits: Sequence[Wait]) -> Table:
    """Compare rules of silence with the coders' marks; what is chosen is chosen on other people."""
    coded = list(_coded_waits(waits))
    marks = sum(row.is_marked for row in coded)
    table = Table(f"rule on {len(coded)} waits, {marks} marked", "flags", "precision", "recall", "F1")
    for second in _FIXED_S:
        table.add_row(f"{second} s", *_score(coded, [row.wait.robot_silent_s >= second for row in coded]))
    table.add_row("half would have spoken again", *_score(coded, [row.likely >= 0.5 for row in coded]))
    silent_s = np.array([row.wait.robot_silent_s for row in coded])
    pace_s = np.array([row.wait.pace_s or _PACES_S[0] for row in coded])
    measures = {
        "seconds": silent_s,
        "share who would have spoken again": np.array([row.likely for row in coded]),
        "seconds beyond the robot's median so far": silent_s - pace_s,
        "times the robot's median so far": silent_s / pace_s,
    }
    for name, values in measures.items():
        table.add_row(f"{name}, threshold chosen", *_score(coded, _choose_left_out(coded, values)))
    return table


def _coded_waits(waits: Sequence[Wait]) -> Iterator[_CodedWait]:
    hazards = [Hazard.of([_before_sign(wait) for wait in waits if wait.pace_group == group]) for group in range(3)]
    for stretch in read_sessions(CODINGS):
        marked = {mark["row"] for mark in stretch["marks"] if mark["silence"] and mark["polarity"] == "error"}
        person = person_of(stretch["session"])
        shares = [
            hazard.spoken_again(np.array([float(other != person) for other in hazard.people])) for hazard in hazards
        ]
        for wait in waits:
            is_within = stretch["start_s"] <= wait.at_s < stretch["end_s"]
            if wait.session == stretch["session"] and is_within and (wait.ends_by != _GOES_ON or wait.row in marked):
                second = min(_SECONDS, int(wait.robot_silent_s) if np.isfinite(wait.robot_silent_s) else _SECONDS)
                likely = float(shares[wait.pace_group][second - 1]) if second else 0.0
                yield _CodedWait(wait=wait, is_marked=wait.row in marked, likely=likely)


def _choose_left_out(coded: Sequence[_CodedWait], values: Array) -> list[bool]:
    """Flag each person's waits by the threshold that has the best F1 on all others."""
    is_marked = np.array([row.is_marked for row in coded])
    people = np.array([row.wait.person for row in coded])
    flagged = np.zeros(len(coded), bool)
    for person in np.unique(people):
        others = people != person
        thresholds = np.unique(values[others & is_marked])
        flags = values[others][None, :] >= thresholds[:, None]
        hits = (flags & is_marked[others]).sum(axis=1)
        best = np.argmax(f1_score(hits, flags.sum(axis=1) + is_marked[others].sum()))
        flagged[~others] = values[~others] >= thresholds[best]
    return list(map(bool, flagged))


def _score(coded: Sequence[_CodedWait], flagged: Sequence[bool]) -> list[str]:
    counts = Counter((row.is_marked, flag) for row, flag in zip(coded, flagged, strict=True))
    hits, flags, marks = counts[True, True], sum(flagged), counts[True, True] + counts[True, False]
    rates = (100 * hits / max(1, flags), 100 * hits / marks, float(f1_score(hits, flags + marks, scale=100)))
    return [str(flags), *(f"{rate:.0f}" for rate in rates)]


if __name__ == "__main__":
    run_command(measure_waiting)
