"""Answers to other questions: talks that end with another one's answer, and lines with right and wrong replies."""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from calibration.talk_reader.lessons import Kind, Target, TaughtTalk, shipped_lines
from norm_core.records.flag import Attribute
from norm_core.records.record import record
from norm_monitor.context.talk_lines import ANYBODY, talk_lines

_AMISS = Target(kind=Kind.ERROR, attributes=(Attribute.USER_INTENTION,), held=0.9, good=0.02)
_RIGHT = Target(kind=Kind.ORDINARY, held=0.06)
# The longest talk before a swapped answer, and the share of answers that come from later in the same talk, if any can.
_LONGEST_CHARACTERS, _SAME_TALK = 1_800, 0.75
_LEAST_WORDS, _TRIES, _MOST_HELD = 4, 20, 0.3
_CONTENT = re.compile(r"[a-z']{3,}")
_COMMON = re.compile(
    r"\b(the|and|are|was|were|this|that|you|she|they|your|can|will|would|what|when|where|who|how|why|which|but|for|with|"
    r"not|yes|please|there|here|have|has|had|does|did|could|just)\b"
)
# An answer that begins so may answer anything.
_FITS_ANYWHERE = re.compile(
    r"(sorry|i'?m sorry|i am sorry|my apologies|i don'?t|i do not|of course|hello|hi\b|good (morning|day)|thank|"
    r"you'?re welcome|you are welcome|bye|goodbye|ok|sure|great|i see|oh\b|welcome|pardon|excuse|let me|one moment)",
    re.IGNORECASE,
)


@record
class RepliedLine:
    """What a person says, what was said before it (who, and what), and replies that answer it and that do not."""

    id: str
    before: tuple[tuple[str, str], ...]
    said: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]

    def talks(self) -> Iterator[TaughtTalk]:
        """Yield one talk for each reply; the writer is the letter with which the name begins."""
        spoken = [("" if by == "robot" else ANYBODY, text) for by, text in self.before] + [(ANYBODY, self.said)]
        machine = frozenset([*(place for place, (by, _) in enumerate(spoken) if not by), len(spoken)])
        for number, reply in enumerate((*self.right, *self.wrong)):
            yield TaughtTalk(
                id=f"relevance:{self.id}:{number}",
                corpus="relevance",
                writer=f"relevance/{self.id[0]}",
                lines=tuple(talk_lines([*spoken, ("", reply)])),
                machine=machine,
                targets={len(spoken): _RIGHT if number < len(self.right) else _AMISS},
            )


def replied_lines() -> Iterator[RepliedLine]:
    """Return the shipped lines with replies."""
    return shipped_lines(RepliedLine, "relevance.jsonl.gz")


@record
class _Answer:
    """A question of a person's, and the robot's answer, which nobody holds against it."""

    talk: TaughtTalk
    place: int
    question: str
    text: str

    def can_stand_for(self, other: "_Answer") -> bool:
        """Whether it answers that one's question least: neither it nor its own question shares a word with it."""
        return self.text != other.text and not (_content(self.text) | _content(self.question)) & _content(
            other.question
        )


def swaps(talks: Sequence[TaughtTalk], most: int, seed: int = 0) -> Iterator[TaughtTalk]:
    """Return some of the talks with the answer to another question at their end, as an error.

    Give talks of one writer: who leaves the writer out leaves these out, and no word of his reaches other talks.
    """
    return islice(_swaps(talks, random.Random(seed)), most)


def _swaps(talks: Sequence[TaughtTalk], draw: random.Random) -> Iterator[TaughtTalk]:
    by_talk = [list(_answers(talk)) for talk in talks]
    pairs = [(answer, own) for own in by_talk for answer in own]
    draw.shuffle(pairs)
    answers = [answer for answer, _ in pairs]
    for answer, own in pairs:
        later = [candidate for candidate in own if candidate.place > answer.place and candidate.can_stand_for(answer)]
        others = [
            candidate
            for candidate in draw.sample(answers, min(_TRIES, len(answers)))
            if candidate.can_stand_for(answer)
        ]
        chosen = later if later and (draw.random() < _SAME_TALK or not others) else others
        if chosen and sum(map(len, answer.talk.lines[: answer.place])) <= _LONGEST_CHARACTERS:
            yield _swapped(answer, draw.choice(chosen).text)


def _swapped(answer: _Answer, text: str) -> TaughtTalk:
    talk, place = answer.talk, answer.place
    name = talk.lines[place].split(": ", 1)[0]
    # Where nobody says of the other lines what they are, this one would teach that all lines are errors.
    amiss = replace(_AMISS, kind=None) if talk.targets[place].kind is None else _AMISS
    return replace(
        talk,
        id=f"swap:{place}:{talk.id}",
        lines=(*talk.lines[:place], f"{name}: {text}\n"),
        machine=frozenset(index for index in talk.machine if index <= place),
        targets={**{index: target for index, target in talk.targets.items() if index < place}, place: amiss},
        onsets_ns=(),
    )


def _answers(talk: TaughtTalk) -> Iterator[_Answer]:
    for place in sorted(talk.machine & talk.targets.keys()):
        target = talk.targets[place]
        if not place or place - 1 in talk.machine or talk.is_scene or target.kind is Kind.ERROR:
            continue
        question, text = (line.split(": ", 1)[1].strip() for line in talk.lines[place - 1 : place + 1])
        is_held = target.kind is None if target.held is None else target.held > _MOST_HELD
        is_plain = len(text.split()) >= _LEAST_WORDS and "?" not in text and not _FITS_ANYWHERE.match(text)
        if "?" in question and text.isascii() and is_plain and not is_held:
            yield _Answer(talk=talk, place=place, question=question, text=text)


def _content(text: str) -> set[str]:
    return set(_CONTENT.findall(_COMMON.sub("", text.lower())))
