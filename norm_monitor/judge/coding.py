"""One request for all that a coder says about a unit, and the reading of its answer."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from math import exp
from typing import Any, Literal

from pydantic import BaseModel, Field

from norm_core.engines.engine import parse_reply
from norm_core.engines.errors import UnparsedError
from norm_core.engines.openai.batch import BatchAnswer, BatchAnswers, BatchRequest, TokenLogprob
from norm_core.engines.prompt import Prompt
from norm_core.engines.reply import ModelInfo, Reply, provenance
from norm_core.engines.request_context import Deadline
from norm_core.prompts import coding
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.outcome import Outcome
from norm_core.records.window import window_digest
from norm_monitor.judge.excerpt import Excerpt, UnitView
from norm_monitor.judge.judge import POLARITIES, JudgeConfig, Note, excerpt_prompt, with_note
from norm_monitor.units.unit import Unit, UnitJudgement

ORDINARY = "ordinary"
ERROR, COMPETENCE = (polarity.value for polarity in POLARITIES)
LABELS = (ERROR, COMPETENCE, ORDINARY)
# What an answer about a unit takes, and where a service cuts it off: a model may think before it answers.
ANSWER_TOKENS, MAX_ANSWER_TOKENS = 110, 2_000
_NAME_CHARS = 24
MISSING = "the answers hold none about this unit"


class Coding(BaseModel):
    """A coder's answer about one unit; `probability` sums to 1."""

    polarity: Literal["error", "competence", "ordinary"]
    error: float = Field(ge=0, le=1)
    competence: float = Field(ge=0, le=1)
    ordinary: float = Field(ge=0, le=1)
    attributes: tuple[Attribute, ...] = ()
    rationale: str = ""
    quote: str = ""
    correction: str = ""

    @property
    def probability(self) -> dict[str, float]:
        """The stated probabilities by label."""
        stated = {ERROR: self.error, COMPETENCE: self.competence, ORDINARY: self.ordinary}
        total = sum(stated.values())
        if not total:
            raise UnparsedError("the answer gives all three a probability of 0")
        return {label: value / total for label, value in stated.items()}


def schema_of(attributes: Sequence[Attribute]) -> dict[str, Any]:
    """Return the JSON schema of one answer, in the subset that strict services take."""
    text, number = {"type": "string"}, {"type": "number"}
    names = [attribute.value for attribute in attributes]
    properties: dict[str, Any] = {
        "polarity": {"type": "string", "enum": list(LABELS)},
        **dict.fromkeys(LABELS, number),
        "attributes": {"type": "array", "items": {"type": "string", "enum": names}},
        **dict.fromkeys(Note.model_fields, text),
    }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


class UnitKeys:
    """Name the units of one talk by its name, their kind and onset; a further unit with the same gets a number.

    A key holds letters, digits, _ and - alone, and at most 64 of them, as services demand of a custom_id.
    """

    def __init__(self, talk: str) -> None:
        safe = re.sub(r"[^A-Za-z0-9_-]+", "-", talk)
        is_whole = safe == talk and len(safe) <= _NAME_CHARS
        self.talk = safe if is_whole else f"{safe[-_NAME_CHARS:]}-{sha256(talk.encode()).hexdigest()[:6]}"
        self._keys: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def key(self, unit: Unit) -> str:
        """Return the name of a unit, the same each time it is asked for."""
        if unit.unit_id not in self._keys:
            key = f"{self.talk}_{unit.kind}_{unit.onset_ns}"
            self._counts[key] += 1
            self._keys[unit.unit_id] = key if self._counts[key] == 1 else f"{key}_{self._counts[key]}"
        return self._keys[unit.unit_id]


def unit_request(key: str, view: UnitView, config: JudgeConfig) -> BatchRequest:
    """Return the request about one unit, with pictures only where they may leave this machine.

    Where the context forbids to infer emotions from pictures, a request with pictures does not offer them.
    """
    prompt, attributes = _prompt(view, config)
    return BatchRequest(
        custom_id=key,
        prompt=prompt,
        schema=schema_of(attributes),
        answer_tokens=ANSWER_TOKENS,
        max_tokens=MAX_ANSWER_TOKENS,
    )


