"""The right answers to questions, and predictions of them. Only scorers see the right ones."""

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

Key = tuple[str, str]  # the id of an item, and a task

_GRADE_KEYS = ("grade", "verbal_grade", "nonverbal_grade")
_MAX_SHOWN = 5


class ReplyReading(StrEnum):
    """How a reply was understood that had not the asked form."""

    LENIENT = "read leniently"
    COERCED = "read by a model"


class SuiteError(TactfulError):
    """A suite, its data or a run cannot be used; the message names the thing, the problem and the remedy."""


@record
class Target:
    """The right answer to a question. Indices count from 0 in the dataset's own order of options.

    - `group` is its image, video or talk, over which intervals are computed; `by` are groups of figures.
    - `options` is their number, `kinds` are their kinds, and `words` are other names of them, such as letters.
    - `right` are the indices of the right ones; `several` allows more than one.
    - `references` are for grading a written answer, and `evidence`, by kind, for grading written evidence.
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
        """The id and task, which the prediction shares."""
        return self.id, self.task


@record
class Prediction:
    """The answer to a question. `chosen` are indices of options; `grades` of a judge run from 1 to 5.

    `reading` says how a reply was understood that had not the asked form.
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
        """The id and task, which the target shares."""
        return self.id, self.task


Predictions = Mapping[Key, Prediction]


def find_picks(target: Target, predictions: Predictions) -> tuple[int, ...] | None:
    """Return the indices that were chosen, which may be none where several may be right; None if unanswered."""
    prediction = predictions.get(target.key)
    return prediction.chosen if prediction is not None and prediction.outcome is Outcome.ANSWERED else None


def find_first_pick(target: Target, predictions: Predictions) -> int | None:
    """Return the first index that was chosen; None if unanswered."""
    picks = find_picks(target, predictions)
    return picks[0] if picks else None


def compute_iou(picked: frozenset[int], right: frozenset[int]) -> float:
    """Compute the intersection over union of two sets. Two empty sets give 1."""
    return len(picked & right) / len(picked | right) if picked | right else 1.0


@record
class PredictionFile:
    """The predictions of a file, the ids that are not in the data, and the answers that cannot be used."""

    predictions: dict[Key, Prediction]
    unknown: tuple[str, ...]
    unusable: tuple[str, ...]

    @property
    def readings(self) -> Counter[ReplyReading | None]:
        """The number of answers by how their reply was understood; None for the asked form."""
        return Counter(prediction.reading for prediction in self.predictions.values())


def read_predictions(path: Path, targets: Sequence[Target]) -> PredictionFile:
    """Read every line of a file of predictions."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteError(f"{path}: cannot be read: {error}; check the path, and save it as UTF-8") from error
    target_by_key = {target.key: target for target in targets}
    tasks = tuple(dict.fromkeys(target.task for target in targets))
    line_by_key: dict[Key, int] = {}
    predictions: dict[Key, Prediction] = {}
    unknown: dict[str, None] = {}
    unusable: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        entry = _read_entry(line, where)
        key = _read_key(entry, tasks, where)
        if key in line_by_key:
            raise SuiteError(
                f"{where}: {key[0]!r} ({key[1]}) stands in line {line_by_key[key]} already; give each id once"
            )
        line_by_key[key] = number
        target = target_by_key.get(key)
        if target is None:
            unknown[key[0] if len(tasks) == 1 else f"{key[0]} ({key[1]})"] = None
            continue
        predictions[key] = prediction = _read_prediction(entry, target, where)
        if prediction.outcome is Outcome.UNPARSED and prediction.reason:
            unusable.append(f"line {number}, {key[0]}: {prediction.reason}")
    if unknown and not predictions:
        raise SuiteError(f"{path}: no id in it is in the data ({list_first(unknown)}); name the data that it answers")
    return PredictionFile(predictions=predictions, unknown=tuple(unknown), unusable=tuple(unusable))


def list_first(ids: Iterable[str]) -> str:
    """Return the first few ids in words, and the number of the others."""
    every_id = list(ids)
    more = f" and {len(every_id) - _MAX_SHOWN} more" if len(every_id) > _MAX_SHOWN else ""
    return f"{', '.join(every_id[:_MAX_SHOWN])}{more}"


def _read_entry(line: str, where: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{where}: is not JSON: {error}; write one object a line") from error
    if not isinstance(entry, dict) or "id" not in entry:
        raise SuiteError(f"{where}: is not an object with an id; write {{id, task, answer, outcome}}")
    return entry


def _read_key(entry: dict[str, Any], tasks: tuple[str, ...], where: str) -> Key:
    task = entry.get("task") or (tasks[0] if len(tasks) == 1 else "")
    if task not in tasks:
        raise SuiteError(f"{where}: task: {task!r} is unknown; write one of {', '.join(tasks)}")
    return str(entry["id"]), str(task)


def _read_prediction(entry: dict[str, Any], target: Target, where: str) -> Prediction:
    answer = entry.get("answer")
    outcome_name = entry.get("outcome") or Outcome.ANSWERED
    try:
        outcome = Outcome(outcome_name)
    except ValueError as error:
        outcomes = ", ".join(Outcome)
        raise SuiteError(f"{where}: outcome: {outcome_name!r} is unknown; write one of {outcomes}") from error
    if outcome is not Outcome.ANSWERED:
        return Prediction(id=target.id, task=target.task, outcome=outcome, reason=str(entry.get("reason", "")))
    grades = {name: float(entry[name]) for name in _GRADE_KEYS if _is_grade(entry.get(name), where, name)}
    if not target.options:
        text = answer if isinstance(answer, str) else ""
        outcome = Outcome.ANSWERED if text.strip() else Outcome.UNPARSED
        reason = "" if text.strip() else f"its answer is {answer!r}, and should be text"
        return Prediction(id=target.id, task=target.task, outcome=outcome, text=text, grades=grades, reason=reason)
    indices = read_choice(answer, target)
    if indices is None:
        reason = f"its answer is {answer!r:.60}, and {_describe_wanted(target)}"
        return Prediction(id=target.id, task=target.task, outcome=Outcome.UNPARSED, reason=reason)
    return Prediction(id=target.id, task=target.task, outcome=outcome, chosen=indices, grades=grades)


def read_choice(answer: Any, target: Target) -> tuple[int, ...] | None:
    """Return the indices that an answer names; None for an invalid name, or for several where one is expected."""
    if isinstance(answer, list):
        indices = [_find_index(part, target) for part in answer]
        if None in indices or (len(indices) != 1 and not target.several):
            return None
        return tuple(sorted({index for index in indices if index is not None}))
    index = _find_index(answer, target)
    return None if index is None else (index,)


def _find_index(answer: Any, target: Target) -> int | None:
    """Return the index that a number or a word names; None if there is no such option."""
    if isinstance(answer, bool):
        answer = str(answer)
    if isinstance(answer, str):
        words = [word.casefold() for word in target.words]
        text = answer.strip().casefold()
        return words.index(text) if text in words else None
    if isinstance(answer, float) and answer.is_integer():
        answer = int(answer)
    return answer if isinstance(answer, int) and 0 <= answer < target.options else None


def _describe_wanted(target: Target) -> str:
    words = f", or of {', '.join(target.words)}" if target.words else ""
    return f"should be {'a list of numbers' if target.several else 'a number'} from 0 to {target.options - 1}{words}"


def _is_grade(value: Any, where: str, name: str) -> bool:
    """Return whether there is a grade, which has to be a number from 1 to 5."""
    if value is None:
        return False
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 5:
        raise SuiteError(f"{where}: {name}: {value!r} is not a grade; write a number from 1 to 5")
    return True
