"""How well the shipped monitor predicts what people do next: python -m calibration.real_robots.outcomes --scout FILE.

A turn of the robot's counts against it if the person's next words repeat, rephrase, correct or cancel what the
person asked for before.
"""

import pickle
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from calibration.command import run_command
from calibration.real_robots.scout import (
    CODINGS,
    Json,
    ScoutTalk,
    person_of,
    read_sessions,
    read_talk,
    shares_words,
)
from norm_core.engines.talk_reader import NO_READER
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.time import s_to_ns
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.assessment.unit_evidence import UnitEvidence
from norm_monitor.context.meaning import EncoderMatcher, TextMatcher
from norm_monitor.monitor import MonitorConfig
from scoring.intervals import draw_clusters, percentile_interval
from scoring.ranking import ranking_measures
from sim_replays.monitor_bench.script_driver import run_monitor

_DRAWS = 1000
# What a person's row does, by the annotators' relation to an earlier row.
_AGAINST = ("clar-repeat", "summarization", "correction-cancel", "correction-update")
# After these rows of the robot's a person says again what was not understood; after others a repair is an answer.
_NOT_UNDERSTOOD = ("req-repeat", "nack")
# A person who says nothing for longer is taken to have accepted the turn.
_MAX_WAIT_NS = s_to_ns(30)
# Facts that rank turns without the monitor's weights.
_FACTS = {
    "reader, with what follows": "reader_held",
    "reader, at once": "reader_held_at_once",
    "words, at once": "text_error_log_odds_without_reaction",
    "words of the turn": "words",
    "seconds after the person": "after_person_s",
}


@record
class RobotTurn:
    """A row of the robot's, how it is ranked, and whether the person then holds it against the robot."""

    person: str
    is_coded: bool  # whether the monitor's weights were fitted on codings of the same person
    is_against: bool
    readings: dict[str, float]


def measure_outcomes(
    scout: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="SCOUT's sessions, one JSON a line.")],
    reader: Annotated[str, typer.Option(help="Folder of the talk reader; none: without one.")] = NO_READER,
    people: Annotated[int, typer.Option(min=0, help="Number of people, in an order drawn once; 0: all.")] = 0,
    minutes: Annotated[float, typer.Option(min=1, help="How much of each person's first session counts.")] = 10,
    cache: Annotated[Path, typer.Option(help="File of what was measured.")] = Path("scratch/outcomes.pkl"),
) -> None:
    """Print the area under the curve of each reading, with 95 % intervals over people."""
    if not cache.exists():
        meaning, talks = (
            EncoderMatcher.shipped(reader, remembered=50_000),
            _first_talks(scout, minutes)[: people or None],
        )
        turns = [
            turn for talk in track(talks, "people", console=Console(stderr=True)) for turn in read_turns(talk, meaning)
        ]
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_bytes(pickle.dumps(turns))
    turns = pickle.loads(cache.read_bytes())
    table = Table(
        "area under the curve",
        *(parts := {"all": turns, "people without codings": [turn for turn in turns if not turn.is_coded]}),
    )
    for reading in turns[0].readings:
        table.add_row(reading, *(_area(part, reading) for part in parts.values()))
    console = Console(highlight=False, width=160)
    console.print(table)
    for name, part in parts.items():
        against = sum(turn.is_against for turn in part)
        console.print(
            f"{name}: {len({turn.person for turn in part})} people, {len(part)} turns, {against} against the robot"
        )


def _first_talks(scout: Path, minutes: float) -> list[ScoutTalk]:
    """Return the beginning of each person's first session after the training, people in an order drawn once."""
    first_session: dict[str, Json] = {}
    for session in sorted(read_sessions(scout), key=lambda session: str(session["id"])):
        if "_main" in session["id"]:
            first_session.setdefault(person_of(session["id"]), session)
    sessions = list(first_session.values())
    random.Random(0).shuffle(sessions)
    return [read_talk(session, 0, 60 * minutes) for session in sessions]


def read_turns(talk: ScoutTalk, meaning: TextMatcher) -> Iterator[RobotTurn]:
    """Run the shipped monitor on a talk, and yield the robot's turns that a person speaks after."""
    closed: list[UnitEvidence] = []
    config = MonitorConfig.for_replay((UTTERANCES,))
    run_monitor(talk.records, talk.truth, config, meaning, ThresholdTable.shipped(), note_closed=closed.append)
    evidence = {unit.unit.onset_ns: unit for unit in closed if unit.unit.kind is UnitKind.ROBOT_TURN}
    person = person_of(talk.truth.encounter_id)
    is_coded = person in {person_of(stretch["session"]) for stretch in read_sessions(CODINGS)}
    for onset_ns, is_against in find_outcomes(talk):
        unit = evidence.get(onset_ns)
        if unit and unit.measured:
            facts = unit.measured.facts
            readings = {
                "monitor, with what follows": unit.assessment(config.unit_model(meaning)).likely[Polarity.ERROR]
            }
            readings |= {name: facts[fact] for name, fact in _FACTS.items() if fact in facts}
            yield RobotTurn(person=person, is_coded=is_coded, is_against=is_against, readings=readings)


def find_outcomes(talk: ScoutTalk) -> Iterator[tuple[int, bool]]:
    """Yield the onset of each row of the robot's before a person's, and whether that one counts against the robot."""
    asked: Json | None = None
    for (row, onset_ns), (then, then_ns) in pairwise(zip(talk.rows, talk.onsets_ns, strict=True)):
        if row["by"] == "person":
            asked = row
        elif then["by"] == "person":
            yield onset_ns, then_ns - onset_ns <= _MAX_WAIT_NS and _is_against(row, asked, then)


def _is_against(row: Json, asked: Json | None, then: Json) -> bool:
    says_again = then["relation"].startswith("clar-repair") and row["relation"].startswith(_NOT_UNDERSTOOD)
    return then["relation"].startswith(_AGAINST) or says_again or (asked is not None and shares_words(asked, then))


def _area(turns: Sequence[RobotTurn], reading: str) -> str:
    ranked = [turn for turn in turns if reading in turn.readings]
    scores = np.array([turn.readings[reading] for turn in ranked])
    is_against = np.array([turn.is_against for turn in ranked])
    people, places = np.unique([turn.person for turn in ranked], return_inverse=True)
    drawn = draw_clusters(len(people), _DRAWS)
    weights = np.array([np.bincount(row, minlength=len(people)) for row in drawn], float)[:, places]
    whole = ranking_measures(scores, is_against, np.ones((1, len(ranked))))[0][0]
    areas = ranking_measures(scores, is_against, weights)[0]
    low, high = percentile_interval(areas[~np.isnan(areas)])
    return f"{whole:.2f} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    run_command(measure_outcomes)
