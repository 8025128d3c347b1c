"""The monitor's figure of record: each writer's encounters, flagged by weights fitted without that writer."""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import field
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.fit_units import Material, Rows, Talk, fit_unit_model
from calibration.unit_examples import LabelledRecords, LabelledUnit, labelled_units
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.evaluation.f1 import f1_score
from norm_core.evaluation.intervals import draw_clusters, percentile_interval
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S
from norm_core.runtime.watermarks import UTTERANCES
from norm_monitor.context.meaning import Concepts, Meanings
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.fusion.unit_model import Sensitivity, UnitModel
from norm_monitor.fusion.weighing import weigh
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from norm_monitor.units.unit import UnitKind
from sim_replays.drivers.script_driver import records_of_script
from sim_replays.monitor_bench.event_metrics import AT_S, Alarm, EventSession, match_alarms
from sim_replays.monitor_bench.sensed_cache import sense_encounter
from sim_replays.scenarios.encounter import Encounter
from sim_replays.scenarios.library import encounters
from sim_replays.scenarios.truth import Truth

_DRAWS = 1_000
# The splits whose writers are not known; each is taken for one writer.
EARLIER = ("development",)


@record
class Source:
    """One encounter as it is fed to the monitor: its records, by script or through sound."""

    encounter: Encounter
    writer: str
    by_sound: bool = False


@record
class Collected:
    """What the monitor measured of one encounter."""

    truth: Truth
    units: tuple[LabelledUnit, ...]


@record
class Fold:
    """The weights that were fitted without a writer, and that writer's units as these weights see them."""

    writer: str
    model: UnitModel
    units: tuple[LabelledUnit, ...] = field(repr=False)


def sources(splits: Iterable[str], *, by_sound: bool = False) -> list[Source]:
    """Return all encounters of splits with their writers."""
    return [
        Source(encounter=one, writer="earlier" if split in EARLIER else one.writer, by_sound=by_sound)
        for split in splits
        for one in encounters(split)
    ]


def collect(chosen: Sequence[Source], cache_folder: Path, jobs: int = 0) -> list[Collected]:
    """Run the monitor on every encounter, in several processes; sound is heard first where it is not cached."""
    work = partial(_collect_one, cache_folder=cache_folder)
    with ProcessPoolExecutor(jobs or os.cpu_count(), initializer=_shared) as pool:
        return list(pool.map(work, range(len(chosen)), chosen, chunksize=2))


def material_of(chosen: Sequence[Source], collected: Sequence[Collected], encoder: SentenceEncoder) -> Material:
    """Bring together what was measured."""
    talks = [
        Talk(
            writer=source.writer,
            harmless=not any(event.polarity is Polarity.ERROR for event in one.truth.events),
            hours=(one.truth.end_ns - one.truth.start_ns) / NS_PER_S / 3600,
        )
        for source, one in zip(chosen, collected, strict=True)
    ]
    return Material([unit for one in collected for unit in one.units], talks, encoder)


def folds(material: Material, track: Callable[[Sequence[str]], Iterable[str]] = iter) -> list[Fold]:
    """Fit the weights once without each writer."""
    return [_fold(material, writer) for writer in track(sorted(set(material.writers)))]


def everyone(material: Material) -> Rows:
    """Return the rows of all units."""
    return np.arange(len(material.units))


def flagged(collected: Sequence[Collected], found: Iterable[Fold], sensitivity: Sensitivity) -> list[EventSession]:
    """Return the flags that the weights without its writer raise in each encounter."""
    alarms: dict[int, list[Alarm]] = {}
    for fold in found:
        point = fold.model.operating_points[sensitivity]
        for unit in fold.units:
            reading = fold.model.read(unit.kind, unit.facts)
            if reading is None:
                continue
            found_here = weigh((), None, 0, reading)
            if found_here.probability >= point.bar(found_here.polarity):
                alarms.setdefault(unit.talk, []).append(
                    Alarm(
                        polarity=found_here.polarity,
                        attributes=found_here.attributes,
                        onset_ns=unit.onset_ns,
                        known_ns=unit.onset_ns,
                    )
                )
    return [EventSession(truth=one.truth, alarms=tuple(alarms.get(talk, ()))) for talk, one in enumerate(collected)]


def reliability(found: Iterable[Fold], writers: Collection[str]) -> list[tuple[float, bool, UnitKind]]:
    """Return for each unit of these writers how likely an error is stated, and whether a coder marked one."""
    stated = []
    for fold in found:
        for unit in fold.units if fold.writer in writers else ():
            reading = fold.model.read(unit.kind, unit.facts)
            if reading:
                likely = reading.odds[Polarity.ERROR] / (1 + sum(reading.odds.values()))
                stated.append((likely, unit.polarity is Polarity.ERROR, unit.kind))
    return stated


def writer_interval(
    sessions: Sequence[EventSession], chosen: Sequence[Source], places: Iterable[int], polarity: Polarity
) -> tuple[float, float]:
    """Return the 95 % interval of F1 when writers, not encounters, are drawn again."""
    counts: dict[str, NDArray[np.float64]] = {}
    for place in places:
        session = sessions[place]
        marked = sum(one.polarity is polarity for one in session.truth.events)
        raised = sum(one.polarity is polarity for one in session.alarms)
        hits = sum(session.truth.events[event].polarity is polarity for event, _ in match_alarms(session, AT_S))
        writer = chosen[place].writer
        counts[writer] = counts.get(writer, np.zeros(2)) + np.array([hits, marked + raised], float)
    rows = np.array(list(counts.values()))
    drawn = rows[draw_clusters(len(rows), _DRAWS)].sum(axis=1)
    return percentile_interval(f1_score(drawn[:, 0], drawn[:, 1], scale=100))


def _fold(material: Material, writer: str) -> Fold:
    within = np.flatnonzero(material.writers != writer)
    out = np.flatnonzero(material.writers == writer)
    return Fold(
        writer=writer,
        model=fit_unit_model(material, within, {"without": writer}),
        units=tuple(material.seen(within, out).values()),
    )


@cache
def _shared() -> tuple[Meanings, ThresholdTable]:
    """Load what every run of a process needs."""
    return Meanings(SentenceEncoder(remembered=50_000), Concepts.shipped()), ThresholdTable.shipped()


@cache
def _recogniser() -> Whisper:
    return Whisper(WhisperConfig())


def _collect_one(talk: int, source: Source, cache_folder: Path) -> Collected:
    meaning, table = _shared()
    if source.by_sound:
        sensed = sense_encounter(source.encounter, cache_folder, _recogniser())
        given = tuple((one.at_ns, one.entry) for one in sensed.given)
        labelled = LabelledRecords(given=given, sources=sensed.sources, truth=sensed.truth)
    else:
        entries, truth = records_of_script(source.encounter)
        labelled = LabelledRecords(given=tuple(entries), sources=(UTTERANCES,), truth=truth)
    return Collected(truth=labelled.truth, units=tuple(labelled_units(talk, labelled, meaning, table)))
