"""Which evidence becomes a flag: the sensitivity, thresholds, limits and what is muted."""

from itertools import product

from pydantic import Field, field_validator

from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.config import LIVE, NAMES_FILE, Config
from norm_monitor.assessment.unit_model import OperatingPoint, Sensitivity

# The minimum probability of a flag, by polarity and attribute.
Thresholds = dict[tuple[Polarity, Attribute], float]
_THRESHOLD_NAMES = (*(polarity.value for polarity in Polarity), *(attribute.value for attribute in Attribute))


class FusionConfig(Config):
    """Which evidence becomes a flag, and how long a unit takes evidence."""

    sensitivity: Sensitivity = Field(
        default=Sensitivity.BALANCED,
        description="how many false errors are accepted in order to find more true ones",
        json_schema_extra=LIVE,
    )
    min_probability: tuple[str, ...] = Field(
        default=(),
        description="thresholds: for a polarity in place of that of the sensitivity, such as error=0.8; for an "
        "attribute the least, such as emotions=0.9",
        json_schema_extra=LIVE,
    )
    min_probability_judged: tuple[str, ...] = Field(
        default=(),
        description="the same for moments that the judge has answered about, at balanced alone",
    )
    open_s: float = Field(
        default=30.0, ge=0, le=600, description="how long after its end a moment accepts evidence; then its flag closes"
    )
    judge_weight: float = Field(default=1.0, ge=0, le=10, description="weight of the judge's answer; 0 ignores it")
    max_per_attribute: int = Field(
        default=20,
        ge=1,
        le=1000,
        description="maximum number of flags of one attribute and polarity in ten minutes",
        json_schema_extra=LIVE,
    )
    muted: tuple[str, ...] = Field(
        default=(), description="cues and attributes that raise no flag", json_schema_extra=LIVE
    )
    answer_within_s: float = Field(
        default=0.0,
        ge=0,
        le=120,
        description="seconds of silence after a person's words that count as an error, from two on; 0 leaves it to the "
        "fitted weights",
    )
    weights: str = Field(
        default="",
        description="file of fitted weights; empty for the shipped ones",
        json_schema_extra=NAMES_FILE,
    )

    @field_validator("min_probability", "min_probability_judged")
    @classmethod
    def _check_thresholds(cls, thresholds: tuple[str, ...]) -> tuple[str, ...]:
        for name, threshold in map(_parse_threshold, thresholds):
            if name not in _THRESHOLD_NAMES or not 0 < threshold <= 1:
                raise ValueError(f"write NAME=PROBABILITY, where NAME is one of {', '.join(_THRESHOLD_NAMES)}")
        return thresholds

    def describe(self) -> str:
        """Say how it weighs, for a reader of a log; whatever else is set is in the digest alone."""
        return f"sensitivity {self.sensitivity.value}, answer_within_s {self.answer_within_s:g}"

    def thresholds_at(
        self,
        point: OperatingPoint,
        *,
        is_judged: bool = False,
        is_early: bool = False,
        is_slow: bool = False,
    ) -> Thresholds:
        """Return the thresholds of judged units, of those without a reaction yet, of slow robots, or of others."""
        judged = self.min_probability_judged if is_judged and self.sensitivity is Sensitivity.BALANCED else ()
        configured = dict(map(_parse_threshold, (*judged, *self.min_probability)))

        def choose_threshold(polarity: Polarity, attribute: Attribute) -> float:
            usual = point.threshold(polarity, is_slow=is_slow)
            if is_early:
                usual = max(usual, point.threshold(polarity, is_early=True))
            return max(configured.get(polarity.value, usual), configured.get(attribute.value, 0.0))

        return {key: choose_threshold(*key) for key in product(Polarity, Attribute)}


def _parse_threshold(text: str) -> tuple[str, float]:
    """Return the name and the value of a threshold; an empty name where the text has none."""
    name, _, threshold = text.partition("=")
    try:
        return name.strip(), float(threshold)
    except ValueError:
        return "", 0.0
