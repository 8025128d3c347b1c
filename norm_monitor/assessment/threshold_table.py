"""The versioned table of cues: the flag of each, and the thresholds of those that are evidence."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from norm_core.files.data_files import shipped_file
from norm_core.records.flag import Attribute, Evidence, Failure, Polarity, Severity
from norm_core.runtime.config import Config, ConfigError, load_config, load_private_config
from norm_monitor.assessment.finding import Finding, Reason
from norm_monitor.assessment.unit import Unit

SHIPPED = shipped_file("norm_monitor.assessment", "thresholds.yaml")


class Threshold(Config):
    """One threshold, with the values at which the severity rises."""

    value: float
    unit: str = ""
    evidence: Literal["V", "A", "K", "default"]
    source: str
    bands: dict[Severity, float] = Field(default_factory=dict)


class Cue(Config):
    """The flag of a cue, and its thresholds."""

    finds: str = Field(default="", exclude=True)  # a description for readers; no hash covers it
    polarity: Polarity
    attributes: tuple[Attribute, ...] = Field(min_length=1)
    failure: Failure = Failure.SOCIAL
    severity: Severity = Severity.MINOR
    probability: float = Field(default=0, ge=0, lt=1)  # of a custom cue; shipped cues have none
    correction: str = ""
    thresholds: dict[str, Threshold] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_correction(self) -> "Cue":
        if self.polarity is Polarity.ERROR and not self.correction:
            raise ValueError("an error needs a correction")
        return self

    def value(self, name: str) -> float:
        """Return the threshold of that name."""
        return self.thresholds[name].value

    def severity_of(self, name: str, measured: float) -> Severity:
        """Return the severity of the highest band that a measured value reaches, or else that of the cue."""
        reached = [band for band, threshold in self.thresholds[name].bands.items() if measured >= threshold]
        return max(reached, key=list(Severity).index, default=self.severity)


class ThresholdTable(Config):
    """All cues with their thresholds, under a version."""

    version: str = Field(min_length=1)
    cues: dict[str, Cue]

    @classmethod
    def shipped(cls) -> "ThresholdTable":
        """Return the table that Tactful ships."""
        return load_config(cls, SHIPPED)

    @classmethod
    def load(cls, path: Path) -> "ThresholdTable":
        """Load a custom table. Raises ConfigError if it lacks a cue or a threshold of the shipped one."""
        table = load_private_config(cls, path)
        for name, cue in cls.shipped().cues.items():
            lacking = cue.thresholds.keys() - table.cues[name].thresholds.keys() if name in table.cues else {name}
            if lacking:
                raise ConfigError(
                    f"{path}: cues.{name}: {', '.join(sorted(lacking))} is missing; copy it from {SHIPPED}"
                )
        return table

    def with_cues(self, cues: Mapping[str, Cue]) -> "ThresholdTable":
        """Return the table with the entries of custom cues. Raises ConfigError if it has a cue of that name."""
        if duplicates := self.cues.keys() & cues.keys():
            raise ConfigError(f"cue {', '.join(sorted(duplicates))}: the table has it already; choose another name")
        return self.model_copy(update={"cues": {**self.cues, **cues}})

    def reason(
        self, cue_id: str, evidence: Iterable[Evidence], rationale: str, severity: Severity | None = None
    ) -> Reason:
        """Return the reason of a cue; the table supplies the rest."""
        cue = self.cues[cue_id]
        return Reason(
            cue_id=cue_id,
            polarity=cue.polarity,
            attributes=cue.attributes,
            failure=cue.failure,
            severity=severity or cue.severity,
            evidence=tuple(evidence),
            rationale=rationale,
            correction=cue.correction,
        )

    def finding(
        self,
        cue_id: str,
        unit: Unit,
        *,
        evidence: Iterable[Evidence],
        rationale: str,
        severity: Severity | None = None,
        probability: float | None = None,
    ) -> Finding:
        """Return a finding of this cue about a unit; the table supplies the missing values."""
        return Finding(
            unit=unit,
            reason=self.reason(cue_id, evidence, rationale, severity),
            probability=self.cues[cue_id].probability if probability is None else probability,
        )
