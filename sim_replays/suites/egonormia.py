"""EgoNormia: best action, justification and sensible actions."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from action_selector.retrieval import Precedent
from norm_core.engines.prompt_file import load_prompt_file
from norm_core.files.data_files import shipped_file
from norm_core.records.decision import Norm, OtherAgent, Viewpoint
from norm_core.records.episode import Query
from norm_core.records.record import record
from scoring.figures import Figure, estimate_share
from sim_replays.items.clip import Shot, one_a_second, pictures_folder
from sim_replays.items.dataset_files import entries
from sim_replays.items.run_config import RunConfig, RunItem, RunItems
from sim_replays.items.target import Predictions, SuiteError, Target, first_pick, intersection_over_union, picks_target
from sim_replays.suites.controls import best_constant, once, uniform
from sim_replays.suites.suite import Suite

TASKS = ("action", "justification", "sensible")


class EgoNormiaSetting(StrEnum):
    """The input besides the options."""

    BLIND = "blind"
    PIPELINE = "pipeline"  # a text description of the scene
    VIDEO = "video"


@record
class EgoNormiaItem:
    """One scene with its options, actions and justifications shuffled independently, without labels."""

    uid: str
    source: str
    scene: str
    actions: tuple[str, ...]
    justifications: tuple[str, ...]
    action_order: tuple[int, ...]
    justification_order: tuple[int, ...]


@record
class EgoNormiaLabel:
    """The answers in the dataset's own order."""

    uid: str
    source: str
    correct: int
    sensible: frozenset[int]
    norm: str  # the category of the norm that the right action serves
    options: int = 5
    activity: str = ""

    @property
    def targets(self) -> list[Target]:
        """Convert the three questions to the target type of all scorers."""
        right = {"action": (self.correct,), "justification": (self.correct,), "sensible": tuple(sorted(self.sensible))}
        return [
            Target(
                id=self.uid,
                task=task,
                group=self.source,
                options=self.options,
                right=right[task],
                several=task == "sensible",
                by={"norm": self.norm, "activity": self.activity or "none stated"},
            )
            for task in TASKS
        ]


def read(path: Path, seed: int = 0) -> tuple[list[EgoNormiaItem], list[EgoNormiaLabel]]:
    """Read the items, shuffled by seed, and their labels in file order. A folder holds one JSON file."""
    pairs: dict[str, tuple[EgoNormiaItem, EgoNormiaLabel]] = {}
    for where, entry in entries(file_of(path)):
        try:
            uid = str(entry["id"])
            pair = _pair(uid, entry, seed)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SuiteError(
                f"{where}: is no item of EgoNormia: {type(error).__name__}: {error}; correct or remove it"
            ) from error
        if uid in pairs:
            raise SuiteError(f"{where}: the item {uid} stands in {path} twice; remove one")
        pairs[uid] = pair
    if not pairs:
        raise SuiteError(f"{path}: holds no items of EgoNormia; name the file or folder of its data")
    return [item for item, _ in pairs.values()], [label for _, label in pairs.values()]


