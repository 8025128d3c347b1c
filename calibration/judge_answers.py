"""Ask a model the judge's first question about units of labelled encounters; answers stay in a file."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from math import log
from pathlib import Path

import numpy as np

from calibration.judge_fit import AnsweredUnit
from calibration.unit_examples import FITTED, LabelledRecords, labels_of
from norm_core.engines.engine import Engine
from norm_core.engines.request_context import Deadline
from norm_core.records.flag import Polarity
from norm_core.records.json_codec import sha256_of
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import Clock, ReplayClock, s_to_ns
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit_evidence import UnitEvidence
from norm_monitor.assessment.unit_model import UnitModel
from norm_monitor.assessment.weighing import evidence_odds
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.encounters.encounter import Encounter
from norm_monitor.encounters.library import load_folder
from norm_monitor.judge.deployment_context import DeploymentContext
from norm_monitor.judge.excerpt import Excerpt, UnitView
from norm_monitor.judge.judge import PromptPlan, plan
from norm_monitor.judge.triggers import NO_CEILING
from norm_monitor.monitor import Monitor, MonitorConfig

# No unit is left out.
# A slow model is waited for as long as the judge's parameters permit.
_LONGEST_NS = s_to_ns(600)
# Number of units without an answer in a row after which nothing more is asked.
_MOST_FAILURES = 8


@record
class LabelledEncounter:
    """A labelled encounter and its writer."""

    encounter: Encounter
    writer: str

    @property
    def name(self) -> str:
        """The name that no encounter of another writer has."""
        return f"{self.writer}/{self.encounter.id}"


@record
class LabelledUnitView:
    """A unit with its label, the judge's questions about it, and the log odds of its facts."""

    encounter: str
    writer: str
    unit_id: str
    polarity: Polarity | None
    questions: PromptPlan
    facts: tuple[float, float]


def read_labels(folder: Path) -> list[LabelledEncounter]:
    """Read encounters that lie in the folder, or in one folder a writer."""
    folders = sorted(path for path in folder.iterdir() if any(path.glob("*.yaml"))) if folder.is_dir() else []
    if folders and not any(folder.glob("*.yaml")):
        return [
            LabelledEncounter(encounter=encounter, writer=path.name)
            for path in folders
            for encounter in load_folder(path)
        ]
    return [
        LabelledEncounter(encounter=encounter, writer=encounter.writer or folder.name)
        for encounter in load_folder(folder)
    ]


def units_with_views(
    source: LabelledEncounter, labelled: LabelledRecords, meaning: TextMatcher, table: ThresholdTable, model: UnitModel
) -> list[LabelledUnitView]:
    """Run the monitor on an encounter's records; return the units whose facts it weighs, as a judge sees them."""
    closed: list[UnitEvidence] = []
    views: list[UnitView] = []
    clock = ReplayClock()
    config = MonitorConfig.for_replay(labelled.sources, calls_per_hour=NO_CEILING)
    monitor = Monitor(config, table, meaning, clock, unit_model=model, note_closed=closed.append)
    for at_ns, entry in labelled.given:
        clock.advance_to(max(at_ns, clock.now_ns()))
        monitor.take(entry)
        views += monitor.units_to_judge()
    monitor.end_input(awaits_judge=False)
    views += monitor.units_to_judge()
    labels = labels_of([unit.unit for unit in closed], labelled.truth.events)
    units_by_id = {unit.unit.unit_id: (unit, labels.get(place)) for place, unit in enumerate(closed)}
    views_of_units = []
    for view in views:
        unit, label = units_by_id.get(view.unit.unit_id, (None, None))
        facts = _log_odds(unit, model) if unit else None
        if facts:
            views_of_units.append(
                LabelledUnitView(
                    encounter=source.name,
                    writer=source.writer,
                    unit_id=view.unit.unit_id,
                    polarity=label.polarity if label else None,
                    questions=plan(Excerpt.of_unit(view), 0, DeploymentContext.UNSPECIFIED),
                    facts=facts,
                )
            )
    return views_of_units


