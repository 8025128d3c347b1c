"""What a run asks, as it goes into a bag: items, their pictures and speech, and apart from them what is right."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from norm_core.records.episode import Query
from norm_core.records.record import record
from norm_core.records.speech import Utterance
from norm_core.runtime.config import Config
from sim_replays.runs.items.clip import Shot
from sim_replays.suites.target import Suite, SuiteError, Target

S = TypeVar("S", bound=str)

Frames = Literal["discrete", "tiled", "discrete-shuffled", "tiled-shuffled"]
Precedents = Literal["", "none", "best-5", "random-5"]


class RunConfig(Config):
    """What is asked of which data, and what is given of the scene; all of it goes into the run's identity.

    only is a file of ids, as of a split; precedents other than "" leave half of the items to take them from.
    """

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
    limit: int = 0


@record
class RunItem:
    """One episode: its questions, its pictures and speech in the order of time, and what stood where in each question.

    item is the id that answers are scored under, and where it is empty the episode's own. Utterances are stamped from
    the episode's beginning on.
    """

    id: str
    item: str = ""
    queries: tuple[Query, ...]
    shots: tuple[Shot, ...] = ()
    utterances: tuple[Utterance, ...] = ()
    orders: Mapping[str, tuple[int, ...]]

    @property
    def keys(self) -> set[tuple[str, str]]:
        """What its queries are scored as."""
        return {(self.item or self.id, query.task) for query in self.queries}


@record
class RunItems:
    """All that a run asks, and what is right, which stays out of the bag."""

    suite: Suite
    asked: tuple[RunItem, ...]
    targets: tuple[Target, ...]
    files: tuple[Path, ...]

    def of(self, asked: Sequence[RunItem]) -> "RunItems":
        """The same of some of the episodes alone."""
        kept = {key for one in asked for key in one.keys}
        targets = tuple(target for target in self.targets if target.key in kept)
        return RunItems(suite=self.suite, asked=tuple(asked), targets=targets, files=self.files)


def ids_in(path: Path) -> set[str]:
    """The ids of a split: a JSON list, or a line each."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        plain = json.loads(text) if text.lstrip().startswith(("[", "{")) else text.split()
    except (OSError, ValueError) as error:
        raise SuiteError(f"{path}: cannot be read as a list of ids: {error}") from error
    found = {str(one) for one in plain}
    if not found:
        raise SuiteError(f"{path}: names no id")
    return found


def is_named(item: str, wanted: set[str]) -> bool:
    """Whether the item's id is among those; of HSRI's, SEGMENT#SEED, the segment's name is enough."""
    return item in wanted or item.partition("#")[0] in wanted


def chosen_setting(kind: type[S], name: str) -> S:
    """The setting of that name, or an error that names them all."""
    known = [str(one) for one in kind]  # type: ignore[attr-defined]
    if name not in known:
        raise SuiteError(f"there is no setting {name!r}; the settings are {', '.join(known)}")
    return kind(name)
