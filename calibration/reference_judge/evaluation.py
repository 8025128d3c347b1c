"""What the reference judge adds to the fusion, on the encounters that it answered about."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np

from calibration.judge_fit import CLASSES
from calibration.reference_judge.answers import SPLIT, CodedUnit, ReferenceJudge, recorded, shipped_calibration
from calibration.unit_examples import labels_of
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.evaluation.risk_coverage import average_precision
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, WallClock
from norm_monitor.context.meaning import Concepts, EncoderMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.fusion.fusion import ClosedUnit
from norm_monitor.fusion.unit_model import shipped_unit_model
from norm_monitor.fusion.weighing import weigh
from norm_monitor.judge.coding import ORDINARY, Form
from norm_monitor.judge.triggers import NO_CEILING
from sim_replays.drivers.script_driver import monitor_script
from sim_replays.monitor_bench.event_metrics import Alarm, EncounterScores, EventSession, score_encounters
from sim_replays.monitor_bench.judge_stand_in import JudgeStandIn
from sim_replays.monitor_bench.sensed_cache import BenchSource
from sim_replays.scenarios.encounter import Encounter, talk_name
from sim_replays.scenarios.library import encounters

ALONE, JUDGE, BOTH = "fusion alone", "judge alone", "both"
CEILINGS = (10.0, 30.0, 100.0, 300.0, 1000.0)  # calls an hour


@record
class PlayedEncounter:
    """An encounter's flags by reader, its units' probabilities and labels, and how many units were asked about."""

    name: str
    sessions: dict[str, EventSession]
    likely: dict[str, tuple[tuple[float, float], ...]]  # of each unit, by polarity
    labels: tuple[Polarity | None, ...]
    asked: dict[str, int]


@record
class ReaderFigures:
    """What one reader finds; the average precision is that of its units' probabilities, where they are known."""

    encounters: tuple[str, ...]
    scores: EncounterScores
    any_attribute: dict[Polarity, float]  # F1 where a flag need not share an attribute
    average_precision: dict[Polarity, float]
    asked_per_hour: float


def evaluate(
    form: Form = Form.TALK,
    names: Sequence[str] = (),
    ceilings: Sequence[float] = CEILINGS,
    track: Callable[[Iterable[PlayedEncounter], int], Iterable[PlayedEncounter]] = lambda played, count: played,
    jobs: int = 0,
) -> dict[str, ReaderFigures]:
    """Return the figures of each reader on the encounters of a form, or on those named."""
    answers = recorded(BenchSource.SCRIPT, form)
    chosen = [one for one in encounters(SPLIT) if talk_name(one) in (names or answers)]
    units, given = [answers[talk_name(one)] for one in chosen], [tuple(ceilings)] * len(chosen)
    if not chosen:
        return {}
    if jobs == 1:
        played = list(track(map(play, chosen, units, given), len(chosen)))
    else:
        with ProcessPoolExecutor(jobs or os.cpu_count()) as pool:
            played = list(track(pool.map(play, chosen, units, given), len(chosen)))
    return {name: figures(name, played) for name in played[0].sessions}


def play(encounter: Encounter, coded: Sequence[CodedUnit], ceilings: Sequence[float]) -> PlayedEncounter:
    """Run the monitor on an encounter without the judge, and with it under each ceiling."""
    meaning, table = _shared()
    calibration, closed = shipped_calibration(), list[ClosedUnit]()
    alone = monitor_script(encounter, meaning, table, note_closed=closed.append)
    sessions, asked = {ALONE: alone, JUDGE: replace(alone, alarms=_alarms(coded))}, {ALONE: 0, JUDGE: len(coded)}
    for ceiling in (NO_CEILING, *ceilings):
        attend = JudgeStandIn(ReferenceJudge(coded, calibration), WallClock())
        name = BOTH if ceiling == NO_CEILING else f"{BOTH}, at most {ceiling:g} calls an hour"
        sessions[name] = monitor_script(encounter, meaning, table, 0, attend, ceiling, fusion=calibration.fusion())
        asked[name] = len(attend.spent_s)
    labels = labels_of(closed, alone.truth.events)
    return PlayedEncounter(
        name=talk_name(encounter),
        sessions=sessions,
        likely=_likely(closed, ReferenceJudge(coded, calibration)),
        labels=tuple(labels[at].polarity if at in labels else None for at in range(len(closed))),
        asked=asked,
    )


def figures(reader: str, played: Sequence[PlayedEncounter]) -> ReaderFigures:
    """Score a reader on encounters."""
    sessions = [one.sessions[reader] for one in played]
    lenient = score_encounters([_of_any_attribute(session) for session in sessions])
    hours = sum(one.truth.end_ns - one.truth.start_ns for one in sessions) / NS_PER_S / 3600
    labels = np.array([CLASSES.index(label) for one in played for label in one.labels])
    likely = np.array([pair for one in played for pair in one.likely.get(reader, ())])
    return ReaderFigures(
        encounters=tuple(one.name for one in played),
        scores=score_encounters(sessions),
        any_attribute={polarity: lenient.of(polarity).f1 for polarity in Polarity},
        average_precision={
            polarity: average_precision(likely[:, at], labels == at)
            for at, polarity in enumerate(Polarity)
            if len(likely) and (labels == at).any()
        },
        asked_per_hour=sum(one.asked[reader] for one in played) / hours,
    )


def _likely(closed: Sequence[ClosedUnit], judge: ReferenceJudge) -> dict[str, tuple[tuple[float, float], ...]]:
    """Return the probabilities of each unit by what its facts say, what the judge says, and both."""
    rows: dict[str, list[tuple[float, float]]] = {ALONE: [], JUDGE: [], BOTH: []}
    model, fusion = shipped_unit_model(), shipped_calibration().fusion()
    for one in closed:
        findings = model.counted(one.unit.kind, one.findings)
        reading = model.read(one.unit.kind, one.measured.facts) if one.measured else None
        judgement = judge.judgement(one.unit)
        for name, judged in ((ALONE, None), (BOTH, judgement)):
            likely = weigh(findings, judged, fusion.judge_weight, reading).likely
            rows[name].append((likely[Polarity.ERROR], likely[Polarity.COMPETENCE]))
        probability = judgement.probability if judgement else {}
        rows[JUDGE].append((probability.get(Polarity.ERROR, 0.0), probability.get(Polarity.COMPETENCE, 0.0)))
    return {name: tuple(pairs) for name, pairs in rows.items()}


def _alarms(coded: Iterable[CodedUnit]) -> tuple[Alarm, ...]:
    """Return what the judge alone would flag: each unit that it takes for an event rather than for ordinary."""
    return tuple(
        Alarm(
            polarity=Polarity(one.coding.polarity),
            attributes=one.coding.attributes,
            onset_ns=one.onset_ns,
            known_ns=one.onset_ns,
        )
        for one in coded
        if one.coding.polarity != ORDINARY
    )


def _of_any_attribute(session: EventSession) -> EventSession:
    return replace(session, alarms=tuple(replace(one, attributes=tuple(Attribute)) for one in session.alarms))


@cache
def _shared() -> tuple[EncoderMatcher, ThresholdTable]:
    """Load what every encounter of a process needs."""
    return EncoderMatcher(SentenceEncoder(remembered=50_000), Concepts.shipped()), ThresholdTable.shipped()
