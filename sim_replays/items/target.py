"""The right answers to questions, and predictions of them. Only scorers see these."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any

from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError

Key = tuple[str, str]  # an item's id and a task


class ReplyReading(StrEnum):
    """How a reply without the asked form was understood."""

    LENIENT = "read leniently"
    COERCED = "read by a model"


class SuiteError(TactfulError):
    """Benchmark files differ from their publication, or are not where stated."""


@record
class Target:
    """One question's right answer. Positions count from 0 in the dataset's own order.

    `group` is its image or video; `words` are other names of positions, such as letters; `kinds` are the kinds of the
    options; `by` are the groups of the figures; `references` are for grading a written answer, and `evidence` for
    written evidence, by kind.
    """

    id: str
    task: str
    group: str
    options: int
    right: tuple[int, ...] = ()
    several: bool = False
    words: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    by: Mapping[str, str] = field(default_factory=dict)
    references: tuple[str, ...] = ()
    evidence: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """The question's id and task, which its prediction shares."""
        return self.id, self.task


@record
class Prediction:
    """The answer to a question. `chosen` are positions; `grades` from a judge run from 1 to 5.

    `reading` says how its choice came from a reply that had not the asked form, if it had not.
    """

    id: str
    task: str
    outcome: Outcome
    chosen: tuple[int, ...] = ()
    text: str = ""
    grades: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    reading: ReplyReading | None = None

    @property
    def key(self) -> Key:
        """The question's id and task, which its target shares."""
        return self.id, self.task


Predictions = Mapping[Key, Prediction]


def picks_target(target: Target, predictions: Predictions) -> tuple[int, ...] | None:
    """Return the chosen positions; possibly none where several may be right. None where unanswered."""
    prediction = predictions.get(target.key)
    return prediction.chosen if prediction is not None and prediction.outcome is Outcome.ANSWERED else None


def first_pick(target: Target, predictions: Predictions) -> int | None:
    """Return the one chosen position. None where unanswered."""
    return places[0] if (places := picks_target(target, predictions)) else None


def intersection_over_union(picked: frozenset[int], right: frozenset[int]) -> float:
    """Compute intersection over union. Two empty sets give 1."""
    return len(picked & right) / len(picked | right) if picked | right else 1.0


_GRADES = ("grade", "verbal_grade", "nonverbal_grade")
_SHOWN = 5


@record
class PredictionFile:
    """The predictions of known questions, the unknown ids, and the invalid answers."""

    predictions: dict[Key, Prediction]
    unknown: tuple[str, ...]
    unusable: tuple[str, ...]

    @property
    def readings(self) -> Counter[ReplyReading | None]:
        """How many answers came from replies without the asked form."""
        return Counter(prediction.reading for prediction in self.predictions.values())


def read_predictions(path: Path, targets: Sequence[Target]) -> PredictionFile:
    """Read every line. Raises an error for an invalid line, an unknown task or a repeated id."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteError(f"{path}: cannot be read: {error}; check the path, and save it as UTF-8") from error
    by_key = {target.key: target for target in targets}
    tasks = tuple(dict.fromkeys(target.task for target in targets))
    seen: dict[Key, int] = {}
    predictions: dict[Key, Prediction] = {}
    unknown: dict[str, None] = {}
    unusable: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        entry = _entry(line, where)
        key = _key(entry, tasks, where)
        if key in seen:
            raise SuiteError(f"{where}: {key[0]!r} ({key[1]}) stands in line {seen[key]} already: give each id once")
        seen[key] = number
        if (target := by_key.get(key)) is None:
            unknown[key[0] if len(tasks) == 1 else f"{key[0]} ({key[1]})"] = None
            continue
        predictions[key] = prediction = _prediction(entry, target, where)
        if prediction.outcome is Outcome.UNPARSED and prediction.reason:
            unusable.append(f"line {number}, {key[0]}: {prediction.reason}")
    if unknown and not predictions:
        raise SuiteError(f"{path}: no id in it is in the data: {first_few(unknown)}; name the data that it answers")
    return PredictionFile(predictions=predictions, unknown=tuple(unknown), unusable=tuple(unusable))


def first_few(ids: Iterable[str]) -> str:
    """List the first few ids, and count the rest."""
    every = list(ids)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return f"{', '.join(every[:_SHOWN])}{more}"


def _entry(line: str, where: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{where}: is not JSON: {error}; write one object a line") from error
    if not isinstance(entry, dict) or "id" not in entry:
        raise SuiteError(f"{where}: is no object with an id: a line is {{id, task, answer, outcome}}")
    return entry


def _key(entry: dict[str, Any], tasks: tuple[str, ...], where: str) -> Key:
    task = entry.get("task") or (tasks[0] if len(tasks) == 1 else "")
    if task not in tasks:
        raise SuiteError(f"{where}: task: {task!r} is unknown; write one of {', '.join(tasks)}")
    return str(entry["id"]), str(task)


def _prediction(entry: dict[str, Any], target: Target, where: str) -> Prediction:
    answer = entry.get("answer")
    stated = entry.get("outcome") or Outcome.ANSWERED
    try:
        outcome = Outcome(stated)
    except ValueError as error:
        outcomes = ", ".join(Outcome)
        raise SuiteError(f"{where}: outcome: {stated!r} is unknown; write one of {outcomes}") from error
    if outcome is not Outcome.ANSWERED:
        return Prediction(id=target.id, task=target.task, outcome=outcome, reason=str(entry.get("reason", "")))
    grades = {name: float(entry[name]) for name in _GRADES if _is_grade(entry.get(name), where, name)}
    if not target.options:
        text = answer if isinstance(answer, str) else ""
        outcome = Outcome.ANSWERED if text.strip() else Outcome.UNPARSED
        reason = "" if text.strip() else f"its answer is {answer!r}, and should be text"
        return Prediction(id=target.id, task=target.task, outcome=outcome, text=text, grades=grades, reason=reason)
    places = chosen_positions(answer, target)
    if places is None:
        reason = f"its answer is {answer!r:.60}, and {_wanted(target)}"
        return Prediction(id=target.id, task=target.task, outcome=Outcome.UNPARSED, reason=reason)
    return Prediction(id=target.id, task=target.task, outcome=outcome, chosen=places, grades=grades)


def chosen_positions(answer: Any, target: Target) -> tuple[int, ...] | None:
    """Return the positions an answer names. None for no valid name, or several where one is expected."""
    if isinstance(answer, list):
        places = [_place(part, target) for part in answer]
        if any(place is None for place in places) or (len(places) != 1 and not target.several):
            return None
        return tuple(sorted({place for place in places if place is not None}))
    place = _place(answer, target)
    return None if place is None else (place,)


def _place(answer: Any, target: Target) -> int | None:
    if isinstance(answer, bool):
        answer = str(answer)
    if isinstance(answer, str):
        words = [word.casefold() for word in target.words]
        text = answer.strip().casefold()
        return words.index(text) if text in words else None
    if isinstance(answer, float) and answer.is_integer():
        answer = int(answer)
    return answer if isinstance(answer, int) and 0 <= answer < target.options else None


def _wanted(target: Target) -> str:
    words = f", or of {', '.join(target.words)}" if target.words else ""
    return f"should be {'a list of places' if target.several else 'a place'} from 0 to {target.options - 1}{words}"


def _is_grade(value: Any, where: str, name: str) -> bool:
    if value is None:
        return False
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 5:
        raise SuiteError(f"{where}: {name}: {value!r} is no grade; write a number from 1 to 5")
    return True
