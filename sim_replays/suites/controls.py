"""Baselines that see no input. A figure means something only beside them."""

import random
from collections import Counter
from collections.abc import Callable, Sequence

from norm_core.records.outcome import Outcome
from sim_replays.suites.target import Key, Prediction, Predictions, Target

# The number selects the random draw of a control that draws.
Control = Callable[[Sequence[Target], int], Predictions]
DRAWS = 40


def uniform(targets: Sequence[Target], number: int = 0) -> Predictions:
    """Choose any option with equal probability. Deterministic."""
    return _each(targets, lambda target, draw: (draw.randrange(target.options),), number)


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


DRAWN = (uniform, prior)


def _tasks(targets: Sequence[Target]) -> dict[str, None]:
    return dict.fromkeys(target.task for target in targets if target.options)


def _each(
    targets: Sequence[Target], choose: Callable[[Target, random.Random], tuple[int, ...]], number: int = 0
) -> Predictions:
    """Choose in each question among options, with a random generator seeded by the question's id."""
    found: dict[Key, Prediction] = {}
    for target in targets:
        if target.options:
            chosen = choose(target, random.Random(f"{target.task}:{target.id}:{number}"))
            found[target.key] = Prediction(id=target.id, task=target.task, outcome=Outcome.ANSWERED, chosen=chosen)
    return found
