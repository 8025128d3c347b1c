"""Make the questions of a suite for a bag, without any label."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from norm_core.records.decision import OtherAgent
from sim_replays.runs.items import clip_items
from sim_replays.runs.items.clip import Shot, one_a_second
from sim_replays.runs.run_config import RunConfig, RunItem, RunItems, chosen_setting, ids_in, is_named
from sim_replays.suites import egogapbench, egonormia
from sim_replays.suites.egogapbench import EGOGAPBENCH
from sim_replays.suites.egonormia import EGONORMIA
from sim_replays.suites.predictions import prediction_by_name
from sim_replays.suites.target import SuiteError

__all__ = ["SETTINGS", "RunConfig", "RunItem", "RunItems", "items_of_suite"]


def items_of_suite(asking: RunConfig) -> RunItems:
    """Make the items: the named ones if any are named, and of them the first `limit` if it is above 0."""
    if asking.suite not in _MADE:
        raise SuiteError(f"{asking.suite} can be scored, and not yet run; {' and '.join(_MADE)} can be run")
    made = _MADE[asking.suite](asking)
    asked = made.asked
    if asking.only:
        wanted = ids_in(Path(asking.only))
        ids = {item.item or item.id for item in asked}
        if unknown := sorted(wanted - ids - {name.partition("#")[0] for name in ids}):
            raise SuiteError(f"{asking.only}: names ids that are not in {asking.data}: {prediction_by_name(unknown)}")
        asked = tuple(item for item in asked if is_named(item.item or item.id, wanted))
    if asking.limit:
        first = list(dict.fromkeys(item.item or item.id for item in asked))[: asking.limit]
        asked = tuple(item for item in asked if (item.item or item.id) in first)
    made = made if asked == made.asked else made.of(asked)
    return replace(made, files=(*made.files, Path(asking.only))) if asking.only else made


def _egogapbench(asking: RunConfig) -> RunItems:
    data = Path(asking.data)
    setting = chosen_setting(egogapbench.EgoGapSetting, asking.setting)
    items, labels = egogapbench.read(data, asking.style)
    swapped = egogapbench.swapped(items, asking.seed)
    if setting is egogapbench.EgoGapSetting.SWAPPED and len(swapped) < 2:
        raise SuiteError(f"{data}: holds one image, and others cannot be swapped between fewer than two")
    asked = []
    for item in items:
        query = egogapbench.query(item, setting, swapped[item.image], style=asking.style)
        shots: tuple[Shot, ...] = ()
        if setting is egogapbench.EgoGapSetting.IMAGES:
            shots = one_a_second([_found(_pictures(asking, data, ("train2017", "images")), item.file_name)])
        orders = {item.uid: tuple(range(len(item.options)))}
        asked.append(RunItem(id=item.uid, queries=(query,), shots=shots, orders=orders))
    return RunItems(
        suite=EGOGAPBENCH,
        asked=tuple(asked),
        targets=tuple(label.target for label in labels),
        files=tuple(egogapbench.files(data, asking.style)),
    )


def _egonormia(asking: RunConfig) -> RunItems:
    data = Path(asking.data)
    setting = chosen_setting(egonormia.EgoNormiaSetting, asking.setting)
    items, labels = egonormia.read(data, asking.seed)
    if asking.precedents:
        items, labels = egonormia.halves(items, labels, asking.seed)[1]
    asked = []
    for item in items:
        shots: tuple[Shot, ...] = ()
        others: Sequence[OtherAgent] | None = ()
        if setting is egonormia.EgoNormiaSetting.VIDEO:
            folder = _pictures(asking, data, ("frames",)) / item.uid
            shots, others = one_a_second(sorted(folder.glob("*.jpg"))), None
            if not shots:
                raise SuiteError(f"{folder}: holds no *.jpg: one frame a second of the clip, named in their order")
        queries = tuple(egonormia.query(item, setting, task, others) for task in egonormia.TASKS)
        orders = {
            query.query_id: item.justification_order if query.task == "justification" else item.action_order
            for query in queries
        }
        asked.append(RunItem(id=item.uid, queries=queries, shots=shots, orders=orders))
    return RunItems(
        suite=EGONORMIA,
        asked=tuple(asked),
        targets=tuple(target for label in labels for target in label.targets),
        files=(egonormia.file_of(data),),
    )


_MADE: dict[str, Callable[[RunConfig], RunItems]] = {
    "egogapbench": _egogapbench,
    "egonormia": _egonormia,
    "videonorms": clip_items.videonorms_items,
    "hsri": clip_items.hsri_items,
}

SETTINGS = {
    "egogapbench": tuple(map(str, egogapbench.EgoGapSetting)),
    "egonormia": tuple(map(str, egonormia.EgoNormiaSetting)),
    "videonorms": tuple(map(str, clip_items.NormSetting)),
    "hsri": tuple(map(str, clip_items.SegmentSetting)),
}


def _pictures(asking: RunConfig, data: Path, names: tuple[str, ...]) -> Path:
    """Find the folder of images: as configured, otherwise one with a usual name beside the data."""
    if asking.pictures:
        return Path(asking.pictures)
    beside = data if data.is_dir() else data.parent
    folder = next((beside / name for name in names if (beside / name).is_dir()), None)
    if folder is None:
        wanted = " or ".join(str(beside / name) for name in names)
        raise SuiteError(f"there are no pictures in {wanted}: name their folder with --pictures")
    return folder


def _found(folder: Path, name: str) -> Path:
    path = folder / name
    if not name or not path.is_file():
        raise SuiteError(f"{path}: is not there: get it from COCO train2017")
    return path
