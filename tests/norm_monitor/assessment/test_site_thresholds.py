"""A site's own thresholds of errors in the fusion."""

import json
from pathlib import Path

import pytest

from norm_core.records.flag import Attribute
from norm_core.runtime.artefact import write_artefact
from norm_core.runtime.config import ConfigError
from norm_monitor.assessment.fusion import Fusion
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.site_thresholds import FORMAT, KIND, SiteThresholds, hash_parts
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit_model import shipped_unit_model
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.judge.judge import JudgeConfig
from norm_monitor.monitor import MonitorConfig
from tests.norm_monitor.assessment.test_fusion import add_evidence, finding, unit
from tests.norm_monitor.encounter_talk import waiting_alone

EMOTIONS, ENGAGEMENT = Attribute.EMOTIONS, Attribute.ENGAGEMENT


def site(made_with: dict[str, str] | None = None, **by_attribute: float) -> SiteThresholds:
    return SiteThresholds(
        kind=KIND, format=FORMAT, made_on="2026-11-23", made_with=made_with or {}, fitted_on={},
        by_attribute={Attribute(name): threshold for name, threshold in by_attribute.items()}, rest=0.9,
        expectation="as measured here",
    )  # fmt: skip


def fusion(thresholds: SiteThresholds, *min_probability: str) -> Fusion:
    return Fusion(FusionConfig(min_probability=min_probability), waiting_alone(), site=thresholds)


@pytest.mark.parametrize(
    ("probability", "attributes"), [(0.35, ()), (0.45, (EMOTIONS,)), (0.95, (EMOTIONS, ENGAGEMENT))]
)
def test_site_thresholds_decide_by_attribute(probability: float, attributes: tuple[Attribute, ...]) -> None:
    flag = add_evidence(
        fusion(site(emotions=0.4)), finding(unit(), probability=probability, attributes=(EMOTIONS, ENGAGEMENT))
    )
    assert (flag.attributes if flag else ()) == attributes
    assert flag is None or flag.least_probability == 0.4


def test_configured_threshold_precedes_that_of_the_site() -> None:
    error = finding(unit(), probability=0.7)
    assert add_evidence(fusion(site(emotions=0.99), "error=0.6"), error)
    assert add_evidence(fusion(site(emotions=0.4), "emotions=0.8"), error) is None


def test_thresholds_fitted_without_a_judge_are_refused_with_one(tmp_path: Path) -> None:
    model, table, meaning = shipped_unit_model(), ThresholdTable.shipped(), EncoderMatcher.shipped()
    file = tmp_path / "site.json"
    write_artefact(site(hash_parts(model, table, meaning), emotions=0.4), file)
    fusion_config = FusionConfig(operating_point=str(file))
    alone = MonitorConfig(fusion=fusion_config)
    assert alone.site_thresholds(model, table, meaning) == SiteThresholds.model_validate(json.loads(file.read_text()))
    judged = MonitorConfig(fusion=fusion_config, judge=JudgeConfig(model="some-model"))
    with pytest.raises(ConfigError, match="differs from what runs here in judge; fit them anew"):
        judged.site_thresholds(model, table, meaning)
