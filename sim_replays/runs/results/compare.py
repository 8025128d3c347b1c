"""Compare two runs of the same questions item by item, and find their first difference."""

from collections.abc import Iterable, Mapping, Sequence
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from norm_core.evaluation.intervals import interval_of_gain, sums_by_group
from norm_core.records.record import record
from sim_replays.runs.results.json_lines import RunError
from sim_replays.runs.results.run_folder import Run, predictions
from sim_replays.runs.transport import TimedAnswer
from sim_replays.suites.report import KINDS
from sim_replays.suites.suite import suite_called
from sim_replays.suites.target import Predictions, Target, intersection_over_union, picks_target

Array = NDArray[np.float64]
_FINEST = 420  # steps of a score, at most: scores of sets of up to 7 options are whole numbers of them


@record
class Difference:
    """One task in two runs. `difference` is second minus first in points, with its 95 % interval over groups.

    `p` is of the sign-flip test over groups: the exact McNemar test where each group has one question.
    """

    task: str
    count: int
    first: float
    second: float
    difference: float
    low: float
    high: float
    only_first_right: int
    only_second_right: int
    p: float


def why_not_paired(first: Run, second: Run) -> str:
    """State why two runs cannot be compared item by item; empty if they can."""
    if first.kind != second.kind:
        kinds = f"{first.name} is of {KINDS[first.kind]}, {second.name} of {KINDS[second.kind]}"
        return f"not paired: {kinds}; prompts and steps differ, not the model alone"
    if {target.key for target in first.key.targets} != {target.key for target in second.key.targets}:
        return f"not paired: {first.name} and {second.name} are not of the same questions; ask both the same"
    return ""


def compare(first: Run, second: Run) -> list[Difference]:
    """Compare each task with options, and each joint figure. Unanswered questions count as wrong.

    Raises RunError where the runs cannot be paired.
    """
    if why := why_not_paired(first, second):
        raise RunError(why)
    answers = [predictions(run).predictions for run in (first, second)]
    by_task: dict[str, dict[str, Target]] = {}
    for target in first.key.targets:
        if target.options:
            by_task.setdefault(target.task, {})[target.id] = target
    rows = [
        _difference(task, list(targets.values()), [_marks(targets.values(), each) for each in answers])
        for task, targets in by_task.items()
    ]
    for name, tasks in suite_called(first.key.suite).joint.items():
        parts = [by_task.get(task, {}) for task in tasks]
        ids = [item for item in parts[0] if all(item in part for part in parts)]
        marks = [
            np.prod([_marks([part[item] for item in ids], each) == 1 for part in parts], axis=0, dtype=float)
            for each in answers
        ]
        rows += [_difference(name, [parts[0][item] for item in ids], marks)] if ids else []
    return rows


def sign_flip_p(gains: Sequence[float], groups: Sequence[str], steps: int = 1) -> float:
    """Compute the two-sided p-value of no difference, exactly: the gains of a group change their sign together.

    `steps` makes whole numbers of the gains. With one gain of 1, 0 or -1 per group this is the exact McNemar test.
    """
    sums = np.rint(steps * sums_by_group(gains, groups)[0]).astype(int)
    distribution = np.ones(1)  # of the sum of all groups, from the lowest
    for size in np.abs(sums[sums != 0]):
        turned = np.zeros(len(distribution) + 2 * size)
        turned[: len(distribution)] += distribution / 2
        turned[2 * size :] += distribution / 2
        distribution = turned
    distances = np.abs(np.arange(len(distribution)) - len(distribution) // 2)
    return min(1.0, float(distribution[distances >= abs(sums.sum())].sum()))


def first_differing_question(first: Run, second: Run) -> dict[str, Any] | None:
    """Find the first question, in bag order, that differs in more than duration. None means parity."""
    for query_id in first.key.orders | second.key.orders:
        ours, theirs = _plain(first.told, query_id), _plain(second.told, query_id)
        if ours != theirs:
            differing = sorted(name for name in ours | theirs if ours.get(name) != theirs.get(name))
            return {
                "query_id": query_id,
                "differs_in": differing,
                "first": {name: ours.get(name) for name in differing},
                "second": {name: theirs.get(name) for name in differing},
            }
    return None


def _plain(answers: Mapping[str, TimedAnswer], query_id: str) -> dict[str, Any]:
    if query_id not in answers:
        return {"answer": "missing"}
    answer = answers[query_id].answer
    known = answer.provenance
    return {
        "outcome": answer.outcome.value,
        "chosen": answer.chosen,
        "probabilities": answer.probabilities,
        "text": answer.text,
        "reason": answer.reason,
        "window_digest": known.window_digest,
        "prompt_digest": known.prompt_digest,
        "model": known.model,
        "weights_sha256": known.weights_sha256,
        "config_sha256": known.config_sha256,
    }


def _difference(task: str, targets: list[Target], marks: list[Array]) -> Difference:
    groups = [target.group for target in targets]
    gains = list(marks[1] - marks[0])
    low, high = interval_of_gain(gains, groups)
    steps = min(_FINEST, lcm(*(size + 1 for target in targets if target.several for size in range(target.options))))
    return Difference(
        task=task,
        count=len(targets),
        first=100 * float(marks[0].mean()),
        second=100 * float(marks[1].mean()),
        difference=100 * float(np.mean(gains)),
        low=100 * low,
        high=100 * high,
        only_first_right=int(((marks[0] == 1) & (marks[1] < 1)).sum()),
        only_second_right=int(((marks[1] == 1) & (marks[0] < 1)).sum()),
        p=sign_flip_p(gains, groups, steps),
    )


def _marks(targets: Iterable[Target], answers: Predictions) -> Array:
    return np.array([mark(target, answers) for target in targets])


def mark(target: Target, answers: Predictions) -> float:
    """Score 1 for right and 0 for wrong; for sets, the overlap with the right set."""
    places = picks_target(target, answers)
    return 0.0 if places is None else intersection_over_union(frozenset(places), frozenset(target.right))
