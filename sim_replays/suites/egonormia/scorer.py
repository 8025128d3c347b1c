"""Score EgoNormia: best action, justification, both, and the overlap of sensible actions."""

from collections.abc import Mapping, Sequence

from norm_core.evaluation.figures import Figure, share
from norm_core.records.episode import Answer
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from sim_replays.suites.egonormia.reader import TASKS, EgoNormiaItem, EgoNormiaLabel
from sim_replays.suites.target import Predictions, Target, first_pick, picks_target

COLUMNS = ("both", "action", "justification", "sensible")


@record
class EgoNormiaScorecard:
    """The paper's four figures, and the share of items with the fifth option chosen, in percent."""

    both: Figure
    action: Figure
    justification: Figure
    sensible: Figure
    picked_fifth: Figure
    unanswered: int


def score(
    items: Sequence[EgoNormiaItem],
    labels: Sequence[EgoNormiaLabel],
    answers: Mapping[str, Answer],
    *,
    fifth_is_none: bool = True,
) -> EgoNormiaScorecard:
    """Compute the suite's metrics from answers by query id. A transformed fifth option is never right."""
    by_uid = {label.uid: label for label in labels}
    groups = [item.source for item in items]
    both, action, reason, overlap, fifth = [], [], [], [], []
    unanswered = 0
    for item in items:
        label = by_uid[item.uid]
        picked = [answers.get(f"{item.uid}:{task}") for task in ("action", "justification", "sensible")]
        unanswered += sum(answer is None or answer.outcome is not Outcome.ANSWERED for answer in picked)
        acts = mapped_back(_chosen(picked[0]), item.action_order)
        reasons = mapped_back(_chosen(picked[1]), item.justification_order)
        right = acts == {label.correct} and (fifth_is_none or label.correct != len(item.actions) - 1)
        action.append(float(right))
        reason.append(float(reasons == {label.correct}))
        both.append(float(right and reasons == {label.correct}))
        fifth.append(float(acts == {len(item.actions) - 1}))
        answered = picked[2] is not None and picked[2].outcome is Outcome.ANSWERED
        found = mapped_back(_chosen(picked[2]), item.action_order)
        overlap.append(intersection_over_union(found, label.sensible) if answered else 0.0)
    return EgoNormiaScorecard(
        both=share(both, groups),
        action=share(action, groups),
        justification=share(reason, groups),
        sensible=share(overlap, groups),
        picked_fifth=share(fifth, groups),
        unanswered=unanswered,
    )


def figures(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute the paper's four figures from answers in the dataset's order. No answer counts as wrong."""
    by_task = {task: [target for target in targets if target.task == task] for task in TASKS}
    hits = {
        task: [float(first_pick(target, predictions) in target.right) for target in by_task[task]]
        for task in ("action", "justification")
    }
    hits["both"] = [float(a and b) for a, b in zip(hits["action"], hits["justification"], strict=True)]
    hits["sensible"] = [
        0.0
        if (found := picks_target(target, predictions)) is None
        else intersection_over_union(frozenset(found), frozenset(target.right))
        for target in by_task["sensible"]
    ]
    groups = [target.group for target in by_task["action"]]
    return {column: share(hits[column], groups) for column in COLUMNS}


def intersection_over_union(found: frozenset[int], right: frozenset[int]) -> float:
    """Compute intersection over union. Two empty sets give 1."""
    return len(found & right) / len(found | right) if found | right else 1.0


def mapped_back(chosen: Sequence[int], order: Sequence[int]) -> frozenset[int]:
    """Map offered positions to dataset positions; `order` lists what stood at each offered position."""
    return frozenset(order[place] for place in chosen)


def _chosen(answer: Answer | None) -> tuple[int, ...]:
    return answer.chosen if answer else ()
