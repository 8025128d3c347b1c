"""The monitor's figure of record: each writer's encounters, flagged by weights fitted without that writer."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import field, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.fit_units import FittedTalk, Rows, TrainingSet, fit_unit_model
from calibration.unit_examples import LabelledRecords, LabelledUnit, labelled_units
from norm_core.engines.openai.batch import BatchAnswers
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.files.data_files import shipped_file
from norm_core.models.reader_folder import NO_READER, read_manifest
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, WallClock
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit_model import OperatingPoint, Sensitivity, UnitModel
from norm_monitor.assessment.weighing import Assessment, weigh
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.encounters.encounter import Encounter, make_talk_name
from norm_monitor.encounters.library import Truth, encounters, load_folder
from norm_monitor.judge.coding import RecordedJudge
from norm_monitor.replay.judge_stand_in import JudgeStandIn
from norm_monitor.senses.speech.whisper import WhisperConfig
from scoring.f1 import f1_score
from scoring.intervals import draw_clusters, percentile_interval
from scoring.probabilities import expected_calibration_error
from sim_replays.monitor_bench.event_metrics import (
    BOOTSTRAP_DRAWS,
    TOLERANCE_S,
    Alarm,
    EncounterScores,
    EventSession,
    draw_prior_alarms,
    match_alarms,
    score_encounters,
)
from sim_replays.monitor_bench.script_driver import make_script_records, sense_encounter
from tactful_cli.flag_watch import load_whisper

# Who wrote the encounters of this split is not known; it is taken for one writer.
_UNATTRIBUTED, EARLIER = "development", "earlier"
# Conversations that no talk reader was taught; their writer is the letter with which their name begins.
DIALOGUES = "dialogues"


@record
class EvaluationPart:
    """A part of the material that has figures of its own."""

    source: str  # script or audio
    material: str
    language: str

    def __str__(self) -> str:
        """Its name in tables."""
        return f"{self.source}, {self.material}, {self.language}"


@record
class EvaluationRow:
    """The figures of one part under one sensitivity."""

    part: EvaluationPart
    sensitivity: Sensitivity
    encounters: int
    writers: int
    scores: EncounterScores
    interval_over_writers: dict[Polarity, tuple[float, float] | None]  # of F1
    expected_calibration_error: float | None
    # The control: as many flags as there are labels, at random turns of the robot.
    f1_by_chance: dict[Polarity, float]


@record
class EncounterSource:
    """One encounter as it is fed to the monitor: its records, by script or through sound."""

    encounter: Encounter
    writer: str
    by_sound: bool = False

    @property
    def part(self) -> EvaluationPart:
        """The part of the material whose figures it counts in."""
        return EvaluationPart(
            source="audio" if self.by_sound else "script",
            material=EARLIER if self.writer == EARLIER else "known writers" if self.encounter.writer else DIALOGUES,
            language=self.encounter.language,
        )


@record
class MeasuredEncounter:
    """What the monitor measured of one encounter."""

    truth: Truth
    units: tuple[LabelledUnit, ...]


@record
class Fold:
    """The weights that were fitted without a writer, and that writer's units as these weights see them."""

    writer: str
    model: UnitModel
    units: tuple[LabelledUnit, ...] = field(repr=False)


def shipped_sources(splits: Iterable[str], *, by_sound: bool = False) -> list[EncounterSource]:
    """Return all encounters of splits with their writers."""
    return [
        EncounterSource(
            encounter=encounter, writer=EARLIER if split == _UNATTRIBUTED else encounter.writer, by_sound=by_sound
        )
        for split in splits
        for encounter in encounters(split)
    ]


def dialogue_sources() -> list[EncounterSource]:
    """Return the dialogues with their writers."""
    return [
        EncounterSource(encounter=encounter, writer=encounter.id[0])
        for encounter in load_folder(shipped_file("calibration", DIALOGUES))
    ]


def find_readers_by_writer(folders: Iterable[Path]) -> dict[str, str]:
    """Return by writer the folder of a talk reader that was taught without the writer's encounters."""
    folder_by_writer: dict[str, str] = {}
    for folder in folders:
        manifest = read_manifest(folder)
        if manifest is None:
            raise TactfulError(f"{folder}: holds no talk reader; make one with calibration.talk_reader.train")
        folder_by_writer |= dict.fromkeys(json.loads(manifest.adapter.get("without", "[]")), str(folder))
    return folder_by_writer


