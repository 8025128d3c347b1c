"""Generate error-free talk of any length from fragments, by seed."""

import random
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Self

from pydantic import Field, model_validator

from norm_core.runtime.config import Config, load_config
from norm_core.runtime.data_files import shipped_file
from sim_replays.scenarios.encounter import ROBOT, Encounter, Noise, ScriptedPerson, ScriptedTurn
from sim_replays.scenarios.timeline import lay_out

FRAGMENTS = shipped_file("sim_replays.scenarios", "clean_talk.yaml")
USER = "u"
SESSION_S = 180.0  # approximate length of one talk
# Response times of people: (shortest, likeliest, longest) in seconds.
ANSWERS_S, THINKS_S, RESTS_S = (0.35, 0.6, 1.2), (0.4, 0.8, 2.2), (2.5, 5.0, 12.0)
ROBOTS = ("robot_clear", "robot_warm")
USERS = ("woman_us", "woman_uk", "man_us", "man_uk", "man_scot", "elder_man", "elder_woman")

Fragment = tuple[dict[str, str], ...]


class Fragments(Config):
    """Exchanges of a few turns. A turn is a speaker's letter and words."""

    openings: Annotated[tuple[Fragment, ...], Field(min_length=1)]
    middles: Annotated[tuple[Fragment, ...], Field(min_length=1)]
    closings: Annotated[tuple[Fragment, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _are_turns_of_two(self) -> Self:
        for fragment in (*self.openings, *self.middles, *self.closings):
            for turn in fragment:
                if len(turn) != 1 or not set(turn) <= {ROBOT, USER}:
                    raise ValueError(f"{turn} is no turn: write {ROBOT} or {USER} and what is said")
        return self


@cache
def fragments() -> Fragments:
    """Load the shipped fragments."""
    return load_config(Fragments, FRAGMENTS)


def clean_talk(length_s: float, seed: int) -> Iterator[Encounter]:
    """Generate talks of about three minutes, with a total length of at least `length_s`.

    The same seed starts with the same talks.
    """
    done_s, index = 0.0, 0
    while done_s < length_s:
        talk = _talk(random.Random(f"{seed}-{index}"), f"clean_{seed}_{index:03}")
        yield talk
        done_s += lay_out(talk).length_s
        index += 1


def _talk(chance: random.Random, name: str) -> Encounter:
    pool = fragments()
    middles = chance.sample(pool.middles, len(pool.middles))
    closing = chance.choice(pool.closings)
    said: list[ScriptedTurn] = []
    _add(said, chance.choice(pool.openings), chance)
    while middles and _lasts_s(said, name) < SESSION_S:
        _add(said, middles.pop(), chance)
    _add(said, closing, chance)
    return _encounter(
        said,
        name,
        noise=chance.choice(list(Noise)),
        voices={ROBOT: chance.choice(ROBOTS), USER: chance.choice(USERS)},
        distance_m=round(chance.uniform(1.1, 1.8), 2),
    )


def _add(said: list[ScriptedTurn], fragment: Fragment, chance: random.Random) -> None:
    for index, turn in enumerate(fragment):
        ((speaker, text),) = turn.items()
        waits_s = RESTS_S if index == 0 and said else ANSWERS_S if speaker == ROBOT else THINKS_S
        shortest_s, likeliest_s, longest_s = waits_s
        gap_s = 1.0 if not said else chance.triangular(shortest_s, longest_s, likeliest_s)
        said.append(ScriptedTurn(id=f"{speaker}{len(said) + 1}", gap_s=round(gap_s, 2), say=text))


def _lasts_s(said: list[ScriptedTurn], name: str) -> float:
    return lay_out(_encounter(said, name)).length_s


def _encounter(
    said: list[ScriptedTurn],
    name: str,
    noise: Noise = Noise.QUIET,
    voices: dict[str, str] | None = None,
    distance_m: float = 1.4,
) -> Encounter:
    return Encounter(
        id=name,
        setting="a room where people drop in",
        user="somebody who passes the time",
        noise=noise,
        voices=voices or {ROBOT: ROBOTS[0], USER: USERS[0]},
        turns=tuple(said),
        people={USER: ScriptedPerson(seen=("0..end",), distance_m={"0": distance_m, "end": distance_m})},
    )
