"""Read EgoNormia's scenes and, separately, their labels."""

import random
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from action_selector.retrieve.precedents import Precedent
from norm_core.records.decision import Norm
from norm_core.records.record import record
from sim_replays.suites.dataset_files import entries
from sim_replays.suites.target import SuiteError, Target

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
    found = sorted(path.glob("*.json")) or sorted(path.glob("*.jsonl"))
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise SuiteError(f"{path}: should hold one JSON file, and has {names}: name the file itself")
    return found[0]


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
