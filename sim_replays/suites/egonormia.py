"""EgoNormia: the best action, its justification, and the sensible actions. Labels lie apart from the items."""

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from action_selector.precedents import Precedent
from norm_core.decision import Norm, OtherAgent, Viewpoint
from norm_core.episode import Answer, Episode, EpisodeEdge, Query
from norm_core.outcome import Outcome
from norm_core.record import record
from sim_replays.suites.egogapbench import SuiteError
from sim_replays.suites.table import Share, share

SUITE = "egonormia"


class Setting(StrEnum):
    """What is given beside the options."""

    BLIND = "blind"
    PIPELINE = "pipeline"  # the scene described in text
    VIDEO = "video"


class Fifth(StrEnum):
    """What EgoGapBench's transform puts in the place of the fifth option."""

    NONE = "none"  # as it was: none of the above
    RANDOM = "random"  # an action from another video
    SEEN = "seen"  # an action seen in this one


@record
class Item:
    """One scene with its options as they are offered: actions and justifications shuffled apart, labels left out."""

    uid: str
    source: str
    scene: str
    actions: tuple[str, ...]
    justifications: tuple[str, ...]
    action_order: tuple[int, ...]
    justification_order: tuple[int, ...]
    seen: tuple[str, ...]


@record
class Label:
    """The answers in the dataset's own order."""

    uid: str
    source: str
    correct: int
    sensible: frozenset[int]
    norms: Mapping[int, tuple[Norm, ...]]


@record
class Scorecard:
    """The paper's four figures in percent, and the share of items on which the fifth option was picked."""

    both: Share
    action: Share
    justification: Share
    sensible: Share
    picked_fifth: Share
    unanswered: int


def read(path: Path, seed: int = 0) -> tuple[list[Item], list[Label]]:
    """The items, shuffled by seed, and their labels in the order of the file."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        pairs = [_pair(uid, entry, seed) for uid, entry in entries.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SuiteError(f"{path}: is not EgoNormia's file: {type(error).__name__}: {error}") from error
    return [item for item, _ in pairs], [label for _, label in pairs]


def query(item: Item, setting: Setting, task: str, others: Sequence[OtherAgent] | None = ()) -> Query:
    """One of the tasks action, justification and sensible; None for others lets them be observed."""
    scene = item.scene if setting is Setting.PIPELINE else ""
    return Query(
        stamp_ns=0,
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


def episode(item: Item, setting: Setting, start_ns: int, end_ns: int) -> tuple[Episode, Episode]:
    """The beginning and the end of an item in a bag."""
    common: dict[str, Any] = {"suite": SUITE, "setting": setting, "start_ns": start_ns, "end_ns": end_ns}
    begin = Episode(stamp_ns=start_ns, episode_id=item.uid, state=EpisodeEdge.BEGIN, **common)
    return begin, Episode(stamp_ns=end_ns, episode_id=item.uid, state=EpisodeEdge.END, **common)


def transformed(items: Sequence[Item], fifth: Fifth, seed: int = 0) -> list[Item]:
    """EgoGapBench's transform: the empty option becomes an action seen in this video, or in another one."""
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
    items: Sequence[Item], labels: Sequence[Label], answers: Mapping[str, Answer], *, fifth_is_none: bool = True
) -> Scorecard:
    """The suite's metrics, on answers by query id; a transformed item's fifth option is never right."""
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
    return Scorecard(
        both=share(both, groups),
        action=share(action, groups),
        justification=share(reason, groups),
        sensible=share(overlap, groups),
        picked_fifth=share(fifth, groups),
        unanswered=unanswered,
    )


def intersection_over_union(found: frozenset[int], right: frozenset[int]) -> float:
    """Of the sets; an empty one against an empty one is 1."""
    return len(found & right) / len(found | right) if found | right else 1.0


def mapped_back(chosen: Sequence[int], order: Sequence[int]) -> frozenset[int]:
    """Places in what was offered as places in the dataset; order is what stood where when it was offered."""
    return frozenset(order[place] for place in chosen)


def precedents(items: Sequence[Item], labels: Sequence[Label]) -> list[Precedent]:
    """Items with their answers as precedents, for whoever indexes one split to help with another."""
    found = []
    for item, label in zip(items, labels, strict=True):
        action = item.actions[item.action_order.index(label.correct)]
        reason = item.justifications[item.justification_order.index(label.correct)]
        found.append(Precedent(source=item.source, scene=item.scene, action=action, justification=reason))
    return found


def source_of(uid: str) -> str:
    """The video that an item comes from: several items of one video differ in what follows its name."""
    return re.sub(r"_\d+(_\d+)?$", "", uid)


def _chosen(answer: Answer | None) -> tuple[int, ...]:
    return answer.chosen if answer else ()


def _pair(uid: str, entry: dict[str, Any], seed: int) -> tuple[Item, Label]:
    count = len(entry["behaviors"])
    orders = []
    for name in ("actions", "justifications"):  # apart, as an order shared would tell the reason by its place
        order = list(range(count))
        random.Random(f"{seed}:{name}:{uid}").shuffle(order)
        orders.append(tuple(order))
    # The frames' lines describe what is seen second by second.
    _, _, frames = entry["desc"].partition("\nFrame ")
    seen = re.findall(r"^(?:Frame )?\d+(?:-\d+)?:\s*(.+)$", f"Frame {frames}", re.MULTILINE) if frames else []
    item = Item(
        uid=uid,
        source=source_of(uid),
        scene=entry["desc"].strip(),
        actions=tuple(entry["behaviors"][place] for place in orders[0]),
        justifications=tuple(entry["justifications"][place] for place in orders[1]),
        action_order=orders[0],
        justification_order=orders[1],
        seen=tuple(line.strip() for line in seen),
    )
    label = Label(
        uid=uid,
        source=item.source,
        correct=int(entry["correct"]),
        sensible=frozenset(map(int, entry["sensibles"])),
        norms={int(place): tuple(map(_norm, names)) for place, names in entry.get("taxonomy", {}).items()},
    )
    return item, label


def _norm(name: str) -> Norm:
    return Norm(name.partition("/")[0].casefold())
