"""The reference judge's answers, by encounter, kind of unit and onset, so that no wording of a prompt ends them.

Run: python -m calibration.reference_judge.answers FILE.jsonl --form talk --from script adds answers to a batch.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from norm_core.engines.openai.batch import BatchAnswers, read_answers
from norm_core.engines.request_context import Deadline
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import Provenance
from norm_core.records.record import record
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.fusion.fusion import ClosedUnit
from norm_monitor.judge.coding import LABELS, MISSING, Coding, Form, UnitKeys, find_answer, read_answer, with_coding
from norm_monitor.judge.excerpt import UnitView
from norm_monitor.judge.judge import JudgeCalibration
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from norm_monitor.units.unit import Unit, UnitJudgement, UnitKind
from sim_replays.drivers.script_driver import monitor_from_sound, monitor_script
from sim_replays.monitor_bench.sensed_cache import BenchSource, sense_encounter
from sim_replays.scenarios.encounter import talk_name
from sim_replays.scenarios.generate import START_NS
from sim_replays.scenarios.library import encounters

MODEL, SPLIT = "reference judge", "many_hands"
CARD = shipped_file("calibration", "reference_judge")
# Ears on another machine may place a unit a little earlier or later.
_NEAR_NS = NS_PER_S // 5
_LIKELY = 0.25  # from which an answer has attributes and a reason


@record
class CodedUnit:
    """What the judge answered about one unit."""

    kind: UnitKind
    onset_ns: int
    coding: Coding


def recorded(source: BenchSource, form: Form, folder: Path = CARD) -> dict[str, list[CodedUnit]]:
    """Return the answers about each encounter, by its name."""
    path = _path(folder, source, form)
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines() if path.exists() else ())
    return {line["encounter"]: [_unit(*fields) for fields in line["units"]] for line in lines}


def _path(folder: Path, source: BenchSource, form: Form) -> Path:
    return folder / f"{source}_{form}.jsonl"


def _unit(  # noqa: PLR0917
    kind: str,
    onset_s: float,
    error: float,
    competence: float,
    attributes: str = "",
    rationale: str = "",
    fix: str = "",
) -> CodedUnit:
    probability = dict(zip(LABELS, (error, competence, max(0.0, 1 - error - competence)), strict=True))
    coding = Coding.model_validate(
        {
            "polarity": max(LABELS, key=lambda label: probability[label]),
            **probability,
            "attributes": attributes.split(),
            "rationale": rationale,
            "correction": fix,
        }
    )
    return CodedUnit(kind=UnitKind(kind), onset_ns=START_NS + round(onset_s * NS_PER_S), coding=coding)


class ReferenceJudge:
    """Give the recorded answers about the units of one encounter; about others it has none."""

    def __init__(self, units: Sequence[CodedUnit], calibration: JudgeCalibration | None = None) -> None:
        self._units, self._calibration = units, calibration

    def judge(self, view: UnitView, deadline: Deadline | None = None) -> UnitJudgement:
        """Return the recorded answer about a unit, with its note."""
        coding = self.coding_of(view.unit)
        judged = self.judgement(view.unit)
        return with_coding(judged, view, coding, self._probability(coding)) if coding else judged

    def judgement(self, unit: Unit) -> UnitJudgement:
        """Return the recorded answer about a unit without its note, or that there is none."""
        coding = self.coding_of(unit)
        if coding is None:
            return UnitJudgement(unit=unit, outcome=Outcome.FAILED, reason=MISSING)
        probability = self._probability(coding)
        return UnitJudgement(
            unit=unit,
            outcome=Outcome.ANSWERED,
            probability={polarity: probability[polarity.value] for polarity in Polarity},
            attributes=coding.attributes,
            provenance=Provenance(model=MODEL),
        )

    def _probability(self, coding: Coding) -> dict[str, float]:
        stated = coding.probability
        if self._calibration is None:
            return stated
        tempered = self._calibration.temper(tuple(stated[label] for label in LABELS))
        return dict(zip(LABELS, tempered, strict=True))

    def coding_of(self, unit: Unit) -> Coding | None:
        """Return the answer about the unit of this kind that began nearest."""
        apart = {at: abs(one.onset_ns - unit.onset_ns) for at, one in enumerate(self._units) if one.kind is unit.kind}
        nearest = min(apart, key=lambda at: apart[at], default=None)
        return None if nearest is None or apart[nearest] > _NEAR_NS else self._units[nearest].coding


def coded_units(talk: str, closed: Iterable[ClosedUnit], answers: BatchAnswers) -> list[CodedUnit]:
    """Return the answers to a batch about the units of one talk."""
    keys, units = UnitKeys(talk), sorted((one.unit for one in closed), key=lambda unit: (unit.onset_ns, unit.unit_id))
    found = ((unit, *find_answer(keys, unit, answers.by_id)) for unit in units)
    return [
        CodedUnit(kind=unit.kind, onset_ns=unit.onset_ns, coding=read_answer(answer, mark)[0])
        for unit, answer, mark in found
        if answer.outcome is Outcome.ANSWERED
    ]


def write_card(units: Mapping[str, Sequence[CodedUnit]], source: BenchSource, form: Form, folder: Path = CARD) -> Path:
    """Write the answers, a line for each encounter."""
    path = _path(folder, source, form)
    lines = [{"encounter": name, "units": [_fields(one) for one in units[name]]} for name in sorted(units)]
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    write_atomic(path, text)
    return path


def _fields(one: CodedUnit) -> list[str | float]:
    coding, onset_s = one.coding, round((one.onset_ns - START_NS) / NS_PER_S, 3)
    fields: list[str | float] = [one.kind.value, onset_s, coding.error, coding.competence]
    if max(coding.error, coding.competence) < _LIKELY:
        return fields
    names = " ".join(attribute.value for attribute in Attribute if attribute in coding.attributes)
    return [*fields, names, coding.rationale, coding.correction]


def add(
    batch: Annotated[Path, typer.Argument(help="File or folder of the answers to a batch.")],
    form: Annotated[Form, typer.Option(help="What one request was about.")] = Form.TALK,
    source: Annotated[BenchSource, typer.Option("--from", help="What the questions were written from.")] = (
        BenchSource.SCRIPT
    ),
    cache_folder: Annotated[Path, typer.Option(help="Cache of the senses' output.")] = Path("scratch/sensed"),
) -> None:
    """Write the answers to a batch of `bench monitor --ask-later` into the data card."""
    answers, meaning, table = read_answers(batch), EncoderMatcher.shipped(), ThresholdTable.shipped()
    units: dict[str, list[CodedUnit]] = {}
    for encounter in encounters(SPLIT):
        name, closed = talk_name(encounter), list[ClosedUnit]()
        if not any(key.startswith(f"{UnitKeys(name).talk}_") for key in answers.by_id):
            continue
        if source is BenchSource.SCRIPT:
            monitor_script(encounter, meaning, table, note_closed=closed.append)
        else:
            sensed = sense_encounter(encounter, cache_folder, Whisper(WhisperConfig()))
            monitor_from_sound(sensed, meaning, table, note_closed=closed.append)
        units[name] = coded_units(name, closed, answers)
    path = write_card(units, source, form)
    print(f"{path}: {sum(map(len, units.values()))} units of {len(units)} encounters")


if __name__ == "__main__":
    try:
        typer.run(add)
    except TactfulError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
