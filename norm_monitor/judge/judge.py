"""The judge: ask a model how a coder would mark a unit, and return probabilities."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from pydantic import BaseModel, Field

from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import ModelInfo, Scores, make_provenance
from norm_core.engines.request_context import Deadline
from norm_core.records.flag import Attribute, Evidence, Polarity
from norm_core.records.json_codec import sha256_of
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.records.window import window_digest
from norm_core.runtime.artefact import Artefact, load_artefact, resolve_artefact_path
from norm_core.runtime.config import LIVE, NAMES_FILE
from norm_monitor.assessment.finding import quote
from norm_monitor.assessment.unit import Unit, UnitJudgement, UnitKind, name_judge_measure
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import sentences, tokens, word_count
from norm_monitor.judge import questions as prompts
from norm_monitor.judge.deployment_context import DeploymentContext, PictureRules
from norm_monitor.judge.excerpt import Excerpt, UnitView
from norm_monitor.judge.questions import VERSION
from norm_monitor.judge.triggers import NO_CEILING

_EMOTIONS_INDEX = list(Attribute).index(Attribute.EMOTIONS)
KIND = "judge calibration"
FORMAT = 1
_FIT_ANEW = "fit it anew for this model and prompt, or set judge.calibration to nothing"
# A longer rationale is cut.
MAX_NOTE_WORDS = 30
# A field of a note, and the quotation mark that ends it, unless the limit of tokens cut it off.
_FIELD = re.compile(r'"(rationale|quote|correction)"\s*:\s*"((?:[^"\\]|\\.)*)("?)')
# The polarities by the option of the first question; the last option is ordinary conduct.
POLARITIES = (Polarity.ERROR, Polarity.COMPETENCE)
# Fields that decide no answer, and the calibration, which has a digest of its own.
_NOT_DECIDING = ("model", "calls_per_hour", "deadline_s", "calibration")


@record
class Batch:
    """Questions that share one prompt, with the indices of their attributes."""

    prompt: Prompt
    questions: tuple[Question, ...]
    indices: tuple[int, ...]


@record
class PromptPlan:
    """The questions in their order: the first, then the attributes, then a note, which share a prompt."""

    locale: str
    prompt: Prompt
    detection: Question
    attributes: tuple[Batch, ...]  # asked where the first answer is an error or a competence

    def note_prompt(self, polarity_index: int) -> Prompt:
        """Return the request for a note, for use after an error or a competence."""
        return prompts.ask_note(self.prompt, polarity_index, self.locale)


def plan(excerpt: Excerpt, images: int, context: DeploymentContext) -> PromptPlan:
    """Plan the questions about an excerpt, with at most `images` of its pictures.

    If the context forbids inferring emotions from pictures, the question about emotions gets a prompt of words only,
    and the other questions tell the model to ignore feelings in faces.
    """
    locale = excerpt.locale
    questions = tuple(prompts.ask_attributes(locale))
    is_guarded = bool(images and excerpt.frames) and not context.allows_emotions_from_pictures
    prompt = excerpt_prompt(excerpt, images, locale, faces_aside=is_guarded)
    emotion_indices = (_EMOTIONS_INDEX,) if is_guarded else ()
    other_indices = tuple(index for index in range(len(questions)) if index not in emotion_indices)
    batches = [
        Batch(prompt=prompt, questions=tuple(questions[index] for index in other_indices), indices=other_indices)
    ]
    if is_guarded:
        words = excerpt_prompt(excerpt, 0, locale)
        batches.append(Batch(prompt=words, questions=(questions[_EMOTIONS_INDEX],), indices=emotion_indices))
    return PromptPlan(locale=locale, prompt=prompt, detection=prompts.ask_polarity(locale), attributes=tuple(batches))


def excerpt_prompt(excerpt: Excerpt, images: int, locale: str, *, faces_aside: bool = False) -> Prompt:
    """Return the shared part of all questions about an excerpt; without records it has no talk."""
    is_empty = not excerpt.turns and not excerpt.frames and excerpt.unit is None
    talk = None if is_empty else excerpt.talk(locale)  # without records, "nobody speaks" may be wrong
    return prompts.build_prefix(excerpt.pictures(images), talk, excerpt.facts, locale, faces_aside=faces_aside)


def identify_model(model_info: ModelInfo) -> dict[str, str]:
    """Return the model and prompt that a calibration is for; a model behind a server has no hash of weights."""
    return {"model": model_info.model, "weights": model_info.weights_sha256, "prompt": VERSION}


class JudgeCalibration(Artefact):
    """The temperature and the weight of one model's answers to the judge's first question."""

    temperature: float = Field(gt=0, le=100, allow_inf_nan=False)
    weight: float = Field(ge=0, le=10)
    min_probability: tuple[str, ...] = ()  # of flags with an answer; empty: as for all flags

    @classmethod
    def load(cls, path: Path, model: ModelInfo | str) -> Self:
        """Load an artefact for a model, or by its name alone where its engine is not at hand.

        Raises ConfigError if it was fitted for another model or prompt.
        """
        made_with = {"model": model, "prompt": VERSION} if isinstance(model, str) else identify_model(model)
        return load_artefact(cls, path, kind=KIND, format_=FORMAT, made_with=made_with, remedy=_FIT_ANEW)

    def temper(self, probabilities: Sequence[float]) -> tuple[float, ...]:
        """Return the probabilities of all options, as certain as coders were found to agree."""
        highest = max(probabilities, default=0.0)
        shares = [(probability / highest) ** (1 / self.temperature) for probability in probabilities]
        return tuple(share / sum(shares) for share in shares)


class Note(BaseModel):
    """A note of the model on the conduct of the robot."""

    rationale: str = ""
    correction: str = ""
    quote: str = ""


def read_note(text: str) -> Note:
    """Read a note that the limit of tokens cut off: the fields that ended, and the whole sentences of the last."""
    fields = {}
    for name, value, end in _FIELD.findall(text):
        try:
            words = json.loads(f'"{value}"', strict=False)
        except ValueError:  # cut off within an escaped character
            continue
        fields[name] = words if end else "".join(re.findall(r".*?[.!?。！？]", words, re.DOTALL))
    return Note(**fields)


def choose_rationale(note: Note, view: UnitView, polarity: Polarity) -> str:
    """Return the first sentence of the note; without one, say what the model judged."""
    claim = next(iter(sentences(" ".join(note.rationale.split()))), "")
    if claim:
        return claim if word_count(claim) <= MAX_NOTE_WORDS else f"{' '.join(claim.split()[:MAX_NOTE_WORDS])} …"
    return f"The model takes {_describe(view)} for a social {polarity.value}."


def choose_quote(note: Note, view: UnitView) -> str:
    """Return the quote of the note if somebody said it, else the words of the turn of the unit, if any."""
    quoted = tokens(note.quote)
    if quoted and any(_has_sequence(tokens(turn.text), quoted) for turn in view.turns):
        return " ".join(note.quote.split())
    own = _find_own_turn(view)
    return own.text if own else ""


def _describe(view: UnitView) -> str:
    """Name the conduct of the robot in a unit."""
    own = _find_own_turn(view)
    match view.unit.kind:
        case UnitKind.ROBOT_TURN if own:
            return f"the robot's {quote(own)}"
        case UnitKind.PERSON_TURN if own:
            return f"the robot's conduct during {quote(own)}"
        case UnitKind.SILENCE if own:
            return f"the robot's silence after {quote(own)}"
        case _:
            return "the robot's conduct at this moment"


def _find_own_turn(view: UnitView) -> Turn | None:
    """Return the turn of the unit, or the turn that a silence follows."""
    about = ((turn, {Unit.of_turn(turn).unit_id, Unit.of_silence(turn, None).unit_id}) for turn in view.turns[::-1])
    return next((turn for turn, unit_ids in about if view.unit.unit_id in unit_ids), None)


def _has_sequence(words: Sequence[str], quoted: Sequence[str]) -> bool:
    """Whether words contain others in this order, without a gap."""
    length = len(quoted)
    return any(words[index : index + length] == quoted for index in range(len(words) - length + 1))


class JudgeConfig(PictureRules):
    """The judge's model, its budget and its input."""

    model: str = Field(default="", description="model of the judge (`tactful models list`); empty for no judge")
    calls_per_hour: float = Field(
        default=NO_CEILING,
        ge=NO_CEILING,
        le=36_000,
        description="maximum number of moments an hour that the judge is asked about; -1 for no limit",
        json_schema_extra=LIVE,
    )
    deadline_s: float = Field(
        default=10.0,
        gt=0,
        le=600,
        description="time limit for an answer, and for a note",
        json_schema_extra=LIVE,
    )
    min_attribute_probability: float = Field(
        default=0.5, ge=0, le=1, description="minimum probability of an attribute that a flag names"
    )
    images: int = Field(
        default=4, ge=0, le=32, description="maximum number of pictures of a moment that the judge sees"
    )
    note_tokens: int = Field(default=40, ge=0, le=1000, description="maximum length of a note in tokens; 0 for no note")
    calibration: str = Field(
        default="",
        description="file of a temperature and a weight fitted for this model; it replaces fusion.judge_weight "
        "and fusion.min_probability_judged; empty for none",
        json_schema_extra=NAMES_FILE,
    )


