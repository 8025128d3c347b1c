"""Apply a fitted scaling to the probabilities of one choice. `calibration` fits it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from norm_core.runtime.config import Config

_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Temperature = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
# This slope keeps the order of options that a step of an isotonic curve makes equal.
_SLOPE = 1e-6


class ScalingMethod(StrEnum):
    """What is fitted.

    temperature: one temperature. vector: one by the number of options. isotonic: a rising curve, then normalised.
    """

    NONE = "none"
    TEMPERATURE = "temperature"
    VECTOR = "vector"
    ISOTONIC = "isotonic"


class IsotonicCurve(Config):
    """A rising curve from stated to observed probability, linear between its points."""

    stated: tuple[_Share, ...] = Field(min_length=1)
    observed: tuple[_Share, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _is_rising(self) -> Self:
        is_sorted = all(sorted(values) == list(values) for values in (self.stated, self.observed))
        if len(self.stated) != len(self.observed) or not is_sorted:
            raise ValueError("a curve needs as many observed as stated probabilities, both rising")
        return self

    def __call__(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return observed probabilities. Equal ones keep a trace of the stated order."""
        return np.asarray(np.interp(probabilities, self.stated, self.observed) + _SLOPE * probabilities)


class ProbabilityScaling(Config):
    """A fitted scaling. An option of probability 0 was excluded before, and stays at 0."""

    method: ScalingMethod = ScalingMethod.NONE
    temperature: _Temperature = 1.0
    temperature_by_count: dict[int, _Temperature] = Field(default_factory=dict)
    curves: tuple[IsotonicCurve, ...] = Field(default=(), max_length=1)

    def apply(self, probabilities: Sequence[float]) -> tuple[float, ...]:
        """Return calibrated probabilities in the same order; their sum is 1 unless all are 0."""
        stated = np.asarray(probabilities, np.float64)
        is_offered = stated > 0
        if not is_offered.any():
            return tuple(probabilities)
        if self.curves:
            shares = np.where(is_offered, self.curves[0](stated), 0.0)
        else:
            count = int(is_offered.sum())
            logs = np.log(stated, out=np.full(len(stated), -np.inf), where=is_offered)
            scores = logs / self.temperature_by_count.get(count, self.temperature)
            shares = np.exp(scores - scores.max())
        return tuple(float(share) for share in shares / shares.sum())
