"""The settings of a run, and its items with images and speech; their labels are apart."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from norm_core.records.episode import Query
from norm_core.records.record import record
from norm_core.records.speech import Utterance
from norm_core.runtime.config import Config
from sim_replays.items.clip import Shot
from sim_replays.items.target import Target

Frames = Literal["discrete", "tiled", "discrete-shuffled", "tiled-shuffled"]


class RunConfig(Config):
    """The data, the questions and the input of a run. All of them enter the run's identity.

    `bare` asks a model alone with the paper's prompt; otherwise the robot's steps ask it.
    """

    bare: bool = False
    suite: str
    data: str
    setting: str
    style: Literal["default", "egoplan", "exclusion"] = "default"
    pictures: str = ""
    sampling: Literal["robot", "paper"] = "robot"
    frames: Frames = "discrete"
    seed: int = 0


@record
class RunItem:
    """One episode: its questions, images and speech in order of time.

    `orders` has, by question, the dataset's index of each offered option. Answers are scored under `item`, or under
    `id` if it is empty. Stamps of utterances count from the start of the episode.
    """

    id: str
    item: str = ""
    queries: tuple[Query, ...]
    shots: tuple[Shot, ...] = ()
    utterances: tuple[Utterance, ...] = ()
    orders: Mapping[str, tuple[int, ...]]


@record
class RunItems:
    """All episodes of a run, the labels, which stay out of the bag, and the files that hold the data."""

    episodes: tuple[RunItem, ...]
    targets: tuple[Target, ...]
    files: tuple[Path, ...]
