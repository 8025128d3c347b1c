"""EgoNormia: best action, justification and sensible actions."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from norm_core.engines.prompt_file import load_prompt_file
from norm_core.files.data_files import shipped_file
from norm_core.records.decision import Norm, OtherAgent, Viewpoint
from norm_core.records.episode import Query
from norm_core.records.record import record
from scoring.figures import Figure, estimate_share
from sim_replays.items.clip import Shot, find_pictures_folder, list_shots_by_second
from sim_replays.items.dataset_files import read_entries
from sim_replays.items.run_config import RunConfig, RunItem, RunItems
from sim_replays.items.target import Predictions, SuiteError, Target, compute_iou, find_first_pick, find_picks
from sim_replays.suites.controls import choose_best_position, make_fixed_control, score_uniform_choice
from sim_replays.suites.suite import Suite

TASKS = ("action", "justification", "sensible")
COLUMNS = ("both", "action", "justification", "sensible")

_TEXTS = load_prompt_file("egonormia_prompts", "sim_replays.suites").texts
_NONE = '""'  # An empty string stands for none of the options.
_NOT_STATED = "none stated"


class EgoNormiaSetting(StrEnum):
    """The input besides the options."""

    BLIND = "blind"
    PIPELINE = "pipeline"  # a text description of the scene
    VIDEO = "video"


@record
class EgoNormiaItem:
    """One scene with its options, without labels. Actions and justifications are shuffled independently."""

    uid: str
    source: str
    scene: str
    actions: tuple[str, ...]
    justifications: tuple[str, ...]
    action_order: tuple[int, ...]
    justification_order: tuple[int, ...]


@record
class EgoNormiaLabel:
    """The right answers, as indices in the dataset's own order of options."""

    uid: str
    source: str
    correct: int
    sensible: frozenset[int]
    norm: str  # category of the norm that the right action serves
    options: int = 5
    activity: str = ""

    @property
    def targets(self) -> list[Target]:
        """The targets of the three questions."""
        right = {"action": (self.correct,), "justification": (self.correct,), "sensible": tuple(sorted(self.sensible))}
        return [
            Target(
                id=self.uid,
                task=task,
                group=self.source,
                options=self.options,
                right=right[task],
                several=task == "sensible",
                by={"norm": self.norm, "activity": self.activity or _NOT_STATED},
            )
            for task in TASKS
        ]


def read(path: Path, seed: int = 0) -> tuple[list[EgoNormiaItem], list[EgoNormiaLabel]]:
    """Read the items, with options shuffled by the seed, and their labels. A folder must hold one JSON file."""
    pairs: dict[str, tuple[EgoNormiaItem, EgoNormiaLabel]] = {}
    for where, entry in read_entries(find_file(path)):
        try:
            uid = str(entry["id"])
            pair = _read_pair(uid, entry, seed)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SuiteError(
                f"{where}: is not an item of EgoNormia: {type(error).__name__}: {error}; correct or remove it"
            ) from error
        if uid in pairs:
            raise SuiteError(f"{where}: the item {uid} stands in {path} twice; remove one")
        pairs[uid] = pair
    if not pairs:
        raise SuiteError(f"{path}: holds no items of EgoNormia; name the file or folder of its data")
    return [item for item, _ in pairs.values()], [label for _, label in pairs.values()]


