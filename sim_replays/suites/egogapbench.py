"""EgoGapBench: pick the action open to whoever stands at this viewpoint. Labels lie apart from the items."""

import json
import random
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from norm_core.decision import Duplicable, OtherAgent, Viewpoint
from norm_core.engines.prompt import Image
from norm_core.episode import Answer, Episode, EpisodeEdge, Query
from norm_core.error import TactfulError
from norm_core.outcome import Outcome
from norm_core.record import record
from sim_replays.suites.table import Share, share

SUITE = "egogapbench"
TASK = "eas"


class SuiteError(TactfulError):
    """Benchmark files that are not as published, or not where they were said to be."""


class Setting(StrEnum):
    """What the selector is given of the scene beside the options."""

    BLIND = "blind"
    CAPTIONS = "captions"
    OTHERS = "others"
    OTHERS_CAPTIONS = "others+captions"
    SWAPPED = "swapped"  # the others of another image
    IMAGES = "images"


class Kind(StrEnum):
    """What an option is; motor_* are actions of visible others."""

    CORRECT = "correct"
    MOTOR_A = "motor_a"
    MOTOR_B = "motor_b"
    OFF_VANTAGE = "composition_off"


@record
class Item:
    """One question without its answer. others is what perfect perception would tell."""

    uid: str
    image: str
    file_name: str
    captions: tuple[str, ...]
    others: tuple[OtherAgent, ...]
    options: tuple[str, ...]
    prompt: str


@record
class Label:
    """The answer to an item, and what each of its options is."""

    uid: str
    image: str
    correct: int
    kinds: tuple[Kind, ...]
    direct: bool


@record
class Scorecard:
    """Accuracy, and on items of four options the share of each error, all in percent."""

    overall: Share
    n3: Share
    n4: Share
    direct: Share
    indirect: Share
    motor_intrusion: Share
    off_vantage: Share
    unanswered: int
    right: Mapping[str, bool]


def read(folder: Path, style: str = "default") -> tuple[list[Item], list[Label]]:
    """The items and, apart from them, their labels; style is the dataset's own, default or egoplan."""
    path = folder / f"dev_{style}.bundles.jsonl"
    try:
        bundles = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        pairs = [_pair(bundle, entry) for bundle in bundles for entry in bundle["mcq_items"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SuiteError(f"{path}: is not EgoGapBench's file: {type(error).__name__}: {error}") from error
    return [item for item, _ in pairs], [label for _, label in pairs]


def query(item: Item, setting: Setting, others: Sequence[OtherAgent] = (), *, style: str = "", ask: str = "") -> Query:
    """The item as a query; others are another image's where they are swapped, ask is a prompt in place of ours."""
    given = {Setting.SWAPPED: tuple(others), Setting.OTHERS: item.others, Setting.OTHERS_CAPTIONS: item.others}
    captions = " ".join(item.captions) if setting in {Setting.CAPTIONS, Setting.OTHERS_CAPTIONS} else ""
    return Query(
        stamp_ns=0,
        query_id=item.uid,
        episode_id=item.uid,
        task=TASK,
        question=ask,
        style=style,
        options=item.options,
        others_given=setting is not Setting.IMAGES,
        others=given.get(setting, ()),
        viewpoint_given=bool(captions),
        viewpoint=Viewpoint(description=captions),
    )


def episode(item: Item, setting: Setting, start_ns: int, end_ns: int) -> tuple[Episode, Episode]:
    """The beginning and the end of an item in a bag."""
    begin, end = (
        Episode(
            stamp_ns=stamp_ns,
            episode_id=item.uid,
            state=edge,
            suite=SUITE,
            setting=setting,
            start_ns=start_ns,
            end_ns=end_ns,
        )
        for stamp_ns, edge in ((start_ns, EpisodeEdge.BEGIN), (end_ns, EpisodeEdge.END))
    )
    return begin, end


def picture(item: Item, folder: Path) -> Image:
    """The item's picture by its file name, from a folder of COCO train2017."""
    try:
        return Image(jpeg=(folder / item.file_name).read_bytes())
    except OSError as error:
        raise SuiteError(f"{folder / item.file_name}: cannot be read: get it from COCO train2017") from error


def swapped(items: Sequence[Item], seed: int) -> dict[str, tuple[OtherAgent, ...]]:
    """For each image the others of a different one: a cycle through all images in an order drawn by seed."""
    others = {item.image: item.others for item in items}
    order = sorted(others)
    random.Random(seed).shuffle(order)
    return {image: others[order[place - 1]] for place, image in enumerate(order)}


def score(labels: Sequence[Label], answers: Mapping[str, Answer]) -> Scorecard:
    """The suite's metrics; an item without an answer counts as wrong."""
    picked = {label.uid: _picked(answers.get(label.uid)) for label in labels}
    right = {label.uid: picked[label.uid] == label.correct for label in labels}

    def of(subset: list[Label], kinds: set[Kind]) -> Share:
        hits = [
            0.0 if (choice := picked[label.uid]) is None else float(label.kinds[choice] in kinds) for label in subset
        ]
        return share(hits, [label.image for label in subset])

    correct, motor = {Kind.CORRECT}, {Kind.MOTOR_A, Kind.MOTOR_B}
    four = [label for label in labels if len(label.kinds) == 4]
    return Scorecard(
        overall=of(list(labels), correct),
        n3=of([label for label in labels if len(label.kinds) == 3], correct),
        n4=of(four, correct),
        direct=of([label for label in labels if label.direct], correct),
        indirect=of([label for label in labels if not label.direct], correct),
        motor_intrusion=of(four, motor),
        off_vantage=of(four, {Kind.OFF_VANTAGE}),
        unanswered=sum(choice is None for choice in picked.values()),
        right=right,
    )


def _picked(answer: Answer | None) -> int | None:
    return answer.chosen[0] if answer and answer.outcome is Outcome.ANSWERED and answer.chosen else None


def _pair(bundle: dict[str, Any], entry: dict[str, Any]) -> tuple[Item, Label]:
    letters = sorted(entry["options"])
    image = str(bundle["image_id"])
    item = Item(
        uid=entry["uid"],
        image=image,
        file_name=bundle["file_name"],
        captions=tuple(bundle["captions"]),
        others=tuple(
            OtherAgent(
                agent_id=name,
                role=agent["role"],
                appearance=agent["appearance"],
                doing=agent["engagement"],
                duplicable=Duplicable.NO if "single" in agent["singleton_type"] else Duplicable.UNKNOWN,
            )
            for name, agent in sorted(bundle["agents"].items())
        ),
        options=tuple(entry["options"][letter] for letter in letters),
        prompt=entry["eval_prompt"],
    )
    label = Label(
        uid=entry["uid"],
        image=image,
        correct=letters.index(entry["correct_letter"]),
        kinds=tuple(Kind(entry["option_labels"][letter]) for letter in letters),
        direct=entry["cand_kind"] == "direct",
    )
    return item, label