def file_of(path: Path) -> Path:
    """Find the dataset's file: the path itself, or the only JSON file in it."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise SuiteError(f"{path}: there is no such file or folder; check the path")
    files_here = sorted(path.glob("*.json")) or sorted(path.glob("*.jsonl"))
    if len(files_here) != 1:
        names = ", ".join(file.name for file in files_here) or "none"
        raise SuiteError(f"{path}: should hold one JSON file, and has {names}: name the file itself")
    return files_here[0]


def precedents(items: Sequence[EgoNormiaItem], labels: Sequence[EgoNormiaLabel]) -> list[Precedent]:
    """Convert items and answers to precedents, to index one split for another."""
    stored = []
    for item, label in zip(items, labels, strict=True):
        action = item.actions[item.action_order.index(label.correct)]
        reason = item.justifications[item.justification_order.index(label.correct)]
        stored.append(Precedent(source=item.source, scene=item.scene, action=action, justification=reason))
    return stored


def halves(
    items: Sequence[EgoNormiaItem], labels: Sequence[EgoNormiaLabel], seed: int = 0
) -> tuple[tuple[list[EgoNormiaItem], list[EgoNormiaLabel]], tuple[list[EgoNormiaItem], list[EgoNormiaLabel]]]:
    """Split each activity's items into about half for precedents and half for questions.

    Items of one video stay in one half, so that no video helps itself.
    """
    sources: dict[str, set[str]] = {}
    for label in labels:
        sources.setdefault(label.activity, set()).add(label.source)
    taken: set[str] = set()
    for activity in sorted(sources):
        left = sorted(sources[activity] - taken)
        random.Random(f"{seed}:{activity}").shuffle(left)
        taken |= set(left[: len(left) // 2])
    pairs = list(zip(items, labels, strict=True))
    split = [[pair for pair in pairs if (pair[1].source in taken) is is_taken] for is_taken in (True, False)]
    fitted, asked = [([item for item, _ in half], [label for _, label in half]) for half in split]
    if not fitted[0]:
        raise SuiteError(
            "precedents need items of two videos or more of one activity, because half are held out; name more data"
        )
    return fitted, asked


def source_of(uid: str) -> str:
    """Return an item's video; items of one video differ after its name."""
    return re.sub(r"_\d+(_\d+)?$", "", uid)


def _pair(uid: str, entry: dict[str, Any], seed: int) -> tuple[EgoNormiaItem, EgoNormiaLabel]:
    count = len(entry["behaviors"])
    if len(entry["justifications"]) != count:
        raise ValueError(f"{count} behaviors and {len(entry['justifications'])} justifications")
    if outside := [place for place in (entry["correct"], *entry["sensibles"]) if not 0 <= int(place) < count]:
        raise ValueError(f"{outside[0]} is no place among {count} behaviors")
    orders = []
    for name in ("actions", "justifications"):  # a shared order would reveal the justification
        order = list(range(count))
        random.Random(f"{seed}:{name}:{uid}").shuffle(order)
        orders.append(tuple(order))
    item = EgoNormiaItem(
        uid=uid,
        source=source_of(uid),
        scene=(entry.get("desc") or "").strip(),
        actions=tuple(entry["behaviors"][place] for place in orders[0]),
        justifications=tuple(entry["justifications"][place] for place in orders[1]),
        action_order=orders[0],
        justification_order=orders[1],
    )
    label = EgoNormiaLabel(
        uid=uid,
        source=item.source,
        correct=int(entry["correct"]),
        sensible=frozenset(map(int, entry["sensibles"])),
        norm=_norm_of(entry.get("taxonomy"), int(entry["correct"])),
        options=count,
        activity=str(entry.get("activity") or entry.get("activity_category") or ""),
    )
    return item, label


def _norm_of(taxonomy: Any, place: int) -> str:
    """Return the first known norm of an option, in an object by position or a list; of "A/B", A."""
    by_place = taxonomy if isinstance(taxonomy, dict) else {str(at): names for at, names in enumerate(taxonomy or ())}
    names = by_place.get(str(place)) or ()
    words = (str(name).partition("/")[0].casefold() for name in ([names] if isinstance(names, str) else names))
    return next((word for word in words if word in set(Norm)), "none stated")


def query(item: EgoNormiaItem, setting: EgoNormiaSetting, task: str, others: Sequence[OtherAgent] | None = ()) -> Query:
    """Make a query for the task action, justification or sensible. None for `others` means "observe them"."""
    scene = item.scene if setting is EgoNormiaSetting.PIPELINE else ""
    return Query(
        stamp_ns=0,
        frame_id=item.source,
        query_id=f"{item.uid}:{task}",
        episode_id=item.uid,
        task=task,
        options=item.actions,
        justifications=item.justifications if task == "justification" else (),
        several=task == "sensible",
        others_given=others is not None,
        others=tuple(others or ()),
        viewpoint_given=bool(scene),
        viewpoint=Viewpoint(description=scene),
    )


