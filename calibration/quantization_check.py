"""Compare a model's answers with those of a quantized one about the same units, against a tolerance."""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum

import numpy as np

from calibration.judge_fit import CLASSES, LabelError
from norm_core.evaluation.intervals import draw_clusters, percentile_interval
from norm_core.evaluation.probabilities import Bin, brier_score, expected_calibration_error, reliability_bins
from norm_core.evaluation.proportions import trials_to_tell, wilson_interval
from norm_core.models.manifest import Manifest
from norm_core.records.flag import Polarity
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.wording import count_of

_LEAST = 1e-6  # of a probability, in a logarithm
_DRAWS = 2_000
_ALIKE = 0.02  # two manifests of one model may round its parameters


@record
class ModelAnswer:
    """One model's answer about a unit; no probabilities unless the outcome is ANSWERED."""

    outcome: Outcome
    reason: str
    probabilities: tuple[float, ...]
    seconds: float

    @property
    def choice(self) -> int:
        """The likeliest option, the first on a tie."""
        return self.probabilities.index(max(self.probabilities))

    @property
    def is_answer(self) -> bool:
        """Whether the model answered."""
        return self.outcome is Outcome.ANSWERED


@record
class ComparedUnit:
    """A unit, the words that are judged, and both answers."""

    bag: str
    unit_id: str
    words: str
    polarity: Polarity | None
    replies: tuple[ModelAnswer, ModelAnswer]


@record
class Share:
    """A share of units with its 95 % interval; units count as independent."""

    units: int
    of: int
    value: float
    interval: tuple[float, float]


@record
class Flip:
    """A unit about which the models answer differently."""

    bag: str
    unit_id: str
    words: str
    answers: tuple[str, str]
    probabilities: tuple[tuple[float, ...], tuple[float, ...]]
    shift: float


@record
class Shift:
    """How far probabilities moved: of each option over all units, and the divergence from the first model in nats."""

    mean: float
    most: float
    divergence: float


@record
class AnswerCalibration:
    """A model's stated probability of its answer against the labels."""

    accuracy: float
    expected_calibration_error: float
    brier: float
    bins: tuple[Bin, ...]


@record
class Ratio:
    """The first model's time over the second's, summed over units asked in alternating order."""

    value: float
    interval: tuple[float, float]


class Result(StrEnum):
    """How the check ends."""

    MET = "met"
    NOT_MET = "not met"
    CANNOT_TELL = "cannot tell"


@record
class ToleranceVerdict:
    """Whether at most the tolerated share of answers changes; `units_missing` is an estimate, None for unknown."""

    result: Result
    tolerance: float
    units_missing: int | None = None


@record
class QuantizationFigures:
    """All that is measured of two models on the same units."""

    units: int
    answered_by_both: int
    unanswered: tuple[dict[str, int], dict[str, int]]  # by outcome
    agreement: Share | None  # among units that both answered
    changed: Share | None  # flips, and answers that only one model gives, among units that one answered
    flips: tuple[Flip, ...]  # by shift, the largest first
    shift: Shift | None
    calibration: tuple[AnswerCalibration, AnswerCalibration] | None
    commonest: float | None  # control: the accuracy of always the commonest label, on the same units
    seconds: tuple[float, float]  # the median of a unit
    speed: Ratio | None
    verdict: ToleranceVerdict


def measure_pair(
    units: Sequence[ComparedUnit], answers: Sequence[str], tolerance: float, *, labelled: bool
) -> QuantizationFigures:
    """Compare the answers about at least one unit; raise LabelError where labels allow no calibration."""
    both = [one for one in units if all(reply.is_answer for reply in one.replies)]
    flips = sorted(_flips(both, answers), key=lambda flip: -flip.shift)
    answered = sum(any(reply.is_answer for reply in one.replies) for one in units)
    changed = _share(answered - len(both) + len(flips), answered)
    first, second = (np.array([one.replies[side].seconds for one in units[1:]]) for side in (0, 1))
    return QuantizationFigures(
        units=len(units),
        answered_by_both=len(both),
        unanswered=(_unanswered(units, 0), _unanswered(units, 1)),
        agreement=_share(len(both) - len(flips), len(both)),
        changed=changed,
        flips=tuple(flips),
        shift=_shift(both),
        calibration=_calibrations(both) if labelled else None,
        commonest=_commonest(both) if labelled else None,
        seconds=(float(np.median(first)), float(np.median(second))) if len(first) else (0.0, 0.0),
        speed=_ratio(first, second),
        verdict=judge_change(changed, tolerance),
    )


