"""What the reference judge adds to the fusion, on the encounters that it answered about."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np

from calibration.judge_fit import CLASSES
from calibration.reference_judge.answers import SPLIT, recorded, shipped_calibration
from calibration.unit_examples import labels_of
from norm_core.engines.openai.batch import BatchAnswers
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, WallClock
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import UnitJudgement
from norm_monitor.assessment.unit_evidence import UnitEvidence
from norm_monitor.assessment.unit_model import shipped_unit_model
from norm_monitor.context.meaning import Concepts, EncoderMatcher
from norm_monitor.encounters.encounter import Encounter, make_talk_name
from norm_monitor.encounters.library import encounters
from norm_monitor.judge.coding import RecordedJudge
from norm_monitor.judge.triggers import NO_CEILING
from norm_monitor.replay.judge_stand_in import JudgeStandIn
from scoring.ranking import ranking_measures
from sim_replays.monitor_bench.event_metrics import Alarm, EncounterScores, EventSession, score_encounters
from sim_replays.monitor_bench.script_driver import monitor_script

ALONE, JUDGE, BOTH = "fusion alone", "judge alone", "both"
CEILINGS = (10.0, 100.0, 1000.0)  # calls an hour

Pairs = tuple[tuple[float, ...], ...]  # the probabilities of an error and a competence, of each unit


@record
class PlayedEncounter:
    """An encounter's flags by reader, how many units each asked about, and its units' probabilities and labels."""

    name: str
    sessions: dict[str, EventSession]
    asked: dict[str, int]
    likely: dict[str, Pairs]
    labels: tuple[Polarity | None, ...]


@record
class ReaderFigures:
    """What one reader finds; average precision is that of the units' probabilities, under no ceiling."""

    encounters: tuple[str, ...]
    scores: EncounterScores
    average_precision: dict[Polarity, float]
    asked_per_hour: float


Track = Callable[[Iterable[PlayedEncounter], int], Iterable[PlayedEncounter]]


def play_all(
    form: str, ceilings: Sequence[float] = (), track: Track = lambda played, count: played
) -> list[PlayedEncounter]:
    """Run the monitor on the encounters that were answered in a form, in several processes."""
    answers = recorded(form=form)
    chosen = [encounter for encounter in encounters(SPLIT) if make_talk_name(encounter) in answers]
    arguments = chosen, [answers[make_talk_name(encounter)] for encounter in chosen], [ceilings] * len(chosen)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return list(track(pool.map(play, *arguments), len(chosen)))


def play(encounter: Encounter, answers: BatchAnswers, ceilings: Sequence[float]) -> PlayedEncounter:
    """Run the monitor on an encounter without the judge, and with it under each ceiling of calls."""
    (meaning, table), calibration, closed = _shared(), shipped_calibration(), list[UnitEvidence]()
    alone = monitor_script(encounter, meaning, table, note_closed=closed.append)
    sessions, asked, judgements = {ALONE: alone, JUDGE: alone}, {ALONE: 0}, list[UnitJudgement]()
    fusion = FusionConfig(judge_weight=calibration.weight, min_probability_judged=calibration.min_probability)
    for ceiling in (NO_CEILING, *ceilings):
        attend = JudgeStandIn(RecordedJudge(make_talk_name(encounter), answers, calibration=calibration), WallClock())
        name = BOTH if ceiling == NO_CEILING else f"{BOTH}, {ceiling:g} calls an hour"
        sessions[name] = monitor_script(encounter, meaning, table, 0, attend, ceiling, fusion=fusion)
        asked[name] = len(attend.judgements)
        judgements = judgements or attend.judgements
    alarms = tuple(_alarm(judgement) for judgement in judgements if judgement.attributes)
    labels = labels_of([unit.unit for unit in closed], alone.truth.events)
    return PlayedEncounter(
        name=make_talk_name(encounter),
        sessions={**sessions, JUDGE: replace(alone, alarms=alarms)},
        asked={**asked, JUDGE: asked[BOTH]},
        likely=_likely(closed, {judgement.unit.unit_id: judgement for judgement in judgements}, calibration.weight),
        labels=tuple(labels[place].polarity if place in labels else None for place in range(len(closed))),
    )


def figures(reader: str, played: Sequence[PlayedEncounter]) -> ReaderFigures:
    """Score a reader on encounters."""
    sessions = [encounter.sessions[reader] for encounter in played]
    hours = sum(session.truth.end_ns - session.truth.start_ns for session in sessions) / NS_PER_S / 3600
    labels = np.array([CLASSES.index(label) for encounter in played for label in encounter.labels])
    likely = np.array([pair for encounter in played for pair in encounter.likely.get(reader, ())])
    return ReaderFigures(
        encounters=tuple(encounter.name for encounter in played),
        scores=score_encounters(sessions),
        average_precision={
            polarity: float(ranking_measures(likely[:, at], labels == at, np.ones((1, len(labels))))[1][0])
            for at, polarity in enumerate(Polarity)
            if likely.size and (labels == at).any()
        },
        asked_per_hour=sum(encounter.asked[reader] for encounter in played) / hours,
    )


def _alarm(judgement: UnitJudgement) -> Alarm:
    """Return what the judge alone would flag."""
    onset_ns, likely = judgement.unit.onset_ns, judgement.probability
    polarity = max(Polarity, key=lambda polarity: likely[polarity])
    return Alarm(polarity=polarity, attributes=judgement.attributes, onset_ns=onset_ns, known_ns=onset_ns)


def _likely(closed: Sequence[UnitEvidence], judged: Mapping[str, UnitJudgement], weight: float) -> dict[str, Pairs]:
    """Return each unit's probabilities by its facts, by the judge, and by both."""
    rows: dict[str, list[tuple[float, ...]]] = {ALONE: [], JUDGE: [], BOTH: []}
    model = shipped_unit_model()
    for unit in closed:
        judgement = judged.get(unit.unit.unit_id)
        likely = {
            ALONE: unit.assessment(model).likely,
            JUDGE: judgement.probability if judgement else {},
            BOTH: unit.assessment(model, judgement, weight).likely,
        }
        for name, of in likely.items():
            rows[name].append(tuple(of.get(polarity, 0.0) for polarity in Polarity))
    return {name: tuple(pairs) for name, pairs in rows.items()}


@cache
def _shared() -> tuple[EncoderMatcher, ThresholdTable]:
    """Load what every encounter of a process needs."""
    return EncoderMatcher(SentenceEncoder(cache_size=50_000), Concepts.shipped()), ThresholdTable.shipped()
