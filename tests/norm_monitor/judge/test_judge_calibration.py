"""The judge's calibration: it changes what is published, and serves no other model or prompt."""

from pathlib import Path

import pytest

from norm_core.engines.direct_engine import DirectEngine
from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.artefact import write_artefact
from norm_core.runtime.config import ConfigError
from norm_core.runtime.time import ReplayClock, WallClock
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.judge.judge import FORMAT, KIND, Judge, JudgeCalibration, JudgeConfig
from norm_monitor.judge.questions import VERSION
from norm_monitor.monitor import Monitor, MonitorConfig
from tests.norm_monitor.judge.test_judge import answering
from tests.norm_monitor.judge.test_monitor_judged import MUTED, TALK, play

MADE_WITH = {"model": "scripted", "weights": "", "prompt": VERSION}


def written(folder: Path, temperature: float, weight: float, **made_with: str) -> str:
    artefact = JudgeCalibration(
        kind=KIND,
        format=FORMAT,
        made_on="2026-11-23",
        made_with={**MADE_WITH, **made_with},
        fitted_on={},
        temperature=temperature,
        weight=weight,
    )
    path = folder / f"{temperature}_{weight}.json"
    write_artefact(artefact, path)
    return str(path)


def published(meaning: TextMatcher, calibration: str) -> list[float]:
    """The probabilities of the flags that rest on a judge's answers alone."""
    judge = {"model": "scripted", "calls_per_hour": 36_000.0, "calibration": calibration, "note_tokens": 0}
    config = MonitorConfig.model_validate(
        {
            "windows": {"sources": ("utterances",), "lateness_s": 0},
            "judge": judge,
            "fusion": {"muted": MUTED, "min_probability": ("error=0.1",)},
        }
    )
    monitor = Monitor(config, ThresholdTable.shipped(), meaning, ReplayClock())
    asked = Judge(DirectEngine(answering([2, 0, 0], {Attribute.EMOTIONS}), WallClock()), config.judge)
    _, views = play(monitor, TALK, 20)
    flags = [flag for view in views for flag in monitor.take_judgement(asked.judge(view))]
    assert {flag.polarity for flag in flags} == {Polarity.ERROR}
    return [flag.probability for flag in flags]


def test_published_probabilities_follow_the_calibration(meaning: TextMatcher, tmp_path: Path) -> None:
    plain = published(meaning, "")
    assert published(meaning, written(tmp_path, 1, 1)) == pytest.approx(plain)
    assert max(published(meaning, written(tmp_path, 4, 1))) < min(plain)
    assert min(published(meaning, written(tmp_path, 1, 2))) > max(plain)


@pytest.mark.parametrize(
    ("made_with", "named"),
    [({"model": "another"}, "model"), ({"weights": "12"}, "weights"), ({"prompt": "0"}, "prompt")],
)
def test_calibration_of_another_model_is_refused(tmp_path: Path, made_with: dict[str, str], named: str) -> None:
    path = written(tmp_path, 1, 1, **made_with)
    engine = DirectEngine(answering([4, 0, 0]), WallClock())
    with pytest.raises(ConfigError, match=f"differs from what runs here in {named}; fit it anew"):
        Judge(engine, JudgeConfig(calibration=path))


def test_monitor_refuses_the_calibration_of_another_model(meaning: TextMatcher, tmp_path: Path) -> None:
    path = written(tmp_path, 1, 1, model="another")
    config = MonitorConfig.model_validate({"judge": {"model": "scripted", "calibration": path}})
    with pytest.raises(ConfigError, match="differs from what runs here in model; fit it anew"):
        Monitor(config, ThresholdTable.shipped(), meaning, ReplayClock())
    without = config.model_copy(update={"judge": config.judge.model_copy(update={"model": ""})})
    Monitor(without, ThresholdTable.shipped(), meaning, ReplayClock())  # nobody is asked, so nothing is weighed
