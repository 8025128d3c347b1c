"""The reference judge's answers, by encounter, kind of unit and onset, so that no wording of a prompt ends them."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from norm_core.engines.openai.batch import BatchAnswer, BatchAnswers
from norm_core.files.data_files import shipped_file
from norm_core.records.outcome import Outcome
from norm_monitor.encounters.generate import START_NS
from norm_monitor.judge.coding import LABELS, UnitKeys

MODEL = "reference judge"
CARD = shipped_file("calibration", "reference_judge")
CALIBRATION = CARD / "calibration.json"
MADE_WITH = {"model": MODEL}


def recorded() -> dict[str, BatchAnswers]:
    """Return the answers about each encounter, by unit."""
    lines = map(json.loads, (CARD / "script_talk.jsonl").read_text(encoding="utf-8").splitlines())
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
