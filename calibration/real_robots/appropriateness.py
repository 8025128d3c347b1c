"""Whether the selector prefers what people find appropriate: python -m calibration.real_robots.appropriateness.

REACT-Shutter's `data` folder: a robot photographer took four actions before each picture, and the person scored each
from 1 to 7 for its social appropriateness. The selector ranks all nine kinds of action, given the one before.
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from action_selector.decider import Decider
from action_selector.request import Request
from action_selector.selector_config import SelectorConfig, WhenUnsure
from calibration.command import run_command
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.engines.talk_reader import open_reader
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock
from scoring.intervals import draw_clusters, percentile_interval

_SCENE = "A small robot photographer on a table is about to take a picture of the person who sits before it."
# Each kind of action as a candidate, and as what the robot has just done.
_ACTIONS = {
    "follow": ("Turn to the person and keep looking at them.", "turned to the person"),
    "perturbation": ("Turn away, so that the person is not in the middle of the picture.", "turned away"),
    "up": ("Look up.", "looked up"),
    "mid": ("Look straight ahead.", "looked straight ahead"),
    "look_at_button": ("Look down at the button on the table.", "looked at the button on the table"),
    "resting": ("Fold up and rest.", "folded up and rested"),
    "relax": ('Say: "Don\'t worry. You will look great."', "told the person not to worry"),
    "smile": ('Say: "Say cheese."', "asked the person to smile"),
    "joke": ("Tell a joke about robots or cameras.", "told a joke"),
}
_COUNTED = 4  # the fifth action is always the picture
_DRAWS = 1000


@record
class ScoredAction:
    """An action before a picture, by its kind and that of the one before it, with the person's score."""

    person: str
    picture: str
    before: str
    kind: str
    score: float


def measure_appropriateness(
    shutter: Annotated[Path, typer.Option(exists=True, file_okay=False, help="REACT's folder react-shutter/data.")],
    reader: Annotated[str, typer.Option(help="Folder of the talk reader; none: without one.")] = "none",
) -> None:
    """Print how often the better scored of two actions is preferred, and how its first choices are scored."""
    actions = read_actions(shutter)
    people, kinds = {action.person for action in actions}, sorted({action.kind for action in actions})
    ways: dict[str, Callable[[ScoredAction], float]] = {
        f"selector, reader {Path(name).name}": _ask_selector(name) for name in dict.fromkeys(("none", reader))
    }
    ways["mean score by other people"] = lambda action: _mean(actions, action.kind, without=action.person)
    for name, rank in ways.items():
        preferred, low, high = _prefer(actions, rank)
        ranked = [{kind: rank(replace(action, kind=kind)) for kind in kinds} for action in actions]
        chosen = [max(kinds, key=scores.__getitem__) for scores in ranked]
        score = np.mean([_mean(actions, kind) for kind in chosen])
        print(f"{name}: better of two preferred {preferred:.0f} % [{low:.0f}, {high:.0f}], choice scored {score:.2f}")
    by_chance = np.mean([_mean(actions, kind) for kind in kinds])
    print(f"{len(actions)} actions of {len(people)} people; by chance 50 %, and a choice scored {by_chance:.2f}")


def read_actions(folder: Path) -> list[ScoredAction]:
    """Read the actions before each picture."""
    summary = folder / "react-shutter_summary.csv"
    if not summary.is_file():
        raise TactfulError(f"{folder}: has no {summary.name}; name REACT's folder react-shutter/data")
    with summary.open(encoding="utf-8-sig", newline="") as file:
        scores = {row["ID"]: row for row in csv.DictReader(file)}
    actions = []
    for path in sorted((folder / "robot_actions").glob("robotactions_*.csv")):
        person, session, photo = path.stem.removeprefix("robotactions_").rsplit("_", 2)
        picture = f"{session}_t{int(photo.removeprefix('photo')) + 1}"
        before = ""
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, row in zip(range(1, _COUNTED + 1), csv.DictReader(file), strict=False):
                kind, score = row["high_level_action"], float(scores[person][f"{picture}_a{number}_s"])
                actions.append(ScoredAction(person=person, picture=picture, before=before, kind=kind, score=score))
                before = kind
    return actions


def _ask_selector(reader: str) -> Callable[[ScoredAction], float]:
    """Return the selector's probability of an action after the one before it."""
    config = SelectorConfig(when_unsure=WhenUnsure.BEST_EFFORT)
    decider = Decider(SentenceEncoder(), config, reader=open_reader(reader))
    candidates = tuple(action for action, _ in _ACTIONS.values())
    likely: dict[tuple[str, str], float] = {}
    for before in ("", *_ACTIONS):
        scene = f"{_SCENE} It has just {_ACTIONS[before][1]}." if before else _SCENE
        request = Request(query_id="action", candidates=candidates, situation=scene, others=())
        decision = decider.decide(request, Deadline(ReplayClock(0))).decision
        for kind, judgement in zip(_ACTIONS, decision.candidates, strict=True):
            likely[before, kind] = judgement.probability
    return lambda action: likely[action.before, action.kind]


def _mean(actions: Sequence[ScoredAction], kind: str, without: str = "") -> float:
    return float(np.mean([action.score for action in actions if action.kind == kind and action.person != without]))


def _prefer(actions: Sequence[ScoredAction], rank: Callable[[ScoredAction], float]) -> tuple[float, float, float]:
    """Return how often the better scored of two actions before a picture ranks first, with its interval over people."""
    by_person: dict[str, list[float]] = {action.person: [] for action in actions}
    for better, worse in permutations(actions, 2):
        if (better.person, better.picture) == (worse.person, worse.picture) and better.score > worse.score:
            lead = rank(better) - rank(worse)
            by_person[better.person].append(50.0 * (1 + (lead > 0) - (lead < 0)))
    sums = np.array([(sum(some), len(some)) for some in by_person.values()])
    drawn = sums[np.vstack([np.arange(len(sums)), draw_clusters(len(sums), _DRAWS)])].sum(axis=1)
    shares = drawn[:, 0] / np.maximum(1, drawn[:, 1])
    return (float(shares[0]), *percentile_interval(shares[1:]))


if __name__ == "__main__":
    run_command(measure_appropriateness)