def _log_odds(closed: UnitEvidence, model: UnitModel) -> tuple[float, float] | None:
    """Return the log odds of an error and of a competence by the facts; None where they are not weighed."""
    if closed.measured is None or closed.unit.kind not in FITTED:
        return None
    reading = model.read(closed.unit.kind, closed.measured.facts)
    error, competence = (evidence_odds(closed.findings, polarity, reading) for polarity in Polarity)
    return (log(error), log(competence)) if error and competence else None


def sample_units(units: Sequence[LabelledUnitView], most: int, seed: int) -> list[LabelledUnitView]:
    """Return labelled units and a like number of ordinary ones by turns, so that any first part is balanced."""
    random = np.random.default_rng(seed)
    shuffled = [units[place] for place in random.permutation(len(units))]
    labelled = [unit for unit in shuffled if unit.polarity]
    count = min(len(labelled), (most + 1) // 2) if most else len(labelled)
    ordinary = [unit for unit in shuffled if not unit.polarity][:count]
    by_turns = chain.from_iterable(zip_longest(labelled[:count], ordinary))
    return [by_turn for by_turn in by_turns if by_turn][: most or None]


@dataclass
class JudgeAnswers:
    """A model's answers in a file of JSON lines, by model, prompt and unit; only what is new is asked."""

    path: Path
    engine: Engine
    clock: Clock
    unanswered: dict[str, int] = field(default_factory=dict)  # by outcome and reason

    def __post_init__(self) -> None:
        """Read the answers of earlier runs; a line that an interruption cut is asked again."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._known: dict[str, tuple[float, float, float]] = {}
        for line in self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else ():
            try:
                stored = json.loads(line)
                error, competence, ordinary = stored["probabilities"]
                self._known[stored["key"]] = error, competence, ordinary
            except (ValueError, KeyError, TypeError):
                continue

    def collect(
        self,
        units: Sequence[LabelledUnitView],
        track: Callable[[Sequence[LabelledUnitView]], Iterable[LabelledUnitView]] = iter,
    ) -> list[AnsweredUnit]:
        """Return the units that the model answers about; raise TactfulError where it answers about none of many."""
        answered, failed_in_a_row = [], 0
        for unit in track(units):
            probabilities = self._answer(unit)
            failed_in_a_row = 0 if probabilities else failed_in_a_row + 1
            if failed_in_a_row == _MOST_FAILURES:
                reasons = "; ".join(self.unanswered)
                raise TactfulError(
                    f"{self.engine.model_info.model}: gave no answer to {_MOST_FAILURES} units in a row ({reasons}); "
                    "fix the model, then repeat the command: answers so far are kept"
                )
            if probabilities:
                answered.append(
                    AnsweredUnit(
                        encounter=unit.encounter,
                        writer=unit.writer,
                        polarity=unit.polarity,
                        judge=probabilities,
                        facts=unit.facts,
                    )
                )
        return answered

    def _answer(self, unit: LabelledUnitView) -> tuple[float, float, float] | None:
        model_info, questions = self.engine.model_info, unit.questions
        digest = questions.detection.digest(questions.prompt)
        key = sha256_of([model_info.model, model_info.weights_sha256, digest, unit.encounter, unit.unit_id])
        if key not in self._known:
            deadline = Deadline(self.clock, self.clock.now_ns() + _LONGEST_NS)
            (scores,) = self.engine.ask_many(questions.prompt, [questions.detection], deadline)
            if scores.outcome is not Outcome.ANSWERED:
                why = f"{scores.outcome}: {scores.reason}"
                self.unanswered[why] = self.unanswered.get(why, 0) + 1
                return None
            error, competence, ordinary = scores.probabilities
            self._known[key] = error, competence, ordinary
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "probabilities": self._known[key]}) + "\n")
        return self._known[key]
