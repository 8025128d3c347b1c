"""EgoNormia: best action, justification and sensible actions. Labels are separate from items."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from action_selector.retrieve.precedents import Precedent
from norm_core.evaluation.figures import Figure, share
from norm_core.records.decision import Norm, OtherAgent, Viewpoint
from norm_core.records.episode import Answer, Query
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from sim_replays.suites.dataset_files import entries
from sim_replays.suites.target import Predictions, Suite, SuiteError, Target, first_pick, picks_target

SUITE = "egonormia"
TASKS = ("action", "justification", "sensible")
COLUMNS = ("both", "action", "justification", "sensible")


class EgoNormiaSetting(StrEnum):
    """The input besides the options."""

    BLIND = "blind"
    PIPELINE = "pipeline"  # a text description of the scene
    VIDEO = "video"


class Fifth(StrEnum):
    """The replacement of the fifth option in EgoGapBench's transform."""

    NONE = "none"  # unchanged: none of the above
    RANDOM = "random"  # an action from another video
    SEEN = "seen"  # an action seen in this video


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
    seen: tuple[str, ...]


@record
class EgoNormiaLabel:
    """The answers in the dataset's own order."""

    uid: str
    source: str
    correct: int
    sensible: frozenset[int]
    norms: Mapping[int, tuple[Norm, ...]]
    options: int = 5
    activity: str = ""

    @property
    def targets(self) -> list[Target]:
        """Convert the three questions to the target type of all scorers."""
        norm = next((norm.value for norm in self.norms.get(self.correct, ())), "none stated")
        right = {"action": (self.correct,), "justification": (self.correct,), "sensible": tuple(sorted(self.sensible))}
        return [
            Target(
                id=self.uid,
                task=task,
                group=self.source,
                options=self.options,
                right=right[task],
                several=task == "sensible",
                by={"norm": norm, "activity": self.activity or "none stated"},
            )
            for task in TASKS
        ]


@record
class EgoNormiaScorecard:
    """The paper's four figures, and the share of items with the fifth option chosen, in percent."""

    both: Figure
    action: Figure
    justification: Figure
    sensible: Figure
    picked_fifth: Figure
    unanswered: int


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
    found = sorted(path.glob("*.json")) or sorted(path.glob("*.jsonl"))
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise SuiteError(f"{path}: should hold one JSON file, and has {names}: name the file itself")
    return found[0]


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


def to_egogap_items(items: Sequence[EgoNormiaItem], fifth: Fifth, seed: int = 0) -> list[EgoNormiaItem]:
    """Apply EgoGapBench's transform: replace the empty option by an action from this or another video."""
    if fifth is Fifth.NONE:
        return list(items)
    made = []
    for item in items:
        draw = random.Random(f"{seed}:{fifth}:{item.uid}")
        others = [other for other in items if other.source != item.source and other.seen]
        pool = item.seen if fifth is Fifth.SEEN else draw.choice(others).seen if others else ()
        if "" not in item.actions or not pool:
            continue
        put = draw.choice(pool)
        made.append(replace(item, actions=tuple(put if action == "" else action for action in item.actions)))
    return made


def score(
    items: Sequence[EgoNormiaItem],
    labels: Sequence[EgoNormiaLabel],
    answers: Mapping[str, Answer],
    *,
    fifth_is_none: bool = True,
) -> EgoNormiaScorecard:
    """Compute the suite's metrics from answers by query id. A transformed fifth option is never right."""
    by_uid = {label.uid: label for label in labels}
    groups = [item.source for item in items]
    both, action, reason, overlap, fifth = [], [], [], [], []
    unanswered = 0
    for item in items:
        label = by_uid[item.uid]
        picked = [answers.get(f"{item.uid}:{task}") for task in ("action", "justification", "sensible")]
        unanswered += sum(answer is None or answer.outcome is not Outcome.ANSWERED for answer in picked)
        acts = mapped_back(_chosen(picked[0]), item.action_order)
        reasons = mapped_back(_chosen(picked[1]), item.justification_order)
        right = acts == {label.correct} and (fifth_is_none or label.correct != len(item.actions) - 1)
        action.append(float(right))
        reason.append(float(reasons == {label.correct}))
        both.append(float(right and reasons == {label.correct}))
        fifth.append(float(acts == {len(item.actions) - 1}))
        answered = picked[2] is not None and picked[2].outcome is Outcome.ANSWERED
        found = mapped_back(_chosen(picked[2]), item.action_order)
        overlap.append(intersection_over_union(found, label.sensible) if answered else 0.0)
    return EgoNormiaScorecard(
        both=share(both, groups),
        action=share(action, groups),
        justification=share(reason, groups),
        sensible=share(overlap, groups),
        picked_fifth=share(fifth, groups),
        unanswered=unanswered,
    )


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
        if (found := picks_target(target, predictions)) is None
        else intersection_over_union(frozenset(found), frozenset(target.right))
        for target in by_task["sensible"]
    ]
    groups = [target.group for target in by_task["action"]]
    return {column: share(hits[column], groups) for column in COLUMNS}


