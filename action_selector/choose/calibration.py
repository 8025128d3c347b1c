"""The calibration of one selector: how far its probabilities hold, and how much a set must sum to."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from action_selector.choose.probability_scaling import ProbabilityScaling
from action_selector.prompts import VERSION
from action_selector.request import SelectorConfig
from norm_core.engines.reply import ModelInfo
from norm_core.runtime.artefact import Artefact, load_artefact

KIND, FORMAT = "selector calibration", 1
# The setting `coverage` is rounded up to the next of these.
COVERAGES = tuple(round(0.01 * percent, 2) for percent in range(50, 100))
_FIT_ANEW = "fit it anew (python -m calibration.verbs.selector RUN --write NAME)"
_EQUAL = 1e-9
_Mass = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


def made_with(config: SelectorConfig, encoder_sha256: str, model_info: ModelInfo | None) -> dict[str, str]:
    """Return what the selector's probabilities depend on; a model behind a server has no hash of weights."""
    return {
        "encoder": encoder_sha256,
        "settings": config.scoring_sha256(),
        "model": model_info.model if model_info else "",
        "weights": model_info.weights_sha256 if model_info else "",
        "prompt": VERSION if model_info else "",
    }


class SelectorCalibration(Artefact):
    """The scaling of a choice's probabilities, and by stated coverage the sum that a set of candidates needs."""

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
        """Load an artefact; raise ConfigError if it was made with something else than `needed`."""
        return load_artefact(cls, path, kind=KIND, format_=FORMAT, made_with=needed, remedy=_FIT_ANEW)

    def mass_for(self, coverage: float, count: int) -> float:
        """Return the sum at which a set of so many candidates holds the right one in this share of cases."""
        masses = self.masses_by_count.get(count, self.masses)
        return next((mass for at, mass in zip(COVERAGES, masses, strict=True) if at >= coverage - _EQUAL), 1.0)