def count_images(model_info: ModelInfo, config: JudgeConfig) -> int:
    """Return how many images of a unit the model may see; 0 if they may not leave this machine."""
    return model_info.limit_images(config.pictures_may_leave, config.images) or 0


@record
class NoteRequest:
    """A unit that needs a note, as the answer of the judge flags it."""

    view: UnitView
    judgement: UnitJudgement


@record
class NoteAnswer:
    """An answer of the judge with its note, or the reason for which there is none."""

    judgement: UnitJudgement
    outcome: Outcome
    reason: str = ""


class Judge:
    """Judge one unit at a time: its polarity; then, unless it is ordinary, its attributes. Its note comes after."""

    def __init__(self, engine: Engine, config: JudgeConfig | None = None) -> None:
        """Load the calibration if one is named. Raises ConfigError if it is for another model or prompt."""
        self._engine, self._config = engine, config or JudgeConfig()
        name = self._config.calibration
        self._calibration = JudgeCalibration.load(resolve_artefact_path(name), engine.model_info) if name else None

    def plan(self, view: UnitView) -> PromptPlan:
        """Return the questions about a unit, as `judge` asks them."""
        images = count_images(self._engine.model_info, self._config)
        return plan(Excerpt.of_unit(view), images, self._config.deployment_context)

    def judge(self, view: UnitView, deadline: Deadline | None = None) -> UnitJudgement:
        """Ask the questions that decide about a unit; the provenance is that of the first question."""
        model_info = self._engine.model_info
        planned = self.plan(view)
        (first,) = self._engine.ask_many(planned.prompt, [planned.detection], deadline)
        config_sha256 = self._config.sha256(leave_out=_NOT_DECIDING)
        if self._calibration:
            first = replace(first, probabilities=self._calibration.temper(first.probabilities))
            config_sha256 = sha256_of([config_sha256, self._calibration.sha256()])
        judgement = UnitJudgement(
            unit=view.unit,
            outcome=first.outcome,
            reason=first.reason,
            probability=dict(zip(POLARITIES, first.probabilities, strict=False)),
            provenance=replace(
                make_provenance(model_info, first, window_digest=window_digest(view.window)),
                config_sha256=config_sha256,
                window_late=view.window.late,
            ),
        )
        if first.best is None or first.best >= len(POLARITIES):
            return judgement
        answers = self._ask_attributes(planned, deadline)
        failed = next((answer for answer in answers if answer.outcome is not Outcome.ANSWERED), None)
        if failed:  # without attributes there is nothing to flag
            return replace(judgement, outcome=failed.outcome, reason=failed.reason, probability={})
        attributes = self._choose_attributes([answer.probabilities[0] for answer in answers])
        with_attributes = with_note(judgement, view, POLARITIES[first.best], attributes, Note())
        return replace(with_attributes, awaits_note=bool(self._config.note_tokens and model_info.generates))

    def write_note(self, request: NoteRequest, deadline: Deadline | None = None) -> NoteAnswer:
        """Write the note on an answer; where that fails, the answer stays without one."""
        view, judgement = request.view, request.judgement
        polarity = max(POLARITIES, key=lambda polarity: judgement.probability[polarity])
        prompt = self.plan(view).note_prompt(POLARITIES.index(polarity))
        reply = self._engine.generate(prompt, Note, max_tokens=self._config.note_tokens, deadline=deadline)
        note = reply.value or (read_note(reply.text) if reply.outcome is Outcome.UNPARSED else Note())
        if not note.rationale:
            outcome = Outcome.UNPARSED if reply.outcome is Outcome.ANSWERED else reply.outcome
            return NoteAnswer(judgement=judgement, outcome=outcome, reason=reply.reason)
        judgement_with_note = with_note(judgement, view, polarity, judgement.attributes, note)
        return NoteAnswer(judgement=judgement_with_note, outcome=Outcome.ANSWERED)

    def _ask_attributes(self, planned: PromptPlan, deadline: Deadline | None) -> list[Scores]:
        """Ask about each attribute; return the answers in the order of the attributes."""
        answers: dict[int, Scores] = {}
        for batch in planned.attributes:
            answers_of_batch = self._engine.ask_many(batch.prompt, list(batch.questions), deadline)
            answers |= dict(zip(batch.indices, answers_of_batch, strict=True))
        return [answers[index] for index in sorted(answers)]

    def _choose_attributes(self, yes: list[float]) -> tuple[Attribute, ...]:
        """Return the likely attributes, or the likeliest one if none is likely."""
        threshold = self._config.min_attribute_probability
        likely = tuple(attribute for attribute, value in zip(Attribute, yes, strict=True) if value >= threshold)
        return likely or (list(Attribute)[yes.index(max(yes))],)


def with_note(
    judgement: UnitJudgement, view: UnitView, polarity: Polarity, attributes: tuple[Attribute, ...], note: Note
) -> UnitJudgement:
    """Add the attributes, evidence and note of the likeliest polarity."""
    return replace(
        judgement,
        attributes=attributes,
        evidence=(_cite_probability(view, polarity, judgement.probability[polarity], note),),
        rationale=choose_rationale(note, view, polarity),
        correction=" ".join(note.correction.split()) if polarity is Polarity.ERROR else "",
    )


def _cite_probability(view: UnitView, polarity: Polarity, probability: float, note: Note) -> Evidence:
    """Return the probability that the judge states as evidence."""
    unit = view.unit
    return Evidence(
        measure=name_judge_measure(polarity),
        value=round(probability, 3),
        start_ns=unit.onset_ns,
        end_ns=max(unit.onset_ns, view.known_until_ns) if unit.offset_ns is None else unit.offset_ns,
        quote=choose_quote(note, view),
    )
