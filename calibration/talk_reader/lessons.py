"""What the talk reader is taught: lines of talk, and what people, writers and a strong model say of the machine's."""

import gzip
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from enum import IntEnum
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeVar

from norm_core.engines.talk_reader import format_option, format_scene
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.json_codec import from_json
from norm_core.records.record import record

# The share of talks whose words are changed as a recognizer would, and of a person's words in them.
_HEARD_SHARE, _MISHEARD_SHARE, _PLAIN_SHARE = 0.3, 0.05, 0.3
R = TypeVar("R")
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
    possible: float | None = None  # whether whoever is in a scene can do this now
    fitting: float | None = None  # how fitting it is there, from 0 to 1


@record
class TaughtTalk:
    """One talk: its lines, and the targets of some of the machine's, by place.

    Of a scene, all lines of the machine are options: each follows what is before the first of them.
    """

    id: str
    corpus: str
    writer: str = ""
    lines: tuple[str, ...]
    machine: frozenset[int]  # the places of the machine's lines
    targets: Mapping[int, Target] = field(default_factory=dict)
    onsets_ns: tuple[int, ...] = ()
    is_scene: bool = False


@record
class Option:
    """Something that could be done in a scene, whether it can be (1), and how fitting it is (2: the best)."""

    text: str
    can: Literal[0, 1]
    fit: Literal[0, 1, 2]


@record
class Scene:
    """A scene that a writer made up: what is there, what was said last, and what could be done."""

    id: str
    scene: str
    said: str
    options: tuple[Option, ...]

    def talk(self, writer: str) -> TaughtTalk:
        """Return the scene as lines; the order of its options is drawn by its name, as writers begin with the best."""
        options = random.Random(self.id).sample(self.options, len(self.options))
        context_lines = format_scene(self.scene, [self.said] if self.said else [])
        return TaughtTalk(
            id=f"scene:{self.id}",
            corpus="scenes",
            writer=writer,
            lines=(*context_lines, *map(format_option, (option.text for option in options))),
            machine=frozenset(range(len(context_lines), len(context_lines) + len(options))),
            targets={
                place: Target(possible=option.can, fitting=option.fit / 2)
                for place, option in enumerate(options, start=len(context_lines))
            },
            is_scene=True,
        )


def misheard(talk: TaughtTalk, draw: random.Random) -> TaughtTalk:
    """Return the talk as a recognizer might have heard it, in a share of the draws: marks, case and words get lost."""
    lines = list(talk.lines)
    if draw.random() < _HEARD_SHARE:
        lines = [line if place in talk.machine else _mishear(line, draw) for place, line in enumerate(lines)]
    if draw.random() < _PLAIN_SHARE:
        lines = [_plain(line) for line in lines]
    return replace(talk, lines=tuple(lines))


def _mishear(line: str, draw: random.Random) -> str:
    name, text = line.split(": ", 1)
    words = text.split()
    heard_words = []
    for word in words:
        chance = draw.random()
        if chance < _MISHEARD_SHARE / 2 and len(words) > 3:
            continue
        heard_words.append(draw.choice(words) if chance < _MISHEARD_SHARE else word)
    return f"{name}: {' '.join(heard_words or words)}\n"


def _plain(line: str) -> str:
    name, text = line.split(": ", 1)
    return f"{name}: {' '.join(_MARKS.sub(' ', text).lower().split()) or text.strip()}\n"


def shipped_lines(kind: type[R], name: str) -> Iterator[R]:
    """Yield the records of a compressed file beside this module, one a line."""
    packed = files("calibration.talk_reader").joinpath(name).open("rb")
    with gzip.open(packed, "rt", encoding="utf-8") as file:
        for line in file:
            yield from_json(kind, line)


def read_material(paths: Iterable[Path]) -> list[TaughtTalk]:
    """Read the files that this module's command writes."""
    return [
        from_json(TaughtTalk, line) for path in paths for line in path.read_text(encoding="utf-8").split("\n") if line
    ]