def judge_change(changed: Share | None, tolerance: float) -> ToleranceVerdict:
    """Return the verdict by the interval; where it holds the tolerance, say how many units more would settle it."""
    if changed is None:
        return ToleranceVerdict(result=Result.CANNOT_TELL, tolerance=tolerance)
    low, high = changed.interval
    if high <= tolerance:
        return ToleranceVerdict(result=Result.MET, tolerance=tolerance)
    if low > tolerance:
        return ToleranceVerdict(result=Result.NOT_MET, tolerance=tolerance)
    needed = trials_to_tell(changed.value, tolerance)
    missing = max(1, needed - changed.of) if needed else None
    return ToleranceVerdict(result=Result.CANNOT_TELL, tolerance=tolerance, units_missing=missing)


def differences(first: Manifest, second: Manifest) -> list[str]:
    """Say what makes two manifests more than two quantizations of one model."""
    found = [
        f"{name} is {one or 'not stated'} and {other or 'not stated'}"
        for name, one, other in (
            ("task", first.task.value, second.task.value),
            ("prompt_family", first.prompt_family, second.prompt_family),
            ("context_tokens", first.context_tokens, second.context_tokens),
        )
        if one != other
    ]
    sizes = [one.parameters_million for one in (first, second)]
    if sizes[0] and sizes[1] and abs(sizes[0] - sizes[1]) > _ALIKE * max(sizes[0], sizes[1]):
        found.append(f"parameters_million is {sizes[0]:g} and {sizes[1]:g}")
    return found


def _flips(both: Sequence[ComparedUnit], answers: Sequence[str]) -> Iterator[Flip]:
    for one in both:
        first, second = one.replies
        if first.choice != second.choice:
            moved = zip(first.probabilities, second.probabilities, strict=True)
            yield Flip(
                bag=one.bag,
                unit_id=one.unit_id,
                words=one.words,
                answers=(answers[first.choice], answers[second.choice]),
                probabilities=(first.probabilities, second.probabilities),
                shift=max(abs(a - b) for a, b in moved),
            )


def _share(units: int, of: int) -> Share | None:
    if not of:
        return None
    low, high = wilson_interval(units, of)
    return Share(units=units, of=of, value=units / of, interval=(float(low), float(high)))


def _unanswered(units: Sequence[ComparedUnit], side: int) -> dict[str, int]:
    outcomes = [one.replies[side].outcome.value for one in units if not one.replies[side].is_answer]
    return {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}


def _shift(both: Sequence[ComparedUnit]) -> Shift | None:
    if not both:
        return None
    first, second = (np.array([one.replies[side].probabilities for one in both]) for side in (0, 1))
    moved = np.abs(first - second)
    divergence = (first * np.log(np.maximum(first, _LEAST) / np.maximum(second, _LEAST))).sum(axis=1)
    return Shift(mean=float(moved.mean()), most=float(moved.max()), divergence=float(divergence.mean()))


def check_classes(labels: Sequence[Polarity | None], which: str) -> None:
    """Raise LabelError where all labels are of one class, which allows no calibration."""
    classes = set(labels)
    if len(classes) < 2:
        what = f"are all {next(iter(classes)) or 'ordinary'}" if classes else "are none"
        raise LabelError(
            f"--labels: the {count_of(len(labels), 'unit')} {which} {what}, and calibration needs errors or "
            "competences beside ordinary ones; name bags with both, or leave out --labels"
        )


def _calibrations(both: Sequence[ComparedUnit]) -> tuple[AnswerCalibration, AnswerCalibration]:
    check_classes([one.polarity for one in both], "that both models answered")
    first, second = (_calibration([(one.replies[side], one.polarity) for one in both]) for side in (0, 1))
    return first, second


def _commonest(both: Sequence[ComparedUnit]) -> float:
    [(_, count)] = Counter(one.polarity for one in both).most_common(1)
    return count / len(both)


def _calibration(labelled: Sequence[tuple[ModelAnswer, Polarity | None]]) -> AnswerCalibration:
    stated = [(max(reply.probabilities), CLASSES[reply.choice] is polarity) for reply, polarity in labelled]
    error, brier = expected_calibration_error(stated), brier_score(stated)
    assert error is not None  # there are units
    assert brier is not None
    return AnswerCalibration(
        accuracy=sum(right for _, right in stated) / len(stated),
        expected_calibration_error=error,
        brier=brier,
        bins=reliability_bins(stated),
    )


def _ratio(first: np.ndarray, second: np.ndarray) -> Ratio | None:
    if len(first) < 2:
        return None
    drawn = draw_clusters(len(first), _DRAWS)
    ratios = first[drawn].sum(axis=1) / second[drawn].sum(axis=1)
    return Ratio(value=float(first.sum() / second.sum()), interval=percentile_interval(ratios))
