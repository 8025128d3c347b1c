"""The right answers to questions, predictions of them, and controls that saw no input. Only scorers see these."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from math import lcm, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from norm_core.evaluation.figures import Figures, average
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError

Key = tuple[str, str]  # an item's id and a task


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
    """The answer to a question. `chosen` are positions; `grades` from a judge run from 1 to 5."""

    id: str
    task: str
    outcome: Outcome
    chosen: tuple[int, ...] = ()
    text: str = ""
    grades: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

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
        raise SuiteError(
            f"{path}: no id in it is in the data: {prediction_by_name(unknown)}; name the data that it answers"
        )
    return PredictionFile(predictions=predictions, unknown=tuple(unknown), unusable=tuple(unusable))


def prediction_by_name(ids: Iterable[str]) -> str:
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
    places = prediction_by_index(answer, target)
    if places is None:
        reason = f"its answer is {answer!r:.60}, and {_wanted(target)}"
        return Prediction(id=target.id, task=target.task, outcome=Outcome.UNPARSED, reason=reason)
    return Prediction(id=target.id, task=target.task, outcome=outcome, chosen=places, grades=grades)


def prediction_by_index(answer: Any, target: Target) -> tuple[int, ...] | None:
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


if TYPE_CHECKING:
    from sim_replays.suites.suite import Suite

# Chooses for every question; the number selects the random draw of a choice that draws.
Choice = Callable[[Sequence[Target], int], Predictions]
Control = Callable[["Suite", Sequence[Target]], Figures]
_DRAWS = 40


def uniform(suite: "Suite", targets: Sequence[Target]) -> Figures:
    """Compute what choosing any option with equal probability scores, from each choice of each question once.

    This is exact for shares. An F1 is that of the expected counts.
    """
    counts = {task: lcm(*(target.options for target in targets if target.task == task)) for task in _tasks(targets)}
    joined = tuple(task for tasks in suite.joint.values() for task in tasks if task in counts)
    if joined:  # choices of an item's questions do not depend on each other
        whole = lcm(prod(counts[task] for task in joined), *counts.values())
        strides = {task: prod(counts[before] for before in joined[:at]) for at, task in enumerate(joined)}
        counts = dict.fromkeys(counts, whole)
    else:
        strides = {}
    turned, answers = [], {}
    for target in targets:
        for turn in range(counts.get(target.task, 0)):
            turned_target = replace(target, id=f"{target.id}#{turn}#")
            chosen = (turn // strides.get(target.task, 1) % target.options,)
            turned.append(turned_target)
            answers[turned_target.key] = Prediction(
                id=turned_target.id, task=turned_target.task, outcome=Outcome.ANSWERED, chosen=chosen
            )
    figures = suite.figures(turned, answers)
    return {name: replace(figure, low=figure.value, high=figure.value) for name, figure in figures.items()}


def once(choose: Choice) -> Control:
    """Score a choice that does not draw."""
    return lambda suite, targets: suite.figures(targets, choose(targets, 0))


def over_draws(choose: Choice) -> Control:
    """Score a choice that draws: the mean and the spread of several draws."""
    return lambda suite, targets: average([suite.figures(targets, choose(targets, number)) for number in range(_DRAWS)])


def prior(targets: Sequence[Target], number: int = 0) -> Predictions:
    """Choose at the rate at which answers are right; uniformly where options are shuffled."""
    rights = {task: [target.right for target in targets if target.task == task] for task in _tasks(targets)}

    def drawn(target: Target, draw: random.Random) -> tuple[int, ...]:
        return draw.choice(rights[target.task]) if target.words else (draw.randrange(target.options),)

    return _each(targets, drawn, number)


def most_frequent(targets: Sequence[Target], _: int = 0) -> Predictions:
    """Always choose the most frequent right answer, or the first option where options are shuffled."""
    best = {
        task: Counter(target.right for target in targets if target.task == task).most_common(1)[0][0]
        for task in _tasks(targets)
    }
    return _each(targets, lambda target, draw: best[target.task] if target.words else (0,))


def first_always(targets: Sequence[Target], _: int = 0) -> Predictions:
    """Always choose the first option: for VideoNorms, that a norm is adhered to."""
    return _each(targets, lambda target, draw: (0,))


def best_constant(targets: Sequence[Target], _: int = 0) -> Predictions:
    """Always choose the position, in the dataset's own order, that scores best for the task."""
    best: dict[str, int] = {}
    for task in _tasks(targets):
        asked = [target for target in targets if target.task == task]
        worth: dict[int, float] = dict.fromkeys(range(max(target.options for target in asked)), 0.0)
        for target in asked:
            for place in target.right:
                worth[place] += 1 / len(target.right)
        best[task] = max(worth, key=worth.__getitem__)
    return _each(targets, lambda target, draw: (best[target.task],))


def _tasks(targets: Sequence[Target]) -> dict[str, None]:
    return dict.fromkeys(target.task for target in targets if target.options)


def _each(
    targets: Sequence[Target], choose: Callable[[Target, random.Random], tuple[int, ...]], number: int = 0
) -> Predictions:
    """Choose in each question among options, with a random generator seeded by the question's id."""
    predictions: dict[Key, Prediction] = {}
    for target in targets:
        if target.options:
            chosen = choose(target, random.Random(f"{target.task}:{target.id}:{number}"))
            predictions[target.key] = Prediction(
                id=target.id, task=target.task, outcome=Outcome.ANSWERED, chosen=chosen
            )
    return predictions
