"""What the talk reader is taught: lines of talk, and what people, writers and a strong model say of the machine's."""

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import IntEnum
from pathlib import Path

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.json_codec import from_json
from norm_core.records.record import record

# The share of talks whose words are changed as a recognizer would, and of a person's words in them.
_HEARD_SHARE, _MISHEARD_SHARE, _PLAIN_SHARE = 0.3, 0.05, 0.3
_MARKS = re.compile(r"[^\w\s'’]")


class Kind(IntEnum):
    """What a coder marks a line as."""

    ORDINARY = 0
    ERROR = 1
    COMPETENCE = 2

    @classmethod
    def of(cls, polarity: Polarity | None) -> "Kind":
        """Return the kind of a label; none is ordinary."""
        return cls.ORDINARY if polarity is None else cls.ERROR if polarity is Polarity.ERROR else cls.COMPETENCE


@record
class Target:
    """What is known of a machine's line."""

    kind: Kind | None = None
    attributes: tuple[Attribute, ...] = ()
    held: float | None = None  # the probability that people hold it against the machine, as a strong model says
    good: float | None = None  # that they find it notably good
    verdict: float | None = None  # people's own mean verdict, from 0 to 1, on the scale of their corpus


@record
class TaughtTalk:
    """One talk: its lines, and the targets of some of the machine's, by place."""

    id: str
    corpus: str
    writer: str = ""
    lines: tuple[str, ...]
    machine: frozenset[int]  # the places of the machine's lines
    targets: Mapping[int, Target] = field(default_factory=dict)
    onsets_ns: tuple[int, ...] = ()


def misheard(talk: TaughtTalk, draw: random.Random) -> TaughtTalk:
    """Return the talk as a recognizer might have heard it, in a share of the draws: marks, case and words get lost."""
    lines = list(talk.lines)
    if draw.random() < _HEARD_SHARE:
        lines = [line if place in talk.machine else _mishear(line, draw) for place, line in enumerate(lines)]
    if draw.random() < _PLAIN_SHARE:
        lines = [_plain(line) for line in lines]
    return replace(talk, lines=tuple(lines))


def _mishear(line: str, draw: random.Random) -> str:
    name, said = line.split(": ", 1)
    words = said.split()
    kept = []
    for word in words:
        chance = draw.random()
        if chance < _MISHEARD_SHARE / 2 and len(words) > 3:
            continue
        kept.append(draw.choice(words) if chance < _MISHEARD_SHARE else word)
    return f"{name}: {' '.join(kept or words)}\n"


def _plain(line: str) -> str:
    name, said = line.split(": ", 1)
    return f"{name}: {' '.join(_MARKS.sub(' ', said).lower().split()) or said.strip()}\n"


def read_material(paths: Iterable[Path]) -> list[TaughtTalk]:
    """Read the files that this module's command writes."""
    return [from_json(TaughtTalk, line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
