"""Calibrations that tests write by hand."""

from pathlib import Path

from action_selector.choose.calibration import COVERAGES, FORMAT, KIND, SelectorCalibration, list_dependencies
from action_selector.choose.probability_scaling import ProbabilityScaling, ScalingMethod
from action_selector.selector import SelectorFiles
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.runtime.artefact import write_artefact


def write_calibration(
    path: Path, temperature: float = 4.0, mass: float = 0.0, other: dict[str, str] | None = None
) -> Path:
    """Write a calibration for the selector without a model; `other` replaces what it was made with."""
    calibration = SelectorCalibration(
        kind=KIND,
        format=FORMAT,
        made_on="2026-11-23",
        made_with={**list_dependencies(SelectorFiles(), SentenceEncoder().weights_sha256, None), **(other or {})},
        fitted_on={},
        scaling=ProbabilityScaling(method=ScalingMethod.TEMPERATURE, temperature=temperature),
        masses=(mass,) * len(COVERAGES),
    )
    write_artefact(calibration, path)
    return path
