"""The judge: ask a model what a coder would mark about a unit, and return probabilities."""

from dataclasses import replace

from pydantic import Field

from norm_core.engines.backend import AnsweringModel
from norm_core.engines.prompt import Prompt
from norm_core.engines.reply import ModelInfo, Scores, provenance
from norm_core.engines.request_context import Deadline
from norm_core.records.flag import Attribute, Evidence, Polarity
from norm_core.records.json_codec import sha256_of
from norm_core.records.outcome import Outcome
from norm_core.records.window import window_digest
from norm_core.runtime.artefact import artefact_path
from norm_core.runtime.config import LIVE
from norm_monitor.judge.calibration import JudgeCalibration
from norm_monitor.judge.deployment_context import PictureRules
from norm_monitor.judge.excerpt import Excerpt
from norm_monitor.judge.note import Note, correction_of, quote_of, rationale_of
from norm_monitor.judge.prompt_plan import PromptPlan, plan
from norm_monitor.units.judgement import UnitJudgement, judge_measure
from norm_monitor.units.unit_view import UnitView

# The polarities by the option of the first question; the last option is ordinary conduct.
POLARITIES = (Polarity.ERROR, Polarity.COMPETENCE)


class JudgeConfig(PictureRules):
    """The judge's model, its budget and its input."""

    model: str = Field(default="", description="the judge's model (`tactful models list`); empty for cues alone")
    calls_per_hour: float = Field(
        default=240.0,
        ge=0,
        le=36_000,
        description="the most units that the judge is asked about in an hour; 0 for none",
        json_schema_extra=LIVE,
    )
    deadline_s: float = Field(
        default=10.0, gt=0, le=600, description="the judge's time for a unit", json_schema_extra=LIVE
    )
    least_attribute: float = Field(
        default=0.5, ge=0, le=1, description="the lowest probability of an attribute in a flag"
    )
    images: int = Field(default=4, ge=0, le=32, description="the most pictures of a unit for the judge")
    note_tokens: int = Field(default=200, ge=0, le=1000, description="the longest note in tokens; 0 for no note")
    prompts_folder: str = Field(default="", description="private folder for the judge's prompts; empty to write none")
    calibration: str = Field(
        default="",
        description="file of `tactful calibrate judge` for this model; its weight replaces fusion.judge_weight; "
        "empty for none",
    )

    def deciding_sha256(self) -> str:
        """Compute the digest of the settings that decide an answer, without triggers, logging and calibration."""
        return self.sha256(leave_out=("model", "calls_per_hour", "deadline_s", "prompts_folder", "calibration"))


def images_for(model_info: ModelInfo, config: JudgeConfig) -> int:
    """Return how many images of a unit the model may see: its limit, or 0 if they may not leave this machine."""
    return model_info.most_images(config.pictures_may_leave, config.images) or 0


def plan_of(view: UnitView, model_info: ModelInfo, config: JudgeConfig) -> PromptPlan:
    """Plan the questions about a unit for a model."""
    return plan(Excerpt.of_unit(view), images_for(model_info, config), config.deployment_context)


class Judge:
    """Judge one unit at a time: its polarity; then, unless it is ordinary, its attributes and a note."""

    def __init__(self, engine: AnsweringModel, config: JudgeConfig | None = None) -> None:
        """Load the calibration where one is named; raise ConfigError if it is for another model or prompt."""
        self._engine, self._config = engine, config or JudgeConfig()
        name = self._config.calibration
        self._calibration = JudgeCalibration.load(artefact_path(name), engine.model_info) if name else None

    def plan(self, view: UnitView) -> PromptPlan:
        """Return the questions about a unit, as `judge` asks them."""
        return plan_of(view, self._engine.model_info, self._config)

    def judge(
        self, view: UnitView, deadline: Deadline | None = None, planned: PromptPlan | None = None
    ) -> UnitJudgement:
        """Ask all questions about a unit, which `planned` holds; the provenance is that of the first question."""
        model_info = self._engine.model_info
        planned = planned or self.plan(view)
        (first,) = self._engine.ask_many(planned.prompt, [planned.detection], deadline)
        config_sha256 = self._config.deciding_sha256()
        if self._calibration:
            first = replace(first, probabilities=self._calibration.temper(first.probabilities))
            config_sha256 = sha256_of([config_sha256, self._calibration.sha256()])
        judged = UnitJudgement(
            unit=view.unit,
            outcome=first.outcome,
            reason=first.reason,
            probability=dict(zip(POLARITIES, first.probabilities, strict=False)),
            provenance=replace(
                provenance(model_info, first, window_digest=window_digest(view.window)),
                config_sha256=config_sha256,
                window_late=view.window.late,
            ),
        )
        if first.best is None or first.best >= len(POLARITIES):
            return judged
        found = self._attributes(planned, deadline)
        failed = next((answer for answer in found if answer.outcome is not Outcome.ANSWERED), None)
        if failed:  # without attributes there is nothing to flag
            return replace(judged, outcome=failed.outcome, reason=failed.reason, probability={})
        note = self._note(planned.note_prompt(first.best), deadline)
        polarity = POLARITIES[first.best]
        return replace(
            judged,
            attributes=self._named([answer.probabilities[0] for answer in found]),
            evidence=(_evidence(view, polarity, first.probabilities[first.best], note),),
            rationale=rationale_of(note, view, polarity),
            correction=correction_of(note) if polarity is Polarity.ERROR else "",
        )

    def _attributes(self, planned: PromptPlan, deadline: Deadline | None) -> list[Scores]:
        """Return the answers about the attributes in their order."""
        answers: dict[int, Scores] = {}
        for batch in planned.attributes:
            deadline = deadline.from_now() if deadline else None
            found = self._engine.ask_many(batch.prompt, list(batch.questions), deadline)
            answers |= dict(zip(batch.places, found, strict=True))
        return [answers[place] for place in sorted(answers)]

    def _named(self, yes: list[float]) -> tuple[Attribute, ...]:
        """Return the likely attributes, or the likeliest if none is."""
        named = tuple(a for a, p in zip(Attribute, yes, strict=True) if p >= self._config.least_attribute)
        return named or (list(Attribute)[yes.index(max(yes))],)

    def _note(self, prompt: Prompt, deadline: Deadline | None) -> Note:
        """Return the model's note; an empty note if it fails or writes something else."""
        if not (self._config.note_tokens and self._engine.model_info.generates):
            return Note()
        deadline = deadline.from_now() if deadline else None
        written = self._engine.generate(prompt, Note, max_tokens=self._config.note_tokens, deadline=deadline)
        return written.value or Note()


def _evidence(view: UnitView, polarity: Polarity, probability: float, note: Note) -> Evidence:
    unit = view.unit
    return Evidence(
        measure=judge_measure(polarity),
        value=round(probability, 3),
        start_ns=unit.onset_ns,
        end_ns=max(unit.onset_ns, view.known_until_ns) if unit.offset_ns is None else unit.offset_ns,
        quote=quote_of(note, view),
    )
