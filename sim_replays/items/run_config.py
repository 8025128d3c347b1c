"""What a run asks: items with images and speech and, separately, their labels."""

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
Precedents = Literal["", "none", "best-5", "random-5"]


class RunConfig(Config):
    """The data, the questions and the input of a run. All of it enters the run's identity.

    `bare` asks the model alone with the paper's prompt, otherwise the robot's steps ask it. `only` is a file of ids,
    such as a split. Any `precedents` reserve half of the items as their source.
    """

    bare: bool = False
    suite: str
    data: str
    setting: str
    style: Literal["default", "egoplan", "exclusion"] = "default"
    pictures: str = ""
    sampling: Literal["robot", "paper"] = "robot"
    frames: Frames = "discrete"
    precedents: Precedents = ""
    whisper: str = ""
    only: str = ""
    seed: int = 0


@record
class RunItem:
    """One episode: its questions, images and speech in order of time, and the option order of each question.

    Answers are scored under `item`, or under the episode's id if it is empty. Utterances have stamps from the episode's
    start.
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
    """All items of a run, and the labels, which stay out of the bag."""

    asked: tuple[RunItem, ...]
    targets: tuple[Target, ...]
    files: tuple[Path, ...]

    def of(self, asked: Sequence[RunItem]) -> "RunItems":
        """Select some of the episodes."""
        keys = {key for item in asked for key in item.keys}
        targets = tuple(target for target in self.targets if target.key in keys)
        return RunItems(asked=tuple(asked), targets=targets, files=self.files)


def ids_in(path: Path) -> set[str]:
    """Read the ids of a split: a JSON list, or one per line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        plain = json.loads(text) if text.lstrip().startswith(("[", "{")) else text.split()
    except (OSError, ValueError) as error:
        raise SuiteError(f"{path}: cannot be read as a list of ids: {error}") from error
    ids = {str(entry) for entry in plain}
    if not ids:
        raise SuiteError(f"{path}: names no id")
    return ids


def is_named(item: str, wanted: set[str]) -> bool:
    """Whether the item is selected. For HSRI's SEGMENT#SEED, the segment's name is enough."""
    return item in wanted or item.partition("#")[0] in wanted
