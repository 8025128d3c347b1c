"""Read labelled choices from the selector's runs, and refuse what cannot be fitted on."""

import hashlib
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from action_selector.choose.calibration import list_dependencies
from action_selector.selector import SelectorFiles
from calibration.judge_fit import LabelError
from calibration.scalers import LabelledChoice
from norm_core.records.episode import Answer
from norm_core.records.provenance import Provenance
from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from sim_replays.items.target import Target

if TYPE_CHECKING:  # it needs inspect_ai
    from sim_replays.evals.logs import RobotRun

FOLDS = 5
FEWEST_CHOICES = 100
FEWEST_GROUPS = 2 * FOLDS
# May differ between runs that are fitted on together.
_FREE = ("seed", "limit", "data", "only")
_ALIKE = 0.01


def fold_of(group: str) -> int:
    """Assign a fold by image, because items of one image share wrong options, and by digest, for any order."""
    return hashlib.sha256(group.encode()).digest()[0] % FOLDS


@record
class AnsweredChoice:
    """A labelled choice, and the option that the selector picked."""

    labelled: LabelledChoice
    picked: int

    @property
    def is_right(self) -> bool:
        """Whether the pick is the right option."""
        return self.picked == self.labelled.right


@record
class SelectorLabels:
    """The choices of some runs of one selector, and what their probabilities depend on."""

    choices: tuple[AnsweredChoice, ...]
    made_with: dict[str, str]
    without_model: int = 0  # answered by similarity where the model failed; these are never scaled


def read_choices(runs: "Sequence[RobotRun]") -> SelectorLabels:
    """Collect the answered questions with one right option; raise LabelError if they do not suffice."""
    _check_alike(runs)
    choices: list[AnsweredChoice] = []
    labels: dict[tuple[str, str], tuple[int, int]] = {}
    has_model = bool(_model_of(runs[0]))
    without_model = 0
    for number, run in enumerate(runs):
        for question in run.questions:
            target, answer = question.target, question.answer
            if target.several or not answer.probabilities:
                continue
            _check_label(labels, target, runs, number)
            if has_model and not answer.provenance.model:
                without_model += 1
                continue
            choices.append(_choice(answer, target, question.order, str(run.path)))
    _check_enough(choices, ", ".join(str(run.path) for run in runs))
    return SelectorLabels(choices=tuple(choices), made_with=_made_with(runs[0]), without_model=without_model)


def _choice(answer: Answer, target: Target, order: Sequence[int], source: str) -> AnsweredChoice:
    stated = answer.probabilities
    if len(stated) != len(order) or not all(isfinite(p) and 0 <= p <= 1 for p in stated):
        raise LabelError(
            f"{source}: the probabilities of {target.id} are {stated}; each must lie between 0 and 1: run it anew"
        )
    if abs(sum(stated) - 1) > _ALIKE:
        raise LabelError(f"{source}: the probabilities of {target.id} sum to {sum(stated):.3f}, not to 1: run it anew")
    by_place = [0.0] * len(order)
    for place, p in zip(order, stated, strict=True):
        by_place[place] = p
    picked = order[answer.chosen[0]] if answer.chosen else by_place.index(max(by_place))
    labelled = LabelledChoice(probabilities=tuple(by_place), right=target.right[0], group=target.group)
    return AnsweredChoice(labelled=labelled, picked=picked)


def _check_label(
    labels: dict[tuple[str, str], tuple[int, int]], target: Target, runs: "Sequence[RobotRun]", number: int
) -> None:
    right, first = labels.setdefault(target.key, (target.right[0], number))
    if right != target.right[0]:
        raise LabelError(
            f"{runs[number].path}: the right option of {target.id} is place {target.right[0]}, and in "
            f"{runs[first].path} place {right}; correct the labels, or leave out one run"
        )
    if first != number:
        raise LabelError(
            f"{runs[number].path}: {target.id} was answered in {runs[first].path} already, and would count twice; "
            "leave out one run"
        )


def _check_alike(runs: "Sequence[RobotRun]") -> None:
    """Runs are fitted on together only where the same selector answered the same kind of question."""
    for run in runs:
        if "coverage" not in run.node_settings:
            raise LabelError(
                f"{run.path}: was answered by the judge, which keeps no set; name a run of the selector (bench run)"
            )
        if in_text := sum(question.is_read_from_text for question in run.questions):
            raise LabelError(
                f"{run.path}: options of {count_of(in_text, 'answer')} were read from text, which states no "
                "probability; set the model's `answers` to logprobs, and run it anew"
            )
        if run.node_settings.get("calibration"):
            raise LabelError(f"{run.path}: was answered with a calibration already; run it without `calibration`")
    first = _compared(runs[0])
    for run in runs[1:]:
        if different := sorted(name for name, value in _compared(run).items() if first.get(name) != value):
            raise LabelError(
                f"{run.path}: differs from {runs[0].path} in {', '.join(different)}; fit on runs of one selector"
            )


def _compared(run: "RobotRun") -> dict[str, object]:
    asking = {name: value for name, value in run.asking.items() if name not in _FREE}
    return {**asking, **_made_with(run)}


def _check_enough(choices: Sequence[AnsweredChoice], source: str) -> None:
    if not choices:
        raise LabelError(f"{source}: holds no answers with probabilities to calibrate on; run it again (bench run)")
    if len(choices) < FEWEST_CHOICES:
        raise LabelError(
            f"{source}: {len(choices)} labelled choices have probabilities, and {FEWEST_CHOICES} are needed: "
            f"{FEWEST_CHOICES - len(choices)} are missing; label more, or raise --limit of the run"
        )
    groups = len({choice.labelled.group for choice in choices})
    if groups < FEWEST_GROUPS:
        raise LabelError(
            f"{source}: the choices are of {count_of(groups, 'image')}, and {FEWEST_GROUPS} are needed to leave some "
            f"out: {FEWEST_GROUPS - groups} are missing; label more images"
        )
    right = sum(choice.is_right for choice in choices)
    if right in {0, len(choices)}:
        kind = "right" if right else "wrong"
        raise LabelError(
            f"{source}: all {len(choices)} answers are {kind}, so nothing tells how far a probability holds; "
            "label choices of both kinds"
        )


def _made_with(run: "RobotRun") -> dict[str, str]:
    """Return what the run's probabilities depend on; a model's weights and prompt stand in its answers."""
    files = SelectorFiles.model_validate(run.node_settings)
    of_model = _model_of(run)
    needed = list_dependencies(files, run.encoder_sha256, None)
    if of_model:
        needed |= {
            "model": of_model.model,
            "weights": of_model.weights_sha256,
            "prompt": of_model.prompt_version,
        }
    return needed


def _model_of(run: "RobotRun") -> Provenance | None:
    return next((row.answer.provenance for row in run.questions if row.answer.provenance.model), None)
