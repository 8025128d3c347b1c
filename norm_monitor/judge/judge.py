"""The judge: ask a model what a coder would mark in a window, and return probabilities."""

from dataclasses import replace
from typing import Protocol

from pydantic import BaseModel, Field

from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import Generation, ModelInfo, Scores, provenance
from norm_core.engines.request_context import Deadline
from norm_core.prompts.norms import NormAdherence, SpeechAct
from norm_core.records.flag import Attribute, Evidence, Polarity, Severity
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import Provenance
from norm_core.records.record import record
from norm_core.records.window import Window, window_digest
from norm_core.runtime.time import s_to_ns
from norm_monitor.cues.finding import Finding
from norm_monitor.judge.deployment_context import PictureRules
from norm_monitor.judge.prompt_plan import ATTRIBUTES, NORM, POLARITY, SPEECH_ACT, PromptPlan, plan

CUE_ID = "judge"
_POLARITIES = (Polarity.ERROR, Polarity.COMPETENCE, None)


class JudgeModel(Protocol):
    """An engine or an engine lease."""

    @property
    def model_info(self) -> ModelInfo:
        """The model's identity, which a flag names, and its limit of images."""

    def ask_many(self, prefix: Prompt, questions: list[Question], deadline: Deadline | None = None) -> list[Scores]:
        """Score the options of each question over one shared prefix."""

    def generate(
        self, prompt: Prompt, schema: type["Note"], *, max_tokens: int = 256, deadline: Deadline | None = None
    ) -> Generation["Note"]:
        """Write a note that fits `schema`; an outcome other than ANSWERED has no value."""


class JudgeConfig(PictureRules):
    """The judge's model, its triggers, its input and its confidence floor."""

    model: str = Field(default="", description="the judge's model (`tactful models list`); empty for cues alone")
    calls_per_hour: float = Field(
        default=240.0,
        ge=0,
        le=36_000,
        description="the most units that the judge is asked about in an hour; 0 for none",
    )
    deadline_s: float = Field(default=10.0, gt=0, le=600, description="the judge's time for a unit")
    least_attribute: float = Field(
        default=0.5, ge=0, le=1, description="the lowest probability of an attribute in a flag"
    )
    images: int = Field(default=4, ge=0, le=32, description="the most pictures of a window for the judge")
    note_tokens: int = Field(default=200, ge=0, le=1000, description="the longest note in tokens; 0 for no note")
    prompts_folder: str = Field(default="", description="private folder for the judge's prompts; empty to write none")

    def deciding_sha256(self) -> str:
        """Compute the digest of everything that decides an answer, without triggers and prompt logging."""
        return self.sha256(leave_out=("model", "calls_per_hour", "deadline_s", "prompts_folder"))


class Note(BaseModel):
    """A coder's note on what the robot did."""

    rationale: str
    correction: str = ""
    verbal: str = ""
    nonverbal: str = ""


@record
class JudgedNorm:
    """The clearest speech act, and whether the robot keeps its norm."""

    act: SpeechAct
    act_probability: float
    kept: NormAdherence
    kept_probability: float


@record
class Judgement:
    """The result of a request to the judge: a finding, if any, and the outcome."""

    outcome: Outcome
    reason: str = ""
    finding: Finding | None = None
    norm: JudgedNorm | None = None  # if a norm is at stake, with or without a finding
    provenance: Provenance = Provenance()


def images_for(model_info: ModelInfo, config: JudgeConfig) -> int:
    """Return how many images of a window the model may see: its limit, or 0 if they may not leave this machine."""
    return model_info.most_images(config.pictures_may_leave, config.images) or 0


