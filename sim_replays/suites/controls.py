"""Controls of a suite: choices that see no input."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import lcm, prod

from norm_core.records.outcome import Outcome
from scoring.figures import Figures, average_figures
from sim_replays.items.target import Key, Prediction, Predictions, Target
from sim_replays.suites.suite import Control, Suite

# Chooses for every question. The number seeds a choice that is drawn.
Choice = Callable[[Sequence[Target], int], Predictions]

_DRAWS = 40


def score_uniform_choice(suite: Suite, targets: Sequence[Target]) -> Figures:
    """Compute what a uniform choice among the options scores, from each choice of each question once.

    This is exact for shares. An F1 is that of the expected counts.
    """
    repeats = {
        task: lcm(*(target.options for target in targets if target.task == task)) for task in _list_tasks(targets)
    }
    strides: dict[str, int] = {}
    joint_tasks = [task for tasks in suite.joint_tasks.values() for task in tasks if task in repeats]
    if joint_tasks:  # The choices of an item in several tasks are independent, so all their combinations occur.
        combinations = lcm(prod(repeats[task] for task in joint_tasks), *repeats.values())
        for index, task in enumerate(joint_tasks):
            strides[task] = prod(repeats[earlier] for earlier in joint_tasks[:index])
        repeats = dict.fromkeys(repeats, combinations)
    copies: list[Target] = []
    predictions: dict[Key, Prediction] = {}
    for target in targets:
        for repeat in range(repeats.get(target.task, 0)):
            copy = replace(target, id=f"{target.id}#{repeat}#")
            chosen = (repeat // strides.get(target.task, 1) % target.options,)
            copies.append(copy)
            predictions[copy.key] = _make_prediction(copy, chosen)
    figures = suite.compute_figures(copies, predictions)
    return {name: replace(figure, low=figure.value, high=figure.value) for name, figure in figures.items()}


def make_fixed_control(choose: Choice) -> Control:
    """Make a control of a choice that is not drawn."""
    return lambda suite, targets: suite.compute_figures(targets, choose(targets, 0))


def make_drawn_control(choose: Choice) -> Control:
    """Make a control of a choice that is drawn: the mean and the spread of several draws."""
    return lambda suite, targets: average_figures(
        [suite.compute_figures(targets, choose(targets, seed)) for seed in range(_DRAWS)]
    )


def draw_by_rate(targets: Sequence[Target], seed: int = 0) -> Predictions:
    """Draw each answer at the rate at which it is right; uniformly where options are shuffled."""
    right_by_task = {task: [target.right for target in targets if target.task == task] for task in _list_tasks(targets)}

    def draw_answer(target: Target, draw: random.Random) -> tuple[int, ...]:
        return draw.choice(right_by_task[target.task]) if target.words else (draw.randrange(target.options),)

    return _predict(targets, draw_answer, seed)


def choose_most_frequent(targets: Sequence[Target], _: int = 0) -> Predictions:
    """Choose the most frequent right answer of each task, or the first option where options are shuffled."""
    most_frequent = {
        task: Counter(target.right for target in targets if target.task == task).most_common(1)[0][0]
        for task in _list_tasks(targets)
    }
    return _predict(targets, lambda target, draw: most_frequent[target.task] if target.words else (0,))


def choose_best_position(targets: Sequence[Target], _: int = 0) -> Predictions:
    """Choose the position, in the dataset's own order, that scores best for each task."""
    best: dict[str, int] = {}
    for task in _list_tasks(targets):
        task_targets = [target for target in targets if target.task == task]
        score_by_index = [0.0] * max(target.options for target in task_targets)
        for target in task_targets:
            for index in target.right:
                score_by_index[index] += 1 / len(target.right)
        best[task] = score_by_index.index(max(score_by_index))
    return _predict(targets, lambda target, draw: (best[target.task],))


def _list_tasks(targets: Sequence[Target]) -> list[str]:
    """List the tasks with options."""
    return list(dict.fromkeys(target.task for target in targets if target.options))


def _predict(
    targets: Sequence[Target], choose: Callable[[Target, random.Random], tuple[int, ...]], seed: int = 0
) -> Predictions:
    """Choose in each question with options. The id of the question and the seed determine the draw."""
    return {
        target.key: _make_prediction(target, choose(target, random.Random(f"{target.task}:{target.id}:{seed}")))
        for target in targets
        if target.options
    }


def _make_prediction(target: Target, chosen: tuple[int, ...]) -> Prediction:
    return Prediction(id=target.id, task=target.task, outcome=Outcome.ANSWERED, chosen=chosen)


# The controls of a suite whose options are labels.
LABEL_CONTROLS = {
    "most frequent": make_fixed_control(choose_most_frequent),
    "prior": make_drawn_control(draw_by_rate),
    "uniform": score_uniform_choice,
}
