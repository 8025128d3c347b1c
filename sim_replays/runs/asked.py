"""The questions of a suite as they go into a bag, without any label."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from norm_core.config import Config
from norm_core.decision import OtherAgent
from norm_core.episode import Query
from norm_core.record import record
from sim_replays.suites import egogapbench, egonormia
from sim_replays.suites.egogapbench import EGOGAPBENCH
from sim_replays.suites.egonormia import EGONORMIA
from sim_replays.suites.target import Suite, SuiteError, Target

S = TypeVar("S", egogapbench.Setting, egonormia.Setting)


class Asking(Config):
    """What is asked of which data, and what is given of the scene; all of it goes into the run's identity."""

    suite: str
    data: str
    setting: str
    style: Literal["default", "egoplan", "exclusion"] = "default"
    pictures: str = ""
    sampling: Literal["robot", "paper"] = "robot"
    seed: int = 0
    limit: int = 0


@record
class Asked:
    """One item: its questions, its pictures in the order of time, and for each question what stood where."""

    id: str
    queries: tuple[Query, ...]
    pictures: tuple[Path, ...] = ()
    orders: Mapping[str, tuple[int, ...]]


@record
class Material:
    """All that a run asks, and what is right, which stays out of the bag."""

    suite: Suite
    asked: tuple[Asked, ...]
    targets: tuple[Target, ...]
    files: tuple[Path, ...]


def material(asking: Asking) -> Material:
    """The items of the data, the first `limit` of them where that is above 0."""
    if asking.suite not in _MADE:
        known = " and ".join(_MADE)
        raise SuiteError(f"{asking.suite} can be scored, and not yet run: no node answers it; {known} can be run")
    made = _MADE[asking.suite](asking)
    if not asking.limit:
        return made
    asked = made.asked[: asking.limit]
    kept = {one.id for one in asked}
    targets = tuple(target for target in made.targets if target.id in kept)
    return Material(suite=made.suite, asked=asked, targets=targets, files=made.files)


def _egogapbench(asking: Asking) -> Material:
    data = Path(asking.data)
    setting = _setting(egogapbench.Setting, asking.setting)
    items, labels = egogapbench.read(data, asking.style)
    swapped = egogapbench.swapped(items, asking.seed)
    if setting is egogapbench.Setting.SWAPPED and len(swapped) < 2:
        raise SuiteError(f"{data}: holds one image, and others cannot be swapped between fewer than two")
    asked = []
    for item in items:
        query = egogapbench.query(item, setting, swapped[item.image], style=asking.style)
        pictures: tuple[Path, ...] = ()
        if setting is egogapbench.Setting.IMAGES:
            pictures = (_found(_pictures(asking, data, ("train2017", "images")), item.file_name),)
        orders = {item.uid: tuple(range(len(item.options)))}
        asked.append(Asked(id=item.uid, queries=(query,), pictures=pictures, orders=orders))
    return Material(
        suite=EGOGAPBENCH,
        asked=tuple(asked),
        targets=tuple(label.target for label in labels),
        files=tuple(egogapbench.files(data, asking.style)),
    )


def _egonormia(asking: Asking) -> Material:
    data = Path(asking.data)
    setting = _setting(egonormia.Setting, asking.setting)
    items, labels = egonormia.read(data, asking.seed)
    asked = []
    for item in items:
        pictures: tuple[Path, ...] = ()
        others: Sequence[OtherAgent] | None = ()
        if setting is egonormia.Setting.VIDEO:
            folder = _pictures(asking, data, ("frames",)) / item.uid
            pictures, others = tuple(sorted(folder.glob("*.jpg"))), None
            if not pictures:
                raise SuiteError(f"{folder}: holds no *.jpg: one frame a second of the clip, named in their order")
        queries = tuple(egonormia.query(item, setting, task, others) for task in egonormia.TASKS)
        orders = {
            query.query_id: item.justification_order if query.task == "justification" else item.action_order
            for query in queries
        }
        asked.append(Asked(id=item.uid, queries=queries, pictures=pictures, orders=orders))
    return Material(
        suite=EGONORMIA,
        asked=tuple(asked),
        targets=tuple(target for label in labels for target in label.targets),
        files=(egonormia.file_of(data),),
    )


_MADE: dict[str, Callable[[Asking], Material]] = {"egogapbench": _egogapbench, "egonormia": _egonormia}

SETTINGS = {
    "egogapbench": tuple(map(str, egogapbench.Setting)),
    "egonormia": tuple(map(str, egonormia.Setting)),
}


def _setting(kind: type[S], name: str) -> S:
    if name not in set(kind):
        raise SuiteError(f"there is no setting {name!r}; the settings are {', '.join(kind)}")
    return kind(name)


def _pictures(asking: Asking, data: Path, names: tuple[str, ...]) -> Path:
    """Where the pictures lie: as said, else in a folder of a usual name beside the data."""
    if asking.pictures:
        return Path(asking.pictures)
    beside = data if data.is_dir() else data.parent
    found = next((beside / name for name in names if (beside / name).is_dir()), None)
    if found is None:
        wanted = " or ".join(str(beside / name) for name in names)
        raise SuiteError(f"there are no pictures in {wanted}: name their folder with --pictures")
    return found


def _found(folder: Path, name: str) -> Path:
    path = folder / name
    if not name or not path.is_file():
        raise SuiteError(f"{path}: is not there: get it from COCO train2017")
    return path
