"""Controls of a suite: choices that saw no input."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import lcm, prod

from norm_core.records.outcome import Outcome
from scoring.figures import Figures, average_figures
from sim_replays.items.target import Key, Prediction, Predictions, Target
from sim_replays.suites.suite import Control, Suite

# Chooses for every question; the number selects the random draw of a choice that draws.
Choice = Callable[[Sequence[Target], int], Predictions]
_DRAWS = 40


def uniform(suite: Suite, targets: Sequence[Target]) -> Figures:
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
    return lambda suite, targets: average_figures(
        [suite.figures(targets, choose(targets, number)) for number in range(_DRAWS)]
    )


def prior(targets: Sequence[Target], number: int = 0) -> Predictions:
    """Choose at the rate at which answers are right; uniformly where options are shuffled."""
    rights = {task: [target.right for target in targets if target.task == task] for task in _tasks(targets)}

    def drawn(target: Target, draw: random.Random) -> tuple[int, ...]:
        return draw.choice(rights[target.task]) if target.words else (draw.randrange(target.options),)

    return _predict(targets, drawn, number)


def most_frequent(targets: Sequence[Target], _: int = 0) -> Predictions:
    """Always choose the most frequent right answer, or the first option where options are shuffled."""
    best = {
        task: Counter(target.right for target in targets if target.task == task).most_common(1)[0][0]
        for task in _tasks(targets)
    }
    return _predict(targets, lambda target, draw: best[target.task] if target.words else (0,))


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
    return _predict(targets, lambda target, draw: (best[target.task],))


def _tasks(targets: Sequence[Target]) -> dict[str, None]:
    return dict.fromkeys(target.task for target in targets if target.options)


def _predict(
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
