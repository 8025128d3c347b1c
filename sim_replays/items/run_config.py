"""The settings of a run, and its items with images and speech; their labels are apart."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from norm_core.records.episode import Query
from norm_core.records.record import record
from norm_core.records.speech import Utterance
from norm_core.runtime.config import Config
from sim_replays.items.clip import Shot
from sim_replays.items.target import SuiteError, Target

Frames = Literal["discrete", "tiled", "discrete-shuffled", "tiled-shuffled"]


class RunConfig(Config):
    """The data, the questions and the input of a run. All of them enter the run's identity.

    `bare` asks a model alone with the paper's prompt; otherwise the robot's steps ask it. `only` is a file of ids,
    such as a split.
    """

    bare: bool = False
    suite: str
    data: str
    setting: str
    style: Literal["default", "egoplan", "exclusion"] = "default"
    pictures: str = ""
    sampling: Literal["robot", "paper"] = "robot"
    frames: Frames = "discrete"
    whisper: str = ""
    only: str = ""
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

    @property
    def keys(self) -> set[tuple[str, str]]:
        """The item and task of each query, for scoring."""
        return {(self.item or self.id, query.task) for query in self.queries}


@record
class RunItems:
    """All episodes of a run, the labels, which stay out of the bag, and the files that hold the data."""

    episodes: tuple[RunItem, ...]
    targets: tuple[Target, ...]
    files: tuple[Path, ...]

    def select(self, episodes: Sequence[RunItem]) -> "RunItems":
        """Return these episodes with their targets."""
        keys = {key for item in episodes for key in item.keys}
        targets = tuple(target for target in self.targets if target.key in keys)
        return RunItems(episodes=tuple(episodes), targets=targets, files=self.files)


def read_ids(path: Path) -> set[str]:
    """Read the ids of a split: a JSON list, or one id a line.

    Raises SuiteError if the file cannot be read or names no id.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        plain = json.loads(text) if text.lstrip().startswith(("[", "{")) else text.split()
    except (OSError, ValueError) as error:
        raise SuiteError(f"{path}: cannot be read as a list of ids: {error}; write one id a line") from error
    ids = {str(entry) for entry in plain}
    if not ids:
        raise SuiteError(f"{path}: names no id; write one id a line")
    return ids


def is_named(item: str, wanted: set[str]) -> bool:
    """Return whether an item is selected. For SEGMENT#SEED of HSRI, the name of the segment is enough."""
    return item in wanted or item.partition("#")[0] in wanted