def collect(  # noqa: PLR0917
    chosen: Sequence[EncounterSource],
    cache_folder: Path,
    jobs: int = 0,
    follow: Callable[[Iterable[MeasuredEncounter]], Iterable[MeasuredEncounter]] = iter,
    answers: Mapping[str, BatchAnswers] | None = None,
    readers: Mapping[str, str] | None = None,
) -> list[MeasuredEncounter]:
    """Run the monitor on every encounter, in several processes; sound is heard first where it is not cached.

    A judge attends where its answers about an encounter are given, and a talk reader where its writer has one.
    """
    work = partial(_collect_one, cache_folder=cache_folder, answers=answers or {}, readers=readers or {})
    with ProcessPoolExecutor(jobs or os.cpu_count()) as pool:
        return list(follow(pool.map(work, range(len(chosen)), chosen, chunksize=2)))


def folds(material: TrainingSet, track: Callable[[Sequence[str]], Iterable[str]] = iter) -> list[Fold]:
    """Fit the weights once without each writer."""
    return [_fold(material, writer) for writer in track(sorted(set(material.writers)))]


def everyone(material: TrainingSet) -> Rows:
    """Return the rows of all units."""
    return np.arange(len(material.units))


def parts_of(chosen: Sequence[EncounterSource]) -> dict[EvaluationPart, list[int]]:
    """Return the places of the encounters of each part."""
    parts: dict[EvaluationPart, list[int]] = {}
    for place, source in enumerate(chosen):
        parts.setdefault(source.part, []).append(place)
    return dict(sorted(parts.items(), key=lambda row: str(row[0])))


class CrossValidation:
    """What the monitor measured of all encounters, and the weights that are fitted without each writer."""

    def __init__(self, chosen: Sequence[EncounterSource], collected: Sequence[MeasuredEncounter]) -> None:
        """Bring together what was measured; takes a minute for thousands of turns."""
        self.chosen, self.collected = chosen, collected
        self.encoder = SentenceEncoder(cache_size=100_000)
        talks = [
            FittedTalk(
                writer=source.writer,
                harmless=not any(event.polarity is Polarity.ERROR for event in encounter.truth.events),
                hours=(encounter.truth.end_ns - encounter.truth.start_ns) / NS_PER_S / 3600,
                is_new=source.part.material == DIALOGUES,
            )
            for source, encounter in zip(chosen, collected, strict=True)
        ]
        self.material = TrainingSet([unit for encounter in collected for unit in encounter.units], talks, self.encoder)

    def rows(self, folds: Sequence[Fold]) -> list[EvaluationRow]:
        """Return one row for each part and sensitivity."""
        stated = _stated(folds)
        rows = []
        for sensitivity in Sensitivity:
            sessions = flagged(self.collected, folds, sensitivity)
            for part, places in parts_of(self.chosen).items():
                part_sessions = [sessions[place] for place in places]
                writers = [self.chosen[place].writer for place in places]
                inside = set(places)
                likely = [(error, right) for talk, error, right in stated if talk in inside]
                by_chance = score_encounters(draw_prior_alarms(part_sessions))
                rows.append(
                    EvaluationRow(
                        part=part,
                        sensitivity=sensitivity,
                        encounters=len(places),
                        writers=len(set(writers)),
                        scores=score_encounters(part_sessions),
                        interval_over_writers={
                            polarity: _over_writers(part_sessions, writers, polarity) for polarity in Polarity
                        },
                        expected_calibration_error=expected_calibration_error(likely),
                        f1_by_chance={polarity: by_chance.of(polarity).f1 for polarity in Polarity},
                    )
                )
        return sorted(rows, key=lambda row: str(row.part))


def flagged(
    collected: Sequence[MeasuredEncounter], folds: Iterable[Fold], sensitivity: Sensitivity
) -> list[EventSession]:
    """Return the flags that the weights without its writer raise in each encounter."""
    alarms: dict[int, list[Alarm]] = {}
    for fold in folds:
        point = fold.model.operating_points[sensitivity]
        for unit in fold.units:
            weighed = _flag_of(unit, fold.model, point)
            if weighed:
                alarms.setdefault(unit.talk, []).append(
                    Alarm(
                        polarity=weighed.polarity,
                        attributes=weighed.attributes,
                        onset_ns=unit.onset_ns,
                        known_ns=unit.onset_ns,
                    )
                )
    return [
        EventSession(truth=encounter.truth, alarms=tuple(alarms.get(talk, ())))
        for talk, encounter in enumerate(collected)
    ]


