"""The reference judge's answers, by encounter, kind of unit and onset, so that no wording of a prompt ends them."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from norm_core.engines.openai.batch import BatchAnswer, BatchAnswers
from norm_core.files.data_files import shipped_file
from norm_core.records.outcome import Outcome
from norm_core.runtime.artefact import load_artefact
from norm_monitor.encounters.generate import START_NS
from norm_monitor.judge.coding import LABELS, UnitKeys
from norm_monitor.judge.judge import FORMAT, KIND, JudgeCalibration
from sim_replays.monitor_bench.script_driver import BenchSource

MODEL, SPLIT = "reference judge", "many_hands"
CARD = shipped_file("calibration", "reference_judge")
CALIBRATION = CARD / "calibration.json"
MADE_WITH = {"model": MODEL}
_FIT_ANEW = "fit it anew (python -m calibration.reference_judge.fit --write)"


def shipped_calibration() -> JudgeCalibration:
    """Return how the judge's answers are tempered and weighed."""
    return load_artefact(
        JudgeCalibration, CALIBRATION, kind=KIND, format_=FORMAT, made_with=MADE_WITH, remedy=_FIT_ANEW
    )


def recorded(source: BenchSource = BenchSource.SCRIPT, form: str = "talk") -> dict[str, BatchAnswers]:
    """Return the answers about each encounter, by unit: to requests about a minute of talk, or about one `unit`."""
    path = CARD / f"{source}_{form}.jsonl"
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines() if path.exists() else ())
    return {line["encounter"]: BatchAnswers(by_id=dict(_answers(**line))) for line in lines}


def _answers(encounter: str, units: Sequence[Sequence[Any]]) -> Iterator[tuple[str, BatchAnswer]]:
    talk = UnitKeys(encounter).talk
    for kind, onset_ns, error, competence, *rest in units:
        stated = dict(zip(LABELS, (error, competence, round(max(0.0, 1 - error - competence), 3)), strict=True))
        coding = {"polarity": max(LABELS, key=lambda label: stated[label]), **stated}
        if rest:
            names, rationale, correction = rest
            coding |= {"attributes": names.split(), "rationale": rationale, "correction": correction}
        answer = BatchAnswer(outcome=Outcome.ANSWERED, text=json.dumps(coding), model=MODEL)
        yield f"{talk}_{kind}_{START_NS + onset_ns}", answer
