"""Score EgoNormia: best action, justification, both, and the overlap of sensible actions."""

from collections.abc import Sequence

from norm_core.evaluation.figures import Figure, share
from sim_replays.suites.egonormia.reader import TASKS
from sim_replays.suites.target import Predictions, Target, first_pick, picks_target

COLUMNS = ("both", "action", "justification", "sensible")


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
