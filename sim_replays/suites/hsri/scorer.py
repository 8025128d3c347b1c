"""Score HSRI's eight tasks, by seed."""

from collections.abc import Sequence
from statistics import mean, stdev

import numpy as np

from norm_core.evaluation.f1 import confusion, f1_score, macro_f1
from norm_core.evaluation.figures import Figure, share
from norm_core.evaluation.intervals import cluster_interval, draw_clusters
from norm_core.records.flag import Attribute
from sim_replays.suites.hsri.reader import CHOICES, WORDS
from sim_replays.suites.target import Predictions, Target, first_pick, picks_target

_DRAWS = 1000


COLUMNS = (
    "error3_accuracy", "error3_f1", "units_accuracy", "units_f1", "error2_accuracy", "error2_f1", "attributes_exact",
    "attributes_f1", "attributes_partial", "multi_accuracy", "multi_f1", "pre", "post", "rationale", "correction",
)  # fmt: skip


def figures(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute the paper's metrics. Several seeds give their mean, with the standard deviation as the interval."""
    seeds = sorted({target.by["seed"] for target in targets})
    by_seed = [_of_one_seed([t for t in targets if t.by["seed"] == seed], predictions) for seed in seeds]
    if len(by_seed) == 1:
        return by_seed[0]
    found = {}
    for column in COLUMNS:
        cards = [card[column] for card in by_seed if card[column].count]
        values = [card.value for card in cards] or [float("nan")]
        spread = stdev(values) if len(values) > 1 else 0.0
        middle = mean(values)
        count = sum(card.count for card in cards)
        low, high = max(0.0, middle - spread), min(100.0, middle + spread)
        found[column] = Figure(value=middle, low=low, high=high, count=count)
    return found


def _of_one_seed(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for task in ("error3", "units", "error2", "multi"):
        asked = [target for target in targets if target.task == task]
        picks = [first_pick(target, predictions) for target in asked]
        found[f"{task}_accuracy"] = _accuracy(asked, predictions)
        found[f"{task}_f1"] = macro_f1(confusion([t.right[0] for t in asked], picks, len(WORDS[task])))
    asked = [target for target in targets if target.task == "attributes"]
    groups = [target.group for target in asked]
    sets = [picks_target(target, predictions) for target in asked]
    exact = [float(one is not None and set(one) == set(t.right)) for one, t in zip(sets, asked, strict=True)]
    partial = [float(bool(set(one or ()) & set(t.right))) for one, t in zip(sets, asked, strict=True)]
    found["attributes_exact"], found["attributes_partial"] = share(exact, groups), share(partial, groups)
    found["attributes_f1"] = _macro_f1_of_sets(asked, sets)
    for task in CHOICES:
        found[task] = _accuracy([target for target in targets if target.task == task], predictions)
    return {column: found[column] for column in COLUMNS}


def _accuracy(asked: Sequence[Target], predictions: Predictions) -> Figure:
    hits = [float(first_pick(target, predictions) in target.right) for target in asked]
    return share(hits, [target.group for target in asked])


def _macro_f1_of_sets(asked: Sequence[Target], sets: Sequence[tuple[int, ...] | None]) -> Figure:
    """Compute the mean F1 over attributes, with a bootstrap interval over sessions."""
    if not asked:
        return share([], [])
    wanted = np.array([[place in target.right for place in range(len(Attribute))] for target in asked])
    found = np.array([[place in (one or ()) for place in range(len(Attribute))] for one in sets])
    names, at = np.unique([target.group for target in asked], return_inverse=True)
    of_session = np.zeros((2, len(names), len(Attribute)))
    np.add.at(of_session[0], at, wanted & found)
    np.add.at(of_session[1], at, wanted.astype(int) + found)
    drawn = of_session[:, draw_clusters(len(names), _DRAWS)].sum(axis=2)
    value = float(f1_score(*of_session.sum(axis=1)).mean())
    low, high = cluster_interval(f1_score(*drawn).mean(axis=-1), value, len(names))
    return Figure(value=100 * value, low=100 * low, high=100 * high, count=len(asked))
