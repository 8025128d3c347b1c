"""Fit how the reference judge counts beside the facts, and measure it on writers who were left out.

Run: python -m calibration.reference_judge.fit [--write]. It takes half an hour on two cores.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from math import log
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track

from calibration.command import run_command
from calibration.leave_one_writer_out import CrossValidation, Fold, collect, folds, shipped_sources
from calibration.reference_judge.answers import CALIBRATION, MADE_WITH, recorded
from calibration.reference_judge.scales import AnsweredUnit, fit_scales
from calibration.unit_examples import LabelledUnit
from norm_core.records.flag import Polarity
from norm_core.records.json_codec import to_json
from norm_core.records.record import record
from norm_core.runtime.artefact import write_artefact
from norm_core.runtime.time import NS_PER_S
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.unit import UnitJudgement
from norm_monitor.assessment.unit_model import Sensitivity
from norm_monitor.assessment.weighing import Assessment, counted_judgement, evidence_odds, weigh
from norm_monitor.encounters.encounter import make_talk_name
from norm_monitor.encounters.library import SPLITS, Truth
from norm_monitor.judge.judge import FORMAT, KIND, JudgeCalibration
from sim_replays.monitor_bench.event_metrics import Alarm, EncounterScores, EventSession, score_encounters

MAX_FALSE_ERRORS_PER_HOUR = 3.0
_GRID = np.round(np.arange(0.1, 0.91, 0.05), 2)


@record
class WeighedUnit:
    """A unit of an encounter, with its facts as weighed without its writer."""

    unit: LabelledUnit
    fold: Fold

    def assessment(self, judgement: UnitJudgement | None, weight: float) -> Assessment:
        """Weigh what is known of the unit."""
        model, unit = self.fold.model, self.unit
        return weigh(model.counted(unit.kind, unit.findings), judgement, weight, model.read(unit.kind, unit.facts))


@record
class JudgedTalk:
    """An encounter that the judge answered about: its writer, its labels and its units."""

    writer: str
    truth: Truth
    units: tuple[WeighedUnit, ...]

    @property
    def is_harmless(self) -> bool:
        """Whether no error is labelled."""
        return all(event.polarity is not Polarity.ERROR for event in self.truth.events)


def fit_calibration(talks: Sequence[JudgedTalk]) -> JudgeCalibration:
    """Fit the temperature and the weight by likelihood, then the thresholds of judged units by F1."""
    temperature, weight = fit_scales([unit for talk in talks for unit in _answered(talk)])
    calibration = JudgeCalibration(
        kind=KIND, format=FORMAT, made_on=date.today().isoformat(), made_with=MADE_WITH,
        fitted_on={"encounters": str(len(talks)), "writers": ", ".join(sorted({talk.writer for talk in talks}))},
        temperature=round(temperature, 3), weight=round(weight, 3),
    )  # fmt: skip
    judged = [
        (talk.is_harmless, unit.unit.polarity, assessment)
        for talk in talks
        for unit, judgement, assessment in _weighed(talk, calibration)
        if judgement
    ]
    hours = sum(talk.truth.end_ns - talk.truth.start_ns for talk in talks if talk.is_harmless) / NS_PER_S / 3600
    thresholds = []
    for polarity in Polarity:
        likely = np.array(
            [assessment.probability if assessment.polarity is polarity else 0.0 for _, _, assessment in judged]
        )
        right = np.array([label is polarity for _, label, _ in judged])
        harmless = np.array([is_harmless for is_harmless, _, _ in judged]) & (polarity is Polarity.ERROR)
        flagged = [likely >= bar for bar in _GRID]
        f1 = [
            2 * (right & at).sum() / (right.sum() + at.sum())
            if (harmless & at).sum() <= MAX_FALSE_ERRORS_PER_HOUR * hours
            else 0.0
            for at in flagged
        ]
        thresholds.append(f"{polarity}={_GRID[int(np.argmax(f1))]}")
    return calibration.model_copy(update={"min_probability": tuple(thresholds)})


def session(talk: JudgedTalk, calibration: JudgeCalibration | None) -> EventSession:
    """Return the flags of an encounter, without the judge or with it."""
    config = FusionConfig(min_probability_judged=calibration.min_probability if calibration else ())
    alarms = []
    for unit, judgement, assessment in _weighed(talk, calibration):
        point = unit.fold.model.operating_points[Sensitivity.BALANCED]
        thresholds = config.thresholds_at(point, is_judged=judgement is not None)
        if any(
            assessment.probability >= thresholds[assessment.polarity, attribute] for attribute in assessment.attributes
        ):
            onset_ns = unit.unit.onset_ns
            alarms.append(
                Alarm(
                    polarity=assessment.polarity,
                    attributes=assessment.attributes,
                    onset_ns=onset_ns,
                    known_ns=onset_ns,
                )
            )
    return EventSession(truth=talk.truth, alarms=tuple(alarms))


def left_out(talks: Sequence[JudgedTalk]) -> dict[str, EncounterScores]:
    """Return the scores without the judge and with it, each writer flagged by what is fitted on the others."""
    fits = {
        writer: fit_calibration([talk for talk in talks if talk.writer != writer])
        for writer in sorted({talk.writer for talk in talks})
    }
    parts: dict[str, Callable[[JudgedTalk], bool]] = {
        "": lambda talk: True,
        ", writers with even numbers": lambda talk: int(talk.writer[1:]) % 2 == 0,
        ", English": lambda talk: talk.truth.language == "en",
        ", Chinese": lambda talk: talk.truth.language == "zh",
    }
    sessions = {
        "fusion alone": {talk.truth.encounter_id: session(talk, None) for talk in talks},
        "both": {talk.truth.encounter_id: session(talk, fits[talk.writer]) for talk in talks},
    }
    return {
        f"{name}{part}": score_encounters([flagged[talk.truth.encounter_id] for talk in chosen])
        for part, is_in in parts.items()
        if (chosen := [talk for talk in talks if is_in(talk)])
        for name, flagged in sessions.items()
    }


def _answered(talk: JudgedTalk) -> Iterator[AnsweredUnit]:
    """Yield the units with an answer whose facts are weighed."""
    for fold_unit in talk.units:
        model, unit = fold_unit.fold.model, fold_unit.unit
        findings, reading = model.counted(unit.kind, unit.findings), model.read(unit.kind, unit.facts)
        odds = [evidence_odds(findings, polarity, reading) for polarity in Polarity]
        if unit.judgement and all(odds):
            error, competence = (unit.judgement.probability[polarity] for polarity in Polarity)
            yield AnsweredUnit(
                polarity=unit.polarity,
                judge=(error, competence, 1 - error - competence),
                facts=(log(odds[0] or 1), log(odds[1] or 1)),
            )


def _weighed(
    talk: JudgedTalk, calibration: JudgeCalibration | None
) -> Iterator[tuple[WeighedUnit, UnitJudgement | None, Assessment]]:
    """Yield units with what counts of the judge."""
    tempered = [_tempered(unit.unit, calibration) for unit in talk.units]
    judged = [(judgement.unit, judgement) for judgement in tempered if judgement]
    for unit, judgement in zip(talk.units, tempered, strict=True):
        counted = counted_judgement(judgement.unit, judgement, judged) if judgement else None
        yield unit, counted, unit.assessment(counted, calibration.weight if calibration else 0.0)


def _tempered(labelled: LabelledUnit, calibration: JudgeCalibration | None) -> UnitJudgement | None:
    """Return the judge's answer on a unit as it ended."""
    judgement = labelled.judgement
    if judgement is None or calibration is None:
        return None
    error, competence = (judgement.probability[polarity] for polarity in Polarity)
    tempered = calibration.temper((error, competence, 1 - error - competence))
    unit = replace(judgement.unit, offset_ns=labelled.offset_ns)
    return replace(judgement, unit=unit, probability=dict(zip(Polarity, tempered, strict=False)))


def main(
    write: Annotated[bool, typer.Option("--write", help="Ship what is fitted on all writers.")] = False,
    jobs: Annotated[int, typer.Option(min=0, help="Processes; 0: one a core.")] = 0,
) -> None:
    """Print the figures of writers left out, without the judge and with it."""
    console, answers, chosen = Console(stderr=True), recorded(), shipped_sources(SPLITS)
    followed = partial(track, total=len(chosen), description="running the monitor", console=console)
    collected = collect(chosen, Path(), jobs, followed, answers)
    material = CrossValidation(chosen, collected).material
    units: dict[int, list[WeighedUnit]] = {}
    for fold in folds(material, lambda some: track(some, "fitting without each writer", console=console)):
        for unit in fold.units:
            units.setdefault(unit.talk, []).append(WeighedUnit(unit=unit, fold=fold))
    talks = [
        JudgedTalk(writer=source.writer, truth=measured.truth, units=tuple(units[place]))
        for place, (source, measured) in enumerate(zip(chosen, collected, strict=True))
        if make_talk_name(source.encounter) in answers
    ]
    print(to_json(left_out(talks)))
    if write:
        write_artefact(fit_calibration(talks), CALIBRATION)


if __name__ == "__main__":
    run_command(main)
