"""The judge: a model is asked about a window what a coder would mark, and answers in probabilities."""

from dataclasses import replace
from typing import Protocol

from pydantic import BaseModel, Field

from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import Card, Generation, Scores, provenance
from norm_core.engines.request_context import Limit
from norm_core.prompts import judge as prompts
from norm_core.prompts.norms import Kept, SpeechAct
from norm_core.records.flag import Attribute, Evidence, Polarity, Severity
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import Provenance
from norm_core.records.record import record
from norm_core.records.speech import Utterance
from norm_core.records.window import Window, digest
from norm_core.runtime.config import Config
from norm_core.runtime.time import s_to_ns
from norm_monitor.context.turns import turns_of
from norm_monitor.context.wording import is_chinese
from norm_monitor.cues.finding import Finding

CUE_ID = "judge"
_POLARITIES = (Polarity.ERROR, Polarity.COMPETENCE, None)


class Asked(Protocol):
    """An engine, or one that is shared."""

    @property
    def card(self) -> Card: ...

    def ask_many(self, prefix: Prompt, questions: list[Question], limit: Limit | None = None) -> list[Scores]: ...

    def generate(
        self, prompt: Prompt, schema: type["Note"], *, max_tokens: int = 256, limit: Limit | None = None
    ) -> Generation["Note"]: ...


class JudgeConfig(Config):
    least_probability: float = Field(default=0.6, ge=0, le=1, description="of error or competence, to flag it")
    least_attribute: float = Field(default=0.5, ge=0, le=1, description="of an attribute, to name it")
    images: int = Field(default=4, ge=0, le=32, description="pictures shown of a window")
    note_tokens: int = Field(default=200, ge=0, le=1000, description="length of its note; 0 to ask for none")


class Note(BaseModel):
    """A coder's note on what the robot did."""

    rationale: str
    correction: str = ""
    verbal: str = ""
    nonverbal: str = ""


@record
class Norm:
    """The speech act that shows most clearly, and whether the robot keeps to its norm."""

    act: SpeechAct
    act_probability: float
    kept: Kept
    kept_probability: float


@record
class Judgement:
    """What came of asking: a finding where there is one, and how the asking ended either way."""

    outcome: Outcome
    reason: str = ""
    finding: Finding | None = None
    norm: Norm | None = None  # where one is at stake, be there a finding or not
    provenance: Provenance = Provenance()


