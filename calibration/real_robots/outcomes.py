"""What people did next, as verdicts: python -m calibration.real_robots.outcomes --scout FILE --out TALKS.jsonl.

A turn of the robot's counts against it if the person's next words repeat, rephrase, correct or cancel what the
person asked for before. `python -m calibration.talk_verdicts` measures the monitor on the file.
"""

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from calibration.command import run_command
from calibration.real_robots.scout import Json, person_of, read_rows, read_sessions, shares_words
from calibration.talk_verdicts.talk_file import Talk, TalkTurn, Votes, write_talks
from norm_core.runtime.time import ns_to_s
from norm_monitor.context.spoken_words import estimate_duration_ns

# What a person's row does, by the annotators' relation to an earlier row.
_AGAINST = ("clar-repeat", "summarization", "correction-cancel", "correction-update")
# After these rows of the robot's a person says again what was not understood; after others a repair is an answer.
_NOT_UNDERSTOOD = ("req-repeat", "nack")
# A person who says nothing for longer is taken to have accepted the turn.
_MAX_WAIT_S = 30.0


def write_outcomes(
    scout: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="SCOUT's sessions, one JSON a line.")],
    out: Annotated[Path, typer.Option(help="File of the talks, one a line.")],
    minutes: Annotated[float, typer.Option(min=1, help="How much of each person's first session counts.")] = 10,
    relations_only: Annotated[
        bool, typer.Option("--relations-only", help="Count what annotators say of the next words, not shared words.")
    ] = False,
) -> None:
    """Write the beginning of each person's first session after the training, people in an order drawn once."""
    first_sessions: dict[str, Json] = {}
    for session in sorted(read_sessions(scout), key=lambda session: str(session["id"])):
        if "_main" in session["id"]:
            first_sessions.setdefault(person_of(session["id"]), session)
    sessions = list(first_sessions.values())
    random.Random(0).shuffle(sessions)
    write_talks(out, [make_talk(session, 60 * minutes, relations_only=relations_only) for session in sessions])


def make_talk(session: Json, end_s: float, *, relations_only: bool = False) -> Talk:
    """Return the first seconds of a session, with a vote on each of the robot's turns before a person's."""
    return Talk(
        id=session["id"],
        corpus="scout",
        group=person_of(session["id"]),
        turns=tuple(_turns([row for row in read_rows(session) if row["at_s"] < end_s], relations_only=relations_only)),
    )


def _turns(rows: list[Json], *, relations_only: bool) -> Iterator[TalkTurn]:
    asked: Json | None = None
    for row, then in pairwise([*rows, None]):
        if row is None:
            continue
        start_s, votes = row["at_s"], None
        if row["by"] == "person":  # stamped as its words end
            asked = None if relations_only else row
            start_s = max(0.0, start_s - ns_to_s(estimate_duration_ns(row["text"])))
        elif then and then["by"] == "person":
            is_against = then["at_s"] - start_s <= _MAX_WAIT_S and _is_against(row, asked, then)
            votes = Votes(breakdown=1) if is_against else Votes(no_breakdown=1)
        yield TalkTurn(by=row["by"], text=row["text"], start_s=start_s, votes=votes)


def _is_against(row: Json, asked: Json | None, then: Json) -> bool:
    says_again = then["relation"].startswith("clar-repair") and row["relation"].startswith(_NOT_UNDERSTOOD)
    return then["relation"].startswith(_AGAINST) or says_again or (asked is not None and shares_words(asked, then))


if __name__ == "__main__":
    run_command(write_outcomes)