def _flag_of(unit: LabelledUnit, model: UnitModel, point: OperatingPoint) -> Assessment | None:
    """Return as what a unit is flagged: an error as it ended stands, anything else is as its reaction leaves it."""
    early = _weigh(unit, model, is_early=True) if unit.early_facts else None
    final = _weigh(unit, model)
    bar = point.threshold(Polarity.ERROR, is_early=True)
    if early and early.polarity is Polarity.ERROR and early.attributes and early.probability >= bar:
        return final if final and final.polarity is Polarity.ERROR and final.attributes else early
    is_flagged = final and final.attributes and final.probability >= point.threshold(final.polarity)
    return final if is_flagged else None


def _weigh(unit: LabelledUnit, model: UnitModel, *, is_early: bool = False) -> Assessment | None:
    findings = model.counted(unit.kind, unit.findings)
    reading = model.read(unit.kind, unit.early_facts if is_early else unit.facts, is_early=is_early)
    return weigh(findings, None, 0, reading) if reading or any(one.probability for one in findings) else None


def _stated(folds: Iterable[Fold]) -> list[tuple[int, float, bool]]:
    """Return of each unit its talk, how likely an error is stated, and whether a coder marked one."""
    return [
        (unit.talk, weighed.likely[Polarity.ERROR], unit.polarity is Polarity.ERROR)
        for fold in folds
        for unit in fold.units
        if (weighed := _weigh(unit, fold.model))
    ]


def _over_writers(
    sessions: Sequence[EventSession], writers: Sequence[str], polarity: Polarity
) -> tuple[float, float] | None:
    """Return the 95 % interval of F1 when writers, not encounters, are drawn again; None for a single writer."""
    counts: dict[str, NDArray[np.float64]] = {}
    for session, writer in zip(sessions, writers, strict=True):
        events = replace(session.truth, events=tuple(e for e in session.truth.events if e.polarity is polarity))
        alarms = tuple(alarm for alarm in session.alarms if alarm.polarity is polarity)
        hits = len(match_alarms(EventSession(truth=events, alarms=alarms), TOLERANCE_S))
        counts[writer] = counts.get(writer, np.zeros(2)) + np.array([hits, len(events.events) + len(alarms)], float)
    if len(counts) == 1:
        return None
    rows = np.array(list(counts.values()))
    drawn = rows[draw_clusters(len(rows), BOOTSTRAP_DRAWS)].sum(axis=1)
    return percentile_interval(f1_score(drawn[:, 0], drawn[:, 1], scale=100))


def _fold(material: TrainingSet, writer: str) -> Fold:
    within = np.flatnonzero(material.writers != writer)
    out = np.flatnonzero(material.writers == writer)
    return Fold(
        writer=writer,
        model=fit_unit_model(material, within, {"without": writer}),
        units=tuple(material.seen(within, out).values()),
    )


@cache
def _shared(reader: str = NO_READER) -> tuple[EncoderMatcher, ThresholdTable]:
    """Load what every run of a process needs."""
    return EncoderMatcher.shipped(reader, remembered=50_000), ThresholdTable.shipped()


def _collect_one(
    talk: int,
    source: EncounterSource,
    cache_folder: Path,
    answers: Mapping[str, BatchAnswers],
    readers: Mapping[str, str],
) -> MeasuredEncounter:
    meaning, table = _shared(readers.get(source.writer, NO_READER))
    name = make_talk_name(source.encounter)
    attend = JudgeStandIn(RecordedJudge(name, answers[name]), WallClock()) if name in answers else None
    if source.by_sound:
        sensed = sense_encounter(source.encounter, cache_folder, load_whisper(WhisperConfig()))
        labelled = LabelledRecords(given=sensed.records, sources=sensed.sources, truth=sensed.truth)
    else:
        entries, truth = make_script_records(source.encounter)
        labelled = LabelledRecords(given=tuple(entries), sources=(UTTERANCES,), truth=truth)
    return MeasuredEncounter(truth=labelled.truth, units=tuple(labelled_units(talk, labelled, meaning, table, attend)))
