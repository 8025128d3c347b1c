"""Compare two runs of the same questions item by item, and find their first difference."""

from collections.abc import Mapping
from math import comb, erfc
from typing import Any

import numpy as np

from norm_core.evaluation.figures import bootstrap
from norm_core.evaluation.intervals import percentile_interval
from norm_core.records.record import record
from sim_replays.runs.results.run_folder import Run, RunError, predictions
from sim_replays.runs.transport import TimedAnswer
from sim_replays.suites.egonormia import intersection_over_union
from sim_replays.suites.target import Predictions, Target, picks_target


@record
class Difference:
    """One task in two runs. `difference` is second minus first in points, with its 95 % interval over groups."""

    task: str
    count: int
    first: float
    second: float
    difference: float
    low: float
    high: float
    only_first_right: int
    only_second_right: int
    mcnemar_p: float


def compare(first: Run, second: Run) -> list[Difference]:
    """Compare each task over all questions. Unanswered questions count as wrong."""
    if {target.key for target in first.key.targets} != {target.key for target in second.key.targets}:
        raise RunError(f"{first.folder} and {second.folder} are not of the same questions, and cannot be paired")
    ours, theirs = predictions(first).predictions, predictions(second).predictions
    tasks = dict.fromkeys(target.task for target in first.key.targets)
    return [_of_task(task, [t for t in first.key.targets if t.task == task], ours, theirs) for task in tasks]


def mcnemar(only_first: int, only_second: int) -> float:
    """Compute the exact two-sided p-value of McNemar's test."""
    total = only_first + only_second
    tail = sum(comb(total, hits) for hits in range(min(only_first, only_second) + 1))
    return min(1.0, float(2 * tail / 2.0**total)) if total < 1000 else _by_normal(only_first, only_second)


def _by_normal(only_first: int, only_second: int) -> float:
    """Approximate it with the normal distribution, with continuity correction, for counts too large for the sum."""
    z = (abs(only_first - only_second) - 1) / (only_first + only_second) ** 0.5
    return erfc(max(z, 0.0) / 2**0.5)


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


def _of_task(task: str, targets: list[Target], ours: Predictions, theirs: Predictions) -> Difference:
    marks = [np.array([_mark(target, answers) for target in targets]) for answers in (ours, theirs)]
    groups = [target.group for target in targets]
    gains = marks[1] - marks[0]
    low, high = percentile_interval(bootstrap(list(gains), groups))
    only_first = int(((marks[0] == 1) & (marks[1] < 1)).sum())
    only_second = int(((marks[1] == 1) & (marks[0] < 1)).sum())
    return Difference(
        task=task,
        count=len(targets),
        first=100 * float(marks[0].mean()),
        second=100 * float(marks[1].mean()),
        difference=100 * float(gains.mean()),
        low=100 * low,
        high=100 * high,
        only_first_right=only_first,
        only_second_right=only_second,
        mcnemar_p=mcnemar(only_first, only_second),
    )


def _mark(target: Target, answers: Predictions) -> float:
    """Score 1 for right and 0 for wrong; for sets, the overlap with the right set."""
    places = picks_target(target, answers)
    return 0.0 if places is None else intersection_over_union(frozenset(places), frozenset(target.right))