EGONORMIA = Suite(
    name=SUITE,
    tasks=TASKS,
    columns=COLUMNS,
    read=lambda path, _: [target for label in read(path)[1] for target in label.targets],
    figures=figures,
    broken_down_by=("norm", "activity"),
    joint={"both": ("action", "justification")},
)


def intersection_over_union(found: frozenset[int], right: frozenset[int]) -> float:
    """Compute intersection over union. Two empty sets give 1."""
    return len(found & right) / len(found | right) if found | right else 1.0


def mapped_back(chosen: Sequence[int], order: Sequence[int]) -> frozenset[int]:
    """Map offered positions to dataset positions; `order` lists what stood at each offered position."""
    return frozenset(order[place] for place in chosen)


def precedents(items: Sequence[EgoNormiaItem], labels: Sequence[EgoNormiaLabel]) -> list[Precedent]:
    """Convert items and answers to precedents, to index one split for another."""
    found = []
    for item, label in zip(items, labels, strict=True):
        action = item.actions[item.action_order.index(label.correct)]
        reason = item.justifications[item.justification_order.index(label.correct)]
        found.append(Precedent(source=item.source, scene=item.scene, action=action, justification=reason))
    return found


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
    split = [[pair for pair in pairs if (pair[1].source in taken) is known] for known in (True, False)]
    known, asked = [([item for item, _ in half], [label for _, label in half]) for half in split]
    if not known[0]:
        raise SuiteError(
            "precedents need items of two videos or more of one activity, because half are held out; name more data"
        )
    return known, asked


def source_of(uid: str) -> str:
    """Return an item's video; items of one video differ after its name."""
    return re.sub(r"_\d+(_\d+)?$", "", uid)


def _chosen(answer: Answer | None) -> tuple[int, ...]:
    return answer.chosen if answer else ()


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
    desc = entry.get("desc") or ""
    # These lines describe the scene second by second.
    _, _, frames = desc.partition("\nFrame ")
    seen = re.findall(r"^(?:Frame )?\d+(?:-\d+)?:\s*(.+)$", f"Frame {frames}", re.MULTILINE) if frames else []
    item = EgoNormiaItem(
        uid=uid,
        source=source_of(uid),
        scene=desc.strip(),
        actions=tuple(entry["behaviors"][place] for place in orders[0]),
        justifications=tuple(entry["justifications"][place] for place in orders[1]),
        action_order=orders[0],
        justification_order=orders[1],
        seen=tuple(line.strip() for line in seen),
    )
    label = EgoNormiaLabel(
        uid=uid,
        source=item.source,
        correct=int(entry["correct"]),
        sensible=frozenset(map(int, entry["sensibles"])),
        norms={place: _norms(names) for place, names in _by_place(entry.get("taxonomy"))},
        options=count,
        activity=str(entry.get("activity") or entry.get("activity_category") or ""),
    )
    return item, label


def _by_place(taxonomy: Any) -> list[tuple[int, Any]]:
    """Index norms by option. The dataset uses an object by position; a list works too."""
    if isinstance(taxonomy, dict):
        return [(int(place), names) for place, names in taxonomy.items()]
    return list(enumerate(taxonomy or ()))


def _norms(names: Any) -> tuple[Norm, ...]:
    """Parse norm categories. "Coordination/Proactivity" counts as the first; unknown names are ignored."""
    known = {norm.value for norm in Norm}
    words = (str(name).partition("/")[0].casefold() for name in ([names] if isinstance(names, str) else names or ()))
    return tuple(Norm(word) for word in words if word in known)
