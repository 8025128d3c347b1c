"""A robot in a hospital, as verdicts: python -m calibration.real_robots.hospital --mpgt FOLDER --out TALKS.jsonl.

The folder is MPGT's `Preprocessing/data/dialogues/dst-and-goals`. Two people talk with ARI; annotators marked the
people's goals and acts. `python -m calibration.talk_verdicts` measures the monitor on the file. It has no times.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from calibration.command import run_command
from calibration.talk_verdicts.talk_file import Talk, TalkTurn, Votes, write_talks
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError

_ROBOT = "ARI"
# A goal is stated as G(person, goal), a turn that answers it as AG(person, goal).
_GOAL = re.compile(r"(?<![A-Z])(AG|G)\([^,]+,\s*([^@;]*?)\)?(?=;|$)")
# What people do after a turn that did not serve them, by the annotators' acts.
_OBJECTIONS = re.compile(r"r-repet|r-paraph|cant-hear|change-volume|give-feedback\(negative\)")


@record
class Line:
    """A line of a talk, with the acts and goals that annotators gave it."""

    by: str
    text: str
    acts: str = ""
    goals: tuple[tuple[str, str], ...] = ()

    def goals_marked(self, mark: str) -> set[str]:
        """Return the goals with this mark."""
        return {goal for of, goal in self.goals if of == mark}


def write_verdicts(
    mpgt: Annotated[Path, typer.Option(exists=True, file_okay=False, help="MPGT's folder dst-and-goals.")],
    out: Annotated[Path, typer.Option(help="File of the talks, one a line.")],
) -> None:
    """Write each talk twice: with verdicts by the annotators' goals, and by what people did next."""
    paths = sorted(mpgt.glob("convo*.txt"))
    if not paths:
        raise TactfulError(f"{mpgt}: has no convo*.txt; name MPGT's folder dst-and-goals")
    talks = [(path.stem, read_talk(path.read_text("utf-8"))) for path in paths]
    write_talks(
        out,
        [
            Talk(id=f"{corpus}/{name}", corpus=corpus, turns=tuple(_turns(lines, by_goals=corpus == "mpgt_goals")))
            for corpus in ("mpgt_goals", "mpgt_next")
            for name, lines in talks
        ],
    )


def read_talk(text: str) -> list[Line]:
    """Read the lines `SPEAKER: words # acts @ goals` of a talk."""
    lines = []
    for row in filter(None, map(str.strip, text.splitlines())):
        spoken, _, marks = row.partition(" # ")
        by, _, words = spoken.partition(":")
        acts, _, goals = marks.partition("@")
        lines.append(Line(by=by.strip(), text=words.strip(), acts=acts, goals=tuple(_GOAL.findall(goals))))
    return lines


def _turns(lines: Sequence[Line], *, by_goals: bool) -> Iterator[TalkTurn]:
    own = [place for place, line in enumerate(lines) if line.by == _ROBOT]
    around = dict(zip(own, zip([-1, *own], [*own[1:], len(lines)], strict=False), strict=True))
    for place, line in enumerate(lines):
        votes = None
        if place in around:
            before, then = around[place]
            asked = _asked(lines[before + 1 : place])
            following = lines[place + 1 : then]
            if by_goals and asked:
                votes = _vote(is_against=not line.goals_marked("AG"))
            elif not by_goals and following:
                objects = any(_OBJECTIONS.search(other.acts) for other in following)
                votes = _vote(is_against=objects or bool(asked & _asked(following)))
        yield TalkTurn(by="robot" if place in around else "person", text=line.text, votes=votes)


def _asked(lines: Sequence[Line]) -> set[str]:
    return set().union(*(line.goals_marked("G") for line in lines))


def _vote(*, is_against: bool) -> Votes:
    return Votes(breakdown=1) if is_against else Votes(no_breakdown=1)


if __name__ == "__main__":
    run_command(write_verdicts)
