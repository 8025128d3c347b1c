"""The calibration of one selector: a scaling of its probabilities, and the sum that a set of candidates needs."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from action_selector.choose.probability_scaling import ProbabilityScaling
from action_selector.prompts import VERSION
from action_selector.selector_config import SelectorConfig
from norm_core.engines.reply import ModelInfo
from norm_core.runtime.artefact import Artefact, load_artefact

KIND = "selector calibration"
FORMAT = 1
# The setting `coverage` is rounded up to the next of these.
COVERAGES = tuple(round(0.01 * percent, 2) for percent in range(50, 100))
_FIT_ANEW = "fit it anew (python -m calibration.verbs.selector RUN --write NAME)"
# Coverages that differ by less count as equal.
_EQUAL = 1e-9
_Mass = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


def list_dependencies(config: SelectorConfig, encoder_sha256: str, model_info: ModelInfo | None) -> dict[str, str]:
    """List what the selector's probabilities depend on. A model behind a server has no hash of weights."""
    return {
        "encoder": encoder_sha256,
        "settings": config.scoring_sha256(),
        "model": model_info.model if model_info else "",
        "weights": model_info.weights_sha256 if model_info else "",
        "prompt": VERSION if model_info else "",
    }


class SelectorCalibration(Artefact):
    """The scaling of the probabilities of a choice, and the sum that a set of candidates needs for each coverage."""

    scaling: ProbabilityScaling
    masses: tuple[_Mass, ...] = Field(min_length=len(COVERAGES), max_length=len(COVERAGES))
    # By the number of candidates without a veto.
    masses_by_count: dict[int, tuple[_Mass, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if any(len(masses) != len(COVERAGES) for masses in self.masses_by_count.values()):
            raise ValueError("it names another number of coverages by number of candidates")
        return self

    @classmethod
    def load(cls, path: Path, needed: dict[str, str]) -> Self:
        """Load an artefact. Raises ConfigError if it was made with something other than `needed`."""
        return load_artefact(cls, path, kind=KIND, format_=FORMAT, made_with=needed, remedy=_FIT_ANEW)

    def mass_for(self, coverage: float, count: int) -> float:
        """Return the sum at which a set of `count` candidates holds the right one in this share of cases."""
        masses = self.masses_by_count.get(count, self.masses)
        pairs = zip(COVERAGES, masses, strict=True)
        return next((mass for covered, mass in pairs if covered >= coverage - _EQUAL), 1.0)