class Judge:
    """Judge one window at a time: polarity, attributes and norm after one shared prefix, then a note."""

    def __init__(self, engine: JudgeModel, config: JudgeConfig | None = None) -> None:
        self._engine, self._config = engine, config or JudgeConfig()

    def plan(self, window: Window) -> PromptPlan:
        """Plan the questions of `judge` about a window."""
        return plan(window, images_for(self._engine.model_info, self._config), self._config.deployment_context)

    def judge(self, window: Window, deadline: Deadline | None = None) -> Judgement:
        """Ask all questions about a window; the provenance is that of the first question."""
        planned = self.plan(window)
        answers: dict[int, Scores] = {}
        failed: Scores | None = None
        for batch in planned.batches:
            deadline = deadline.from_now() if deadline else None
            found = self._engine.ask_many(batch.prompt, list(batch.questions), deadline)
            answers |= dict(zip(batch.places, found, strict=True))
            failed = next((answer for answer in found if answer.outcome is not Outcome.ANSWERED), None)
            if failed:
                break  # the rest will fail too, and the first failure is the cause
        made_by = replace(
            provenance(self._engine.model_info, answers[POLARITY], window_digest=window_digest(window)),
            config_sha256=self._config.deciding_sha256(),
            window_late=window.late,
        )
        if failed:
            return Judgement(outcome=failed.outcome, reason=failed.reason, provenance=made_by)
        ordered = [answers[place] for place in sorted(answers)]
        norm = _norm(ordered[SPEECH_ACT], ordered[NORM])
        finding = self._finding(planned, ordered, norm, deadline)
        return Judgement(outcome=Outcome.ANSWERED, finding=finding, norm=norm, provenance=made_by)

    def _finding(
        self, planned: PromptPlan, answers: list[Scores], norm: JudgedNorm | None, deadline: Deadline | None
    ) -> Finding | None:
        polarity, window = answers[POLARITY], planned.window
        index = polarity.best
        kind = _POLARITIES[index] if index is not None else None
        if index is None or kind is None or polarity.probabilities[index] < self._config.least_probability:
            return None
        yes = [answer.probabilities[0] for answer in answers[ATTRIBUTES]]
        named = [a for a, p in zip(Attribute, yes, strict=True) if p >= self._config.least_attribute]
        likeliest = list(Attribute)[yes.index(max(yes))]
        note = self._note(planned.note_prompt(index), deadline)
        onset_ns, offset_ns = _span(window)
        sighted = bool(planned.prompt.images)
        return Finding(
            cue_id=CUE_ID,
            anchor=str(onset_ns),
            polarity=kind,
            attributes=tuple(named) or (likeliest,),
            severity=Severity.MINOR if kind is Polarity.ERROR else Severity.INFO,
            probability=polarity.probabilities[index],
            onset_ns=onset_ns,
            offset_ns=offset_ns,
            evidence=self._evidence(window, kind, polarity.probabilities[index], norm, note, sighted),
            rationale=note.rationale or f"The model judges this stretch to show a social {kind.value}.",
            correction=(note.correction or "Review this stretch: the model gave no correction.")
            if kind is Polarity.ERROR
            else "",
        )

    def _evidence(  # noqa: PLR0917
        self, window: Window, kind: Polarity, probability: float, norm: JudgedNorm | None, note: Note, sighted: bool
    ) -> tuple[Evidence, ...]:
        spoken = " / ".join(utterance.text for utterance in window.utterances[-3:])
        facts: list[tuple[str, float, float | None, str]] = [
            (f"probability of {kind.value}", probability, self._config.least_probability, spoken)
        ]
        if norm:
            facts.append((f"probability of {norm.kept.value} in {norm.act.value}", norm.kept_probability, None, ""))
        if note.verbal:
            facts.append(("probability, by what is heard", probability, None, note.verbal))
        if note.nonverbal and sighted:  # the model cannot have seen what it was not shown
            facts.append(("probability, by what is seen", probability, None, note.nonverbal))
        return tuple(
            Evidence(
                measure=measure,
                value=round(value, 3),
                threshold=threshold,
                start_ns=window.start_ns,
                end_ns=window.end_ns,
                quote=evidence_of,
            )
            for measure, value, threshold, evidence_of in facts
        )

    def _note(self, prompt: Prompt, deadline: Deadline | None) -> Note:
        """Return the model's note; an empty note if it fails or writes something else."""
        if not (self._config.note_tokens and self._engine.model_info.generates):
            return Note(rationale="")
        written = self._engine.generate(prompt, Note, max_tokens=self._config.note_tokens, deadline=deadline)
        return written.value or Note(rationale="")


def _norm(act: Scores, kept: Scores) -> JudgedNorm | None:
    """None where the model sees no such act, or no norm at stake."""
    assert act.best is not None
    assert kept.best is not None
    if act.best >= len(SpeechAct) or kept.best >= len(NormAdherence):
        return None
    return JudgedNorm(
        act=list(SpeechAct)[act.best],
        act_probability=act.probabilities[act.best],
        kept=list(NormAdherence)[kept.best],
        kept_probability=kept.probabilities[kept.best],
    )


def _span(window: Window) -> tuple[int, int]:
    """Return the span of the event, as far as one answer can locate it: the window's last exchange."""
    if not window.utterances:
        return window.start_ns, window.end_ns
    last = window.utterances[-1]
    return max(window.start_ns, last.start_ns - s_to_ns(1)), last.end_ns
