"""The reference judge's answers, by encounter, kind of unit and onset, so that no wording of a prompt ends them.

Run: python -m calibration.reference_judge.answers BATCH --form talk --from script writes a batch's answers there.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from calibration.command import run_command
from norm_core.engines.errors import UnparsedError
from norm_core.engines.openai.batch import BatchAnswer, BatchAnswers, read_answers
from norm_core.records.outcome import Outcome
from norm_core.runtime.artefact import load_artefact
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.data_files import shipped_file
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.fusion.fusion import ClosedUnit
from norm_monitor.judge.coding import LABELS, Coding, Form, UnitKeys, find_answer, read_answer
from norm_monitor.judge.judge import FORMAT, KIND, JudgeCalibration
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.drivers.script_driver import BenchSource, monitor_from_sound, monitor_script, sense_encounter
from sim_replays.scenarios.encounter import talk_name
from sim_replays.scenarios.generate import START_NS
from sim_replays.scenarios.library import encounters

MODEL, SPLIT = "reference judge", "many_hands"
CARD = shipped_file("calibration", "reference_judge")
CALIBRATION = CARD / "calibration.json"
MADE_WITH = {"model": MODEL}
_FIT_ANEW = "fit it anew (python -m calibration.reference_judge.fit --write)"
_LIKELY = 0.25  # from which an answer has attributes and a reason

Fields = list[
    str | float
]  # kind, onset in ns, probability of an error and a competence; attributes, reason, correction


def shipped_calibration() -> JudgeCalibration:
    """Return how the judge's answers are tempered and weighed."""
    return load_artefact(
        JudgeCalibration, CALIBRATION, kind=KIND, format_=FORMAT, made_with=MADE_WITH, remedy=_FIT_ANEW
    )


def recorded(source: BenchSource = BenchSource.SCRIPT, form: Form = Form.TALK) -> dict[str, BatchAnswers]:
    """Return the answers about each encounter, as those to a batch with a request for each unit."""
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


def write_card(units: Mapping[str, Sequence[Fields]], source: BenchSource, form: Form) -> Path:
    """Write answers about the units of encounters, a line for each encounter."""
    path = CARD / f"{source}_{form}.jsonl"
    lines = ({"encounter": name, "units": units[name]} for name in sorted(units))
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    write_atomic(path, text)
    return path


def fields_of(kind: str, onset_ns: int, coding: Coding) -> Fields:
    """Return what stands in the card about a unit."""
    fields: Fields = [kind, onset_ns - START_NS, coding.error, coding.competence]
    if max(coding.error, coding.competence) < _LIKELY:
        return fields
    return [*fields, " ".join(coding.attributes), coding.rationale, coding.correction]


def _coding(answer: BatchAnswer, mark: str) -> Coding | None:
    """Return an answer about a unit; None where the unit was not asked about."""
    try:
        return read_answer(answer, mark)[0] if answer.outcome is Outcome.ANSWERED else None
    except UnparsedError:
        return None


def main(
    batch: Annotated[Path, typer.Argument(help="File or folder of the answers to `bench monitor --ask-later`.")],
    form: Annotated[Form, typer.Option(help="What one request was about.")] = Form.TALK,
    source: Annotated[BenchSource, typer.Option("--from", help="Where words came from.")] = BenchSource.SCRIPT,
    cache_folder: Annotated[Path, typer.Option(help="Cache of the senses' output.")] = Path("scratch/sensed"),
) -> None:
    """Write the answers to a batch into the data card."""
    answers, meaning, table = read_answers(batch).by_id, EncoderMatcher.shipped(), ThresholdTable.shipped()
    units: dict[str, list[Fields]] = {}
    for encounter in encounters(SPLIT):
        keys, closed = UnitKeys(talk_name(encounter)), list[ClosedUnit]()
        if not any(key.startswith(f"{keys.talk}_") for key in answers):
            continue
        if source is BenchSource.SCRIPT:
            monitor_script(encounter, meaning, table, note_closed=closed.append)
        else:
            sensed = sense_encounter(encounter, cache_folder, Whisper(WhisperConfig()))
            monitor_from_sound(sensed, meaning, table, note_closed=closed.append)
        in_order = sorted((one.unit for one in closed), key=lambda unit: (unit.onset_ns, unit.unit_id))
        codings = ((unit, _coding(*find_answer(keys, unit, answers))) for unit in in_order)
        units[talk_name(encounter)] = [
            fields_of(unit.kind, unit.onset_ns, coding) for unit, coding in codings if coding
        ]
    print(f"{write_card(units, source, form)}: {sum(map(len, units.values()))} units of {len(units)} encounters")


if __name__ == "__main__":
    run_command(main)
