"""A judge that reads whole talks: one request a talk, and what its answers say of each machine turn."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError, WithJsonSchema, create_model

from norm_core.engines.engine import Engine, parse_reply
from norm_core.engines.errors import UnparsedError
from norm_core.engines.openai.batch import BatchAnswer, BatchRequest, answers_of
from norm_core.engines.openai.batch import read_answers as read_batch
from norm_core.engines.prompt import Prompt, Quoted, Text
from norm_core.engines.reply import Reply
from norm_core.engines.request_context import Deadline
from norm_core.prompts.judge import MARK
from norm_core.prompts.texts import prompt_file
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import s_to_ns
from norm_monitor.context.wording import is_chinese
from norm_monitor.judge.coding import UnitKeys
from norm_monitor.judge.excerpt import LABEL
from sim_replays.talks.talk_file import Answers, Talk, TalkError, machine_turns, read_answers

_FILE = prompt_file("verdicts")
_FIRST_TOKENS, _TOKENS_PER_TURN = 150, 40  # where an answer is cut off
_DEADLINE_S = 600.0
_MISSING = "the answers hold none about this talk"


# Not every service takes bounds in a schema.
Probability = Annotated[float, Field(ge=0, le=1), WithJsonSchema({"type": "number"})]


class TurnVerdict(BaseModel):
    """The probability that people hold a turn against the machine, and that they find it notably good."""

    model_config = ConfigDict(strict=True, json_schema_extra={"additionalProperties": False})

    fault: Probability
    good: Probability


class _Verdicts(RootModel[dict[str, Any]]):
    """An object with the verdict on each mark."""


def request_about(talk: Talk) -> BatchRequest:
    """Return the request for a verdict on each machine turn. A turn is one line, whatever its words hold."""
    lines: list[str] = []
    turns = [turn for turn in talk.turns if turn.text.strip()]
    count = 0
    for turn in turns:
        count += turn.is_machine
        mark = f"{MARK}{_mark(count)} " * turn.is_machine
        lines.append(f"{len(lines) + 1} {mark}{turn.by}: {' '.join(turn.text.split())}")
    locale = "zh" if 2 * sum(is_chinese(turn.text) for turn in turns) > len(turns) else "en"
    texts, version = _FILE.texts[locale], f"{_FILE.version}-{locale}"
    quoted = Quoted(text="\n".join(lines), label=LABEL[locale])
    return BatchRequest(
        custom_id=_key(talk),
        prompt=Prompt(version=version, parts=(Text(text=texts["task"]), quoted, Text(text=texts["asked"]))),
        schema=_schema(count, version).model_json_schema(),
        max_tokens=_FIRST_TOKENS + _TOKENS_PER_TURN * count,
    )


def ask(engine: Engine, talk: Talk) -> Reply:
    """Ask a model that runs now."""
    request, deadline = request_about(talk), Deadline(engine.clock, engine.clock.now_ns() + s_to_ns(_DEADLINE_S))
    schema = _schema(len(machine_turns(talk)), request.prompt.version)
    return engine.generate(request.prompt, schema, max_tokens=request.max_tokens, deadline=deadline)


def _mark(number: int) -> str:
    return f"M{number}"


def _key(talk: Talk) -> str:
    return f"{UnitKeys(talk.id).talk}_verdicts"


@cache
def _schema(count: int, version: str) -> type[BaseModel]:
    fields: dict[str, Any] = {_mark(number): (TurnVerdict, ...) for number in range(1, count + 1)}
    return create_model("Verdicts", __config__=ConfigDict(title=version, extra="forbid"), **fields)


@dataclass
class TalkVerdicts:
    """What a judge says of machine turns, and what became of each turn that people judged."""

    by_turn: Answers = field(default_factory=dict)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    models: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path, talks: Iterable[Talk]) -> "TalkVerdicts":
        """Read the answers of a batch, or a file with an answer a line. Raises TalkError or BatchError."""
        if path.is_file() and next(answers_of(path), None) is None:
            return cls(by_turn=read_answers(path))
        batch = read_batch(path)
        verdicts = cls(models={answer.model for answer in batch.by_id.values() if answer.model})
        for talk in talks:
            verdicts.add(talk, batch.by_id.get(_key(talk)) or Reply(outcome=Outcome.FAILED, reason=_MISSING))
        if 0 < verdicts.outcomes.total() == verdicts.reasons[_MISSING]:
            named = f"such as {min(batch.by_id)}"
            raise TalkError(f"{path}: no answer is about these talks, {named}; give the talks of --ask-later")
        return verdicts

    def add(self, talk: Talk, answer: BatchAnswer | Reply) -> None:
        """Take the answer about a talk, which may hold some turns alone. What cannot be read is counted."""
        outcome, reason, by_mark = answer.outcome, answer.reason, dict[str, Any]()
        if outcome is Outcome.ANSWERED or (outcome is Outcome.UNPARSED and answer.text):
            try:
                by_mark = parse_reply(answer.text, _Verdicts).root
                outcome, reason = Outcome.UNPARSED, "the answer holds no probabilities of this turn"
            except UnparsedError as error:
                outcome, reason = error.outcome, str(error)
        for number, turn in enumerate(machine_turns(talk), 1):
            fault = _fault_in(by_mark.get(_mark(number)))
            if fault is not None:
                self.by_turn[talk.id, number] = fault
            if turn.faults:
                self.outcomes[outcome if fault is None else Outcome.ANSWERED] += 1
                self.reasons.update([reason] if fault is None else ())


def _fault_in(verdict: Any) -> float | None:
    try:
        return TurnVerdict.model_validate(verdict).fault
    except ValidationError:
        return None