_NONE = '""'  # an empty string, which stands for none of the options
_TEXTS = load_prompt_file("egonormia_prompts", "sim_replays.suites").texts


def bare_query(item: EgoNormiaItem, setting: EgoNormiaSetting, task: str) -> Query:
    """Make a query of the paper's whole prompt. The empty string, which means none of them, is shown as such."""
    scene = _TEXTS["scene"][setting.value].format(_TEXTS["depicts"][task], item.scene)
    offered = item.justifications if task == "justification" else item.actions
    options = "\n".join(f"{number}. {option or _NONE}" for number, option in enumerate(offered, 1))
    return replace(
        query(item, EgoNormiaSetting.BLIND, task),
        question=f"{scene}\n\n{_TEXTS['asked'][task].format(chosen='{chosen action}', options=options)}",
        style="number_list" if task == "sensible" else "number",
    )


def items(asking: RunConfig) -> RunItems:
    """Make one episode per scene, with all three questions."""
    data = Path(asking.data)
    setting = EgoNormiaSetting(asking.setting)
    own_items, labels = read(data, asking.seed)
    if asking.precedents:
        own_items, labels = halves(own_items, labels, asking.seed)[1]
    asked = []
    for item in own_items:
        shots: tuple[Shot, ...] = ()
        others: Sequence[OtherAgent] | None = ()
        if setting is EgoNormiaSetting.VIDEO:
            folder = pictures_folder(asking.pictures, data, ("frames",)) / item.uid
            shots, others = one_a_second(sorted(folder.glob("*.jpg"))), None
            if not shots:
                raise SuiteError(f"{folder}: holds no *.jpg: one frame a second of the clip, named in their order")
        queries = tuple(query(item, setting, task, others) for task in TASKS)
        if asking.bare:
            queries = tuple(bare_query(item, setting, task) for task in TASKS)
        orders = {
            query.query_id: item.justification_order if query.task == "justification" else item.action_order
            for query in queries
        }
        asked.append(RunItem(id=item.uid, queries=queries, shots=shots, orders=orders))
    return RunItems(
        asked=tuple(asked),
        targets=tuple(target for label in labels for target in label.targets),
        files=(file_of(data),),
    )


COLUMNS = ("both", "action", "justification", "sensible")


def figures(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute the paper's four figures from answers in the dataset's order. No answer counts as wrong."""
    by_task = {task: [target for target in targets if target.task == task] for task in TASKS}
    hits = {
        task: [float(first_pick(target, predictions) in target.right) for target in by_task[task]]
        for task in ("action", "justification")
    }
    hits["both"] = [float(a and b) for a, b in zip(hits["action"], hits["justification"], strict=True)]
    hits["sensible"] = [
        0.0
        if (picks := picks_target(target, predictions)) is None
        else intersection_over_union(frozenset(picks), frozenset(target.right))
        for target in by_task["sensible"]
    ]
    groups = [target.group for target in by_task["action"]]
    return {column: estimate_share(hits[column], groups) for column in COLUMNS}


SUITE = Suite(
    name="egonormia",
    tasks=TASKS,
    columns=COLUMNS,
    settings=tuple(map(str, EgoNormiaSetting)),
    read=lambda path, _: [target for label in read(path)[1] for target in label.targets],
    items=items,
    figures=figures,
    bare_settings=(EgoNormiaSetting.VIDEO, EgoNormiaSetting.PIPELINE, EgoNormiaSetting.BLIND),
    given={EgoNormiaSetting.PIPELINE: "description of the scene"},
    paper_form="tiled",
    controls={"constant choice": once(best_constant), "uniform": uniform},
    broken_down_by=("norm", "activity"),
    joint={"both": ("action", "justification")},
    published=shipped_file("sim_replays.suites", "egonormia_published.yaml"),
)