def _prompt(view: UnitView, config: JudgeConfig) -> tuple[Prompt, tuple[Attribute, ...]]:
    excerpt = Excerpt.of_unit(view)
    images, locale = config.images if config.pictures_may_leave else 0, excerpt.locale
    guarded = bool(images and excerpt.frames) and not config.deployment_context.allows_emotions_from_pictures
    attributes = tuple(one for one in Attribute if not (guarded and one is Attribute.EMOTIONS))
    prefix = excerpt_prompt(excerpt, images, locale, faces_aside=guarded)
    version = f"{prefix.version}+{coding.VERSION}"
    return Prompt(version=version, parts=(*prefix.parts, coding.request("unit", attributes, locale))), attributes


class RecordedJudge:
    """Answer about the units of one talk from the answers that a service gave; nothing is guessed."""

    def __init__(self, talk: str, answers: BatchAnswers, config: JudgeConfig | None = None) -> None:
        self._keys, self._answers, self._config = UnitKeys(talk), answers.by_id, config or JudgeConfig()

    def judge(self, view: UnitView, deadline: Deadline | None = None) -> UnitJudgement:
        """Return the recorded answer about a unit, or why there is none."""
        answer = self._answers.get(self._keys.key(view.unit), BatchAnswer(outcome=Outcome.FAILED, reason=MISSING))
        prompt, _ = _prompt(view, self._config)
        reply = Reply(outcome=answer.outcome, prompt_version=prompt.version, prompt_digest=prompt.digest)
        judged = UnitJudgement(
            unit=view.unit,
            outcome=answer.outcome,
            reason=answer.reason,
            provenance=replace(
                provenance(
                    ModelInfo(model=answer.model, engine="recorded"), reply, window_digest=window_digest(view.window)
                ),
                config_sha256=self._config.sha256(),
                window_late=view.window.late,
            ),
        )
        if answer.outcome is not Outcome.ANSWERED:
            return judged
        try:
            return _with_coding(judged, view, *_read(answer))
        except UnparsedError as error:
            return replace(judged, outcome=error.outcome, reason=str(error))


def _read(answer: BatchAnswer) -> tuple[Coding, Mapping[str, float]]:
    """Return the answer and its probabilities: those of the tokens where the service gave them, else the stated."""
    coded = parse_reply(answer.text, Coding)
    return coded, next(token_probabilities(answer.tokens), None) or coded.probability


def _with_coding(
    judged: UnitJudgement, view: UnitView, coded: Coding, probability: Mapping[str, float]
) -> UnitJudgement:
    judged = replace(judged, probability={polarity: probability[polarity.value] for polarity in POLARITIES})
    best = max(LABELS, key=lambda label: probability[label])
    if best == ORDINARY:
        return judged
    if not coded.attributes:
        raise UnparsedError(f"the answer names no attribute of a social {best}")
    note = Note(rationale=coded.rationale, quote=coded.quote, correction=coded.correction)
    attributes = tuple(one for one in Attribute if one in coded.attributes)
    return with_note(judged, view, Polarity(best), attributes, note)


def token_probabilities(tokens: Sequence[TokenLogprob]) -> Iterator[dict[str, float]]:
    """Yield the probabilities of the labels at each "polarity" of an answer, from the tokens that it may begin with."""
    text, starts = "", []
    for token in tokens:
        starts.append(len(text))
        text += token.token
    for match in re.finditer(rf'"polarity"\s*:\s*"(?={"|".join(LABELS)})', text):
        place = max(index for index, start in enumerate(starts) if start <= match.end())
        lead = text[starts[place] : match.end()]  # what the token has before the label, such as a quotation mark
        weights = dict.fromkeys(LABELS, 0.0)
        for top in {one.token: one for one in (*tokens[place].top_logprobs, tokens[place])}.values():
            begun = top.token.removeprefix(lead).rstrip('",')
            labels = [label for label in LABELS if begun and top.token.startswith(lead) and label.startswith(begun)]
            if len(labels) == 1:
                weights[labels[0]] += exp(top.logprob)
        total = sum(weights.values())
        if total:
            yield {label: weight / total for label, weight in weights.items()}