class Judge:
    """Asks about one window at a time: polarity, attributes and norm after one shared prefix, then for a note."""

    def __init__(self, engine: Asked, config: JudgeConfig | None = None) -> None:
        self._engine, self._config = engine, config or JudgeConfig()

    def judge(self, window: Window, limit: Limit | None = None) -> Judgement:
        said = _said(window)
        locale = "zh" if 2 * sum(is_chinese(one.text) for one in said) > len(said) else "en"
        most = self._engine.card.max_images
        shown = replace(window, utterances=said)
        prefix = prompts.prefix(shown, self._config.images if most is None else min(most, self._config.images), locale)
        polarity, *others = answers = self._engine.ask_many(prefix, prompts.questions(locale), limit)
        made_by = provenance(self._engine.card, polarity, window_digest=digest(window))
        failed = next((answer for answer in answers if answer.outcome is not Outcome.ANSWERED), None)
        if failed:
            return Judgement(outcome=failed.outcome, reason=failed.reason, provenance=made_by)
        about, norm = others[: len(Attribute)], _norm(*others[len(Attribute) :])
        found = self._finding(shown, prefix, polarity, about, norm, locale, limit)
        return Judgement(outcome=Outcome.ANSWERED, finding=found, norm=norm, provenance=made_by)

    def _finding(  # noqa: PLR0917
        self,
        window: Window,
        prefix: Prompt,
        polarity: Scores,
        about: list[Scores],
        norm: Norm | None,
        locale: str,
        limit: Limit | None,
    ) -> Finding | None:
        index = polarity.best
        kind = _POLARITIES[index] if index is not None else None
        if index is None or kind is None or polarity.probabilities[index] < self._config.least_probability:
            return None
        yes = [answer.probabilities[0] for answer in about]
        named = [a for a, p in zip(Attribute, yes, strict=True) if p >= self._config.least_attribute]
        likeliest = list(Attribute)[yes.index(max(yes))]
        note = self._note(prompts.explanation(prefix, index, locale), limit)
        onset_ns, offset_ns = _span(window)
        return Finding(
            cue_id=CUE_ID,
            anchor=str(onset_ns),
            polarity=kind,
            attributes=tuple(named) or (likeliest,),
            severity=Severity.MINOR if kind is Polarity.ERROR else Severity.INFO,
            probability=polarity.probabilities[index],
            onset_ns=onset_ns,
            offset_ns=offset_ns,
            evidence=self._evidence(window, kind, polarity.probabilities[index], norm, note, bool(prefix.images)),
            rationale=note.rationale or f"The model judges this stretch to show a social {kind.value}.",
            correction=(note.correction or "Review this stretch: the model gave no correction.")
            if kind is Polarity.ERROR
            else "",
        )

    def _evidence(  # noqa: PLR0917
        self, window: Window, kind: Polarity, probability: float, norm: Norm | None, note: Note, sighted: bool
    ) -> tuple[Evidence, ...]:
        spoken = " / ".join(utterance.text for utterance in window.utterances[-3:])
        facts: list[tuple[str, float, float | None, str]] = [
            (f"probability of {kind.value}", probability, self._config.least_probability, spoken)
        ]
        if norm:
            facts.append((f"probability of {norm.kept.value} in {norm.act.value}", norm.kept_probability, None, ""))
        if note.verbal:
            facts.append(("probability, by what is heard", probability, None, note.verbal))
        if note.nonverbal and sighted:  # what was not shown cannot have been seen
            facts.append(("probability, by what is seen", probability, None, note.nonverbal))
        return tuple(
            Evidence(
                measure=measure,
                value=round(value, 3),
                threshold=threshold,
                start_ns=window.start_ns,
                end_ns=window.end_ns,
                quote=quote,
            )
            for measure, value, threshold, quote in facts
        )

    def _note(self, prompt: Prompt, limit: Limit | None) -> Note:
        """What the model writes; an empty note where it cannot, or writes something else."""
        if not (self._config.note_tokens and self._engine.card.generates):
            return Note(rationale="")
        written = self._engine.generate(prompt, Note, max_tokens=self._config.note_tokens, limit=limit)
        return written.value or Note(rationale="")


def _said(window: Window) -> tuple[Utterance, ...]:
    """Who said what, the robot by its own account where that is all there is."""
    return tuple(
        Utterance(
            stamp_ns=turn.start_ns,
            utterance_id=turn.turn_id,
            speaker=turn.speaker,
            speaker_id=turn.speaker_id,
            text=turn.text,
            start_ns=turn.start_ns,
            end_ns=turn.end_ns,
        )
        for turn in turns_of(window.utterances, window.robot_speech, window.end_ns)
    )


def _norm(act: Scores, kept: Scores) -> Norm | None:
    """None where the model sees no such act, or no norm at stake."""
    assert act.best is not None and kept.best is not None
    if act.best >= len(SpeechAct) or kept.best >= len(Kept):
        return None
    return Norm(
        act=list(SpeechAct)[act.best],
        act_probability=act.probabilities[act.best],
        kept=list(Kept)[kept.best],
        kept_probability=kept.probabilities[kept.best],
    )


def _span(window: Window) -> tuple[int, int]:
    """Where in the window it happened, as far as one answer about the whole can tell: its last exchange."""
    if not window.utterances:
        return window.start_ns, window.end_ns
    last = window.utterances[-1]
    return max(window.start_ns, last.start_ns - s_to_ns(1)), last.end_ns
