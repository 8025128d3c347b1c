"""The calibration of one judge model: how far its probabilities hold, and what its answers weigh beside the facts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from pydantic import Field

from norm_core.engines.reply import ModelInfo
from norm_core.prompts.judge import VERSION
from norm_core.runtime.artefact import Artefact, load_artefact
from norm_core.runtime.program import PROGRAM

KIND, FORMAT = "judge calibration", 1
_FIT_ANEW = f"fit it anew ({PROGRAM} calibrate judge --model NAME --labels FOLDER --write FILE)"


def made_with(model_info: ModelInfo) -> dict[str, str]:
    """Return what a calibration depends on; a model behind a server has no hash of weights."""
    return {"model": model_info.model, "weights": model_info.weights_sha256, "prompt": VERSION}


class JudgeCalibration(Artefact):
    """The temperature and the weight of one model's answers to the judge's first question."""

    temperature: float = Field(gt=0, le=100, allow_inf_nan=False)
    weight: float = Field(ge=0, le=10)

    @classmethod
    def load(cls, path: Path, model_info: ModelInfo) -> Self:
        """Load an artefact; raise ConfigError if it was fitted for another model or prompt."""
        return load_artefact(cls, path, kind=KIND, format_=FORMAT, made_with=made_with(model_info), remedy=_FIT_ANEW)

    @classmethod
    def load_for(cls, path: Path, model: str) -> Self:
        """Load an artefact by the name of the model alone, where its engine is not at hand."""
        return load_artefact(
            cls, path, kind=KIND, format_=FORMAT, made_with={"model": model, "prompt": VERSION}, remedy=_FIT_ANEW
        )

    def temper(self, probabilities: Sequence[float]) -> tuple[float, ...]:
        """Return probabilities of all options that are as certain as coders bear out."""
        most = max(probabilities, default=0.0)
        shares = [(one / most) ** (1 / self.temperature) for one in probabilities]
        return tuple(share / sum(shares) for share in shares)
