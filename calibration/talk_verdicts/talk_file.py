"""Talks with people's verdicts, one a line: docs/reference/talk_corpora.md."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from norm_core.files.atomic_file import write_atomic
from norm_core.records.record import record
from norm_core.runtime.config import Config, check_config
from norm_core.runtime.errors import TactfulError
from norm_monitor.context.exchange import Exchange

# A turn is a fault where more than half of its annotators see a breakdown, or their mean rating is below this.
LEAST_MEAN_RATING = 2.5
MACHINES = ("machine", "robot")


class TalkError(TactfulError, ValueError):
    """A file of talks or of answers cannot be used; the message gives the line and the remedy."""


class Votes(Config):
    """How many annotators see no breakdown, a possible one, and one."""

    no_breakdown: int = Field(default=0, ge=0, le=10_000)
    possible_breakdown: int = Field(default=0, ge=0, le=10_000)
    breakdown: int = Field(default=0, ge=0, le=10_000)

    @property
    def counts(self) -> tuple[int, int, int]:
        """The counts, the mildest verdict first."""
        return self.no_breakdown, self.possible_breakdown, self.breakdown


class TalkTurn(Config):
    """One turn; the verdicts of people stand on a machine's turn."""

    by: Literal["person", "machine", "robot", "facilitator"]
    text: str
    start_s: float | None = Field(default=None, ge=0, le=1_000_000)
    votes: Votes | None = None
    rating: tuple[Annotated[float, Field(ge=1, le=5)], ...] | None = Field(default=None, min_length=1, max_length=1000)

    @model_validator(mode="after")
    def _check_verdict(self) -> Self:
        if (self.votes or self.rating) and not self.is_machine:
            raise ValueError(f"a verdict stands on a turn of a {self.by}; move it to the machine's turn that it is on")
        if self.votes and self.rating:
            raise ValueError("a turn has votes and a rating; keep one")
        if self.votes and not sum(self.votes.counts):
            raise ValueError("votes are all 0; leave them out where nobody judged the turn")
        return self

    @property
    def is_machine(self) -> bool:
        """Whether the machine speaks."""
        return self.by in MACHINES

    @property
    def faults(self) -> tuple[float, ...]:
        """Each annotator's verdict, from 0 for nothing to hold against the turn to 1; empty without a verdict."""
        if self.votes:
            return tuple(value for value, n in zip((0.0, 0.5, 1.0), self.votes.counts, strict=True) for _ in range(n))
        return tuple((5 - value) / 4 for value in self.rating or ())

    @property
    def is_fault(self) -> bool:
        """Whether more than half of the annotators see a breakdown, or their mean rating is low."""
        if self.votes:
            return 2 * self.votes.breakdown > sum(self.votes.counts)
        return self.rating is not None and sum(self.rating) < LEAST_MEAN_RATING * len(self.rating)


class Talk(Config):
    """One talk. Talks with the same `group`, such as several replies to one question, are resampled together."""

    id: str = Field(min_length=1)
    corpus: str = Field(min_length=1)
    group: str = ""
    turns: tuple[TalkTurn, ...]


@record
class JudgedTurn:
    """A machine's turn with people's verdicts, amid the words around it."""

    talk_id: str
    group: str
    number: int  # among the talk's machine turns with words, from 1
    turn: TalkTurn
    exchange: Exchange


L = TypeVar("L", bound=Config)


class Answer(Config):
    """A judge's probability that people hold a turn against the machine, and that they find it notably good."""

    talk: str
    n: int = Field(ge=1)
    fault: float = Field(ge=0, le=1)
    good: float | None = Field(default=None, ge=0, le=1)


Answers = dict[tuple[str, int], float]  # the probability of a fault, by talk and number of the machine's turn


def read_answers(path: Path) -> Answers:
    """Read a judge's answers. Raises TalkError for an invalid line, or a turn that is answered twice."""
    answers: Answers = {}
    for number, answer in read_lines(path, Answer, "{talk, n, fault, good}"):
        if (answer.talk, answer.n) in answers:
            raise TalkError(f"{path}, line {number}: answers turn {answer.n} of {answer.talk} again; keep one")
        answers[answer.talk, answer.n] = answer.fault
    return answers


def read_talks(paths: Iterable[Path]) -> list[Talk]:
    """Read all talks of files. Raises TalkError for an invalid line, or an id that appears twice."""
    places: dict[str, str] = {}
    talks = []
    for path in paths:
        for number, talk in read_lines(path, Talk, "{id, corpus, turns}"):
            place = f"{path}, line {number}"
            if (before := places.setdefault(talk.id, place)) != place:
                raise TalkError(f"{place}: id {talk.id!r} stands in {before} already; give each talk one id")
            talks.append(talk)
    return talks


def read_lines(path: Path, kind: type[L], form: str) -> Iterator[tuple[int, L]]:
    """Yield the number and the content of each line that is not empty. Raises TalkError with the line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TalkError(f"{path}: cannot be read: {error}; check the path, and save it as UTF-8") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                value: Any = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise TalkError(f"{path}, line {number}: is not JSON: {error}; write one {form} a line") from error
            yield number, check_config(kind, value, f"{path}, line {number}")


def write_talks(path: Path, talks: Iterable[Talk]) -> None:
    """Write one line a talk; raise TalkError if the file cannot be written."""
    try:
        write_atomic(path, "".join(f"{talk.model_dump_json(exclude_defaults=True)}\n" for talk in talks))
    except OSError as error:
        raise TalkError(f"{path}: cannot be written: {error.strerror}; name a file of yours") from error


def judged_turns(talk: Talk) -> Iterator[JudgedTurn]:
    """Yield each machine turn that has words and a verdict."""
    turns = [turn for turn in talk.turns if turn.text.strip()]
    own = [place for place, turn in enumerate(turns) if turn.is_machine]
    for number, (before, at, then) in enumerate(zip([-1, *own], own, [*own[1:], len(turns)], strict=False), 1):
        if not turns[at].faults:
            continue
        exchange = Exchange(
            before=_words(turns[before + 1 : at]),
            said=turns[at].text,
            after=_words(turns[at + 1 : then]),
            then=turns[then].text if then < len(turns) else "",
            earlier=turns[before].text if before >= 0 else "",
            opening=before < 0,
        )
        yield JudgedTurn(talk_id=talk.id, group=talk.group or talk.id, number=number, turn=turns[at], exchange=exchange)


def _words(turns: Sequence[TalkTurn]) -> str:
    return " ".join(turn.text for turn in turns)