def find_file(path: Path) -> Path:
    """Return the file of the dataset: the path itself, or the only JSON file in it."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise SuiteError(f"{path}: there is no such file or folder; check the path")
    files_here = sorted(path.glob("*.json")) or sorted(path.glob("*.jsonl"))
    if len(files_here) != 1:
        names = ", ".join(file.name for file in files_here) or "none"
        raise SuiteError(f"{path}: should hold one JSON file, and has {names}; name the file itself")
    return files_here[0]


def find_source(uid: str) -> str:
    """Return the video of an item; the ids of items of one video differ after its name."""
    return re.sub(r"_\d+(_\d+)?$", "", uid)


def _read_pair(uid: str, entry: dict[str, Any], seed: int) -> tuple[EgoNormiaItem, EgoNormiaLabel]:
    """Return an item with shuffled options, and its label.

    Raises ValueError or another error of lookup if the entry is invalid.
    """
    count = len(entry["behaviors"])
    if len(entry["justifications"]) != count:
        raise ValueError(f"{count} behaviors and {len(entry['justifications'])} justifications")
    if outside := [index for index in (entry["correct"], *entry["sensibles"]) if not 0 <= int(index) < count]:
        raise ValueError(f"there is no behavior {outside[0]} among {count}")
    # A shared order would reveal the justification.
    action_order = _draw_order(f"{seed}:actions:{uid}", count)
    justification_order = _draw_order(f"{seed}:justifications:{uid}", count)
    item = EgoNormiaItem(
        uid=uid,
        source=find_source(uid),
        scene=(entry.get("desc") or "").strip(),
        actions=tuple(entry["behaviors"][index] for index in action_order),
        justifications=tuple(entry["justifications"][index] for index in justification_order),
        action_order=action_order,
        justification_order=justification_order,
    )
    label = EgoNormiaLabel(
        uid=uid,
        source=item.source,
        correct=int(entry["correct"]),
        sensible=frozenset(map(int, entry["sensibles"])),
        norm=_find_norm(entry.get("taxonomy"), int(entry["correct"])),
        options=count,
        activity=str(entry.get("activity") or entry.get("activity_category") or ""),
    )
    return item, label


def _draw_order(seed: str, count: int) -> tuple[int, ...]:
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return tuple(order)


def _find_norm(taxonomy: Any, option_index: int) -> str:
    """Return the first known norm of an option, in an object by index or in a list; of "A/B", A."""
    names_by_index = taxonomy
    if not isinstance(taxonomy, dict):
        names_by_index = {str(index): names for index, names in enumerate(taxonomy or ())}
    names = names_by_index.get(str(option_index)) or ()
    words = (str(name).partition("/")[0].casefold() for name in ([names] if isinstance(names, str) else names))
    return next((word for word in words if word in set(Norm)), _NOT_STATED)


def make_query(
    item: EgoNormiaItem, setting: EgoNormiaSetting, task: str, others: Sequence[OtherAgent] | None = ()
) -> Query:
    """Make the query of a task; if `others` is None, the robot observes them."""
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


def make_bare_query(item: EgoNormiaItem, setting: EgoNormiaSetting, task: str) -> Query:
    """Make a query of the whole prompt of the paper, where the empty string means none of the options."""
    scene = _TEXTS["scene"][setting.value].format(_TEXTS["depicts"][task], item.scene)
    texts = item.justifications if task == "justification" else item.actions
    options = "\n".join(f"{number}. {option or _NONE}" for number, option in enumerate(texts, 1))
    return replace(
        make_query(item, EgoNormiaSetting.BLIND, task),
        question=f"{scene}\n\n{_TEXTS['asked'][task].format(chosen='{chosen action}', options=options)}",
        style="number_list" if task == "sensible" else "number",
    )


def make_items(run_config: RunConfig) -> RunItems:
    """Make an episode of each scene, with all three questions."""
    data = Path(run_config.data)
    setting = EgoNormiaSetting(run_config.setting)
    dataset_items, labels = read(data, run_config.seed)
    episodes = []
    for item in dataset_items:
        shots: tuple[Shot, ...] = ()
        others: Sequence[OtherAgent] | None = ()
        if setting is EgoNormiaSetting.VIDEO:
            folder = find_pictures_folder(run_config.pictures, data, ("frames",)) / item.uid
            shots = list_shots_by_second(sorted(folder.glob("*.jpg")))
            others = None
            if not shots:
                raise SuiteError(f"{folder}: has no *.jpg; put one frame a second there, named in order")
        queries = tuple(make_query(item, setting, task, others) for task in TASKS)
        if run_config.bare:
            queries = tuple(make_bare_query(item, setting, task) for task in TASKS)
        orders = {
            query.query_id: item.justification_order if query.task == "justification" else item.action_order
            for query in queries
        }
        episodes.append(RunItem(id=item.uid, queries=queries, shots=shots, orders=orders))
    return RunItems(
        episodes=tuple(episodes),
        targets=tuple(target for label in labels for target in label.targets),
        files=(find_file(data),),
    )


def compute_figures(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute the four figures of the paper. A question without an answer counts as wrong."""
    targets_by_task = {task: [target for target in targets if target.task == task] for task in TASKS}
    hits = {
        task: [float(find_first_pick(target, predictions) in target.right) for target in targets_by_task[task]]
        for task in ("action", "justification")
    }
    hits["both"] = [
        action * justification for action, justification in zip(hits["action"], hits["justification"], strict=True)
    ]
    sensible_targets = targets_by_task["sensible"]
    picks = [find_picks(target, predictions) for target in sensible_targets]
    hits["sensible"] = [
        0.0 if indices is None else compute_iou(frozenset(indices), frozenset(target.right))
        for indices, target in zip(picks, sensible_targets, strict=True)
    ]
    groups = [target.group for target in targets_by_task["action"]]
    return {column: estimate_share(hits[column], groups) for column in COLUMNS}


SUITE = Suite(
    name="egonormia",
    tasks=TASKS,
    columns=COLUMNS,
    settings=tuple(map(str, EgoNormiaSetting)),
    read_targets=lambda path, _: [target for label in read(path)[1] for target in label.targets],
    make_items=make_items,
    compute_figures=compute_figures,
    bare_settings=(EgoNormiaSetting.VIDEO, EgoNormiaSetting.PIPELINE, EgoNormiaSetting.BLIND),
    oracle_texts={EgoNormiaSetting.PIPELINE: "description of the scene"},
    paper_form="tiled",
    controls={"constant choice": make_fixed_control(choose_best_position), "uniform": score_uniform_choice},
    joint_tasks={"both": ("action", "justification")},
    published=shipped_file("sim_replays.suites", "egonormia_published.yaml"),
)
