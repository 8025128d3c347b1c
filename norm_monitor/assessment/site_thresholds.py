"""A site's own operating point: the probabilities from which errors are flagged there, by attribute."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field

from norm_core.records.flag import Attribute
from norm_core.records.json_codec import sha256_of
from norm_core.runtime.artefact import Artefact, load_artefact
from norm_core.runtime.program import PROGRAM
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit_model import UnitModel
from norm_monitor.context.meaning import TextMatcher

KIND = "thresholds"
FORMAT = 1
MinProbability = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
NO_JUDGE = "none"
_FIT_ANEW = f"fit them anew ({PROGRAM} calibrate thresholds), or leave fusion.operating_point empty"


def hash_parts(model: UnitModel, table: ThresholdTable, matcher: TextMatcher, judge: str = "") -> dict[str, str]:
    """Return the digests of all that decides a flag's probability."""
    return {
        "attributes": sha256_of(sorted(Attribute)),
        "weights": model.sha256(),
        "table of cues": table.sha256(),
        "encoder": matcher.sha256(),
        "judge": judge or NO_JUDGE,
    }


class SiteThresholds(Artefact):
    """The minimum probability of an error by attribute, and what to expect of it at the site."""

    by_attribute: dict[Attribute, MinProbability]  # of attributes with enough labels
    rest: MinProbability
    expectation: str

    @classmethod
    def load(cls, path: Path, made_with: dict[str, str]) -> Self:
        """Load an artefact. Raises ConfigError if it was fitted for another monitor."""
        return load_artefact(cls, path, kind=KIND, format_=FORMAT, made_with=made_with, remedy=_FIT_ANEW)

    def threshold(self, attribute: Attribute) -> float:
        """Return the probability from which an error of an attribute is flagged."""
        return self.by_attribute.get(attribute, self.rest)
