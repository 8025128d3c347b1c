"""Read talks written as examples, with a label per robot turn: `talks/*.txt`; see the README there."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.json_codec import sha256_of
from norm_core.records.record import record
from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.errors import TactfulError
from norm_monitor.context.exchange import Exchange

SHIPPED = shipped_file("calibration", "talks")

_ABOUT = {
    "emotions": Attribute.EMOTIONS,
    "engagement": Attribute.ENGAGEMENT,
    "turns": Attribute.CONVERSATIONAL_MECHANICS,
    "knowledge": Attribute.KNOWLEDGE_STATE,
    "intent": Attribute.USER_INTENTION,
    "social": Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS,
    "norms": Attribute.SOCIAL_NORMS_AND_ROUTINES,
}
_SIGNS = {"+": Polarity.COMPETENCE, "-": Polarity.ERROR}
_TURN = re.compile(r"(?P<who>[ruv]): (?P<text>[^|]*[^|\s])(?P<label> \|(?: (?P<sign>[+-])(?P<about>(?: [a-z]+)+))?)?")


class TalkError(TactfulError, ValueError):
    """A line is not a turn; the message gives the place."""


@record
class LabelledTurn:
    """One turn of a talk; a robot's turn may have a polarity and attributes."""

    is_robot: bool
    text: str
    polarity: Polarity | None = None  # None for an ordinary turn
    attributes: tuple[Attribute, ...] = ()


@record
class LabelledExchange:
    """One robot turn in its talk, with its label."""

    talk: int
    exchange: Exchange
    polarity: Polarity | None
    attributes: tuple[Attribute, ...]


def read_talks(folder: Path = SHIPPED) -> tuple[tuple[LabelledTurn, ...], ...]:
    """Read all talks of a folder, in order of file names."""
    return tuple(talk for path in sorted(folder.glob("*.txt")) for talk in _talks_in(path))


def talks_sha256(folder: Path = SHIPPED) -> str:
    """Return the digest of a folder's talks."""
    return sha256_of({path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.txt")})


def exchanges(talks: Sequence[Sequence[LabelledTurn]]) -> Iterator[LabelledExchange]:
    """Yield each robot turn, with everything before and after it."""
    for number, talk in enumerate(talks):
        own = [at for at, turn in enumerate(talk) if turn.is_robot]
        for before, at, then in zip([-1, *own], own, [*own[1:], len(talk)], strict=False):
            yield LabelledExchange(
                talk=number,
                exchange=Exchange(
                    before=" ".join(turn.text for turn in talk[before + 1 : at]),
                    said=talk[at].text,
                    after=" ".join(turn.text for turn in talk[at + 1 : then]),
                    then=talk[then].text if then < len(talk) else "",
                    earlier=talk[before].text if before >= 0 else "",
                    opening=before < 0,
                ),
                polarity=talk[at].polarity,
                attributes=talk[at].attributes,
            )


def _talks_in(path: Path) -> list[tuple[LabelledTurn, ...]]:
    talks: list[list[LabelledTurn]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("# "):
            talks.append([])
        elif line and not talks:
            raise TalkError(f"{path.name}, line {number}: a talk begins with a line '# PLACE; PERSON; ROBOT'")
        elif line:
            talks[-1].append(_turn(line, f"{path.name}, line {number}"))
    return [tuple(talk) for talk in talks]


def _turn(line: str, where: str) -> LabelledTurn:
    found = _TURN.fullmatch(line)
    if found is None:
        raise TalkError(
            f"{where}: a turn is 'u: TEXT', 'v: TEXT' or 'r: TEXT |', with '+' or '-' and attributes after it"
        )
    is_robot, about = found["who"] == "r", (found["about"] or "").split()
    if is_robot != (found["label"] is not None):
        raise TalkError(f"{where}: the robot's turns end in '|' and its label, and nobody else's do")
    if unknown := sorted(set(about) - set(_ABOUT)):
        raise TalkError(f"{where}: {', '.join(unknown)} is no attribute; they are {', '.join(_ABOUT)}")
    return LabelledTurn(
        is_robot=is_robot,
        text=found["text"],
        polarity=_SIGNS[found["sign"]] if found["sign"] else None,
        attributes=tuple(_ABOUT[name] for name in about),
    )
