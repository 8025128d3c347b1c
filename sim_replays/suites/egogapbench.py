"""EgoGapBench: choose the action that is open from this viewpoint."""

import random
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from action_selector.prompts import STYLES
from norm_core.engines.prompt_file import load_prompt_file
from norm_core.files.data_files import shipped_file
from norm_core.records.decision import Duplicable, OtherAgent, Viewpoint
from norm_core.records.episode import Query
from norm_core.records.record import record
from scoring.figures import Figure, estimate_share
from sim_replays.items.clip import Shot, one_a_second, pictures_folder
from sim_replays.items.dataset_files import entries
from sim_replays.items.run_config import RunConfig, RunItem, RunItems
from sim_replays.items.target import Predictions, SuiteError, Target, first_pick
from sim_replays.suites.controls import uniform
from sim_replays.suites.suite import Suite

TASK = "eas"
SUFFIX = ".bundles.jsonl"


class EgoGapSetting(StrEnum):
    """The input besides the options."""

    BLIND = "blind"
    CAPTIONS = "captions"
    OTHERS = "others-given"
    OTHERS_CAPTIONS = "others-and-captions"
    SWAPPED = "others-swapped"  # other agents from another image
    IMAGES = "images"


class EgoGapKind(StrEnum):
    """The kind of an option. motor_* are actions of visible others; unlabelled is any unknown kind."""

    CORRECT = "correct"
    MOTOR_A = "motor_a"
    MOTOR_B = "motor_b"
    OFF_VANTAGE = "composition_off"
    UNKNOWN = "unlabelled"


@record
class EgoGapItem:
    """One question without its answer. `others` is the output of perfect perception."""

    uid: str
    image: str
    file_name: str
    captions: tuple[str, ...]
    others: tuple[OtherAgent, ...]
    options: tuple[str, ...]
    prompt: str


def read(path: Path, style: str = "default") -> tuple[list[EgoGapItem], list[Target]]:
    """Read items and, separately, their right answers, from a file or from a folder's files of a style."""
    pairs: dict[str, tuple[EgoGapItem, Target]] = {}
    for file in files(path, style):
        for where, bundle in entries(file):
            try:
                of_bundle = [_pair(bundle, entry) for entry in bundle["mcq_items"]]
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                raise SuiteError(
                    f"{where}: is no bundle of EgoGapBench: {type(error).__name__}: {error}; correct or remove it"
                ) from error
            for item, target in of_bundle:
                if item.uid in pairs:
                    raise SuiteError(f"{where}: the item {item.uid} stands in {path} twice; remove one")
                pairs[item.uid] = item, target
    if not pairs:
        raise SuiteError(f"{path}: holds no items of EgoGapBench; name the file or folder of its data")
    return [item for item, _ in pairs.values()], [target for _, target in pairs.values()]


def files(path: Path, style: str = "default") -> list[Path]:
    """List the files of a path. In a folder, those whose names contain the style, or the only one."""
    if style not in STYLES:
        raise SuiteError(f"there is no style {style!r}; name one of {', '.join(STYLES)}")
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise SuiteError(f"{path}: there is no such file or folder; check the path")
    files_here = sorted(path.glob(f"*{SUFFIX}")) or sorted(path.glob("*.json*"))
    worded = "egoplan" if style == "egoplan" else "default"
    chosen = [file for file in files_here if worded in file.name] or (files_here if len(files_here) == 1 else [])
    if not chosen:
        names = ", ".join(file.name for file in files_here) or "none"
        raise SuiteError(f"{path}: has no file *{worded}*{SUFFIX}; of such files it has {names}: name the file itself")
    return chosen


def _pair(bundle: dict[str, Any], entry: dict[str, Any]) -> tuple[EgoGapItem, Target]:
    letters = sorted(entry["options"])
    image = str(bundle["image_id"])
    item = EgoGapItem(
        uid=str(entry["uid"]),
        image=image,
        file_name=bundle.get("file_name") or "",
        captions=tuple(bundle.get("captions") or ()),
        others=tuple(_other(name, agent) for name, agent in sorted((bundle.get("agents") or {}).items())),
        options=tuple(entry["options"][letter] for letter in letters),
        prompt=entry.get("eval_prompt") or "",
    )
    kinds = entry.get("option_labels") or {}
    target = Target(
        id=item.uid,
        task=TASK,
        group=image,
        options=len(letters),
        right=(letters.index(entry["correct_letter"]),),
        words=tuple(letters),
        kinds=tuple(_kind(kinds.get(letter), letter == entry["correct_letter"]) for letter in letters),
        by={"directness": str(entry["cand_kind"])} if entry.get("cand_kind") else {},
    )
    return item, target


def _other(name: str, agent: dict[str, Any]) -> OtherAgent:
    return OtherAgent(
        agent_id=name,
        role=agent.get("role") or "",
        appearance=agent.get("appearance") or "",
        doing=agent.get("engagement") or "",
        duplicable=Duplicable.NO if "single" in (agent.get("singleton_type") or "") else Duplicable.UNKNOWN,
    )


def _kind(name: str | None, right: bool) -> EgoGapKind:
    """Find the kind of an option. The right letter comes first, because the figures depend on it."""
    if right:
        return EgoGapKind.CORRECT
    return EgoGapKind(name) if name in set(EgoGapKind) - {EgoGapKind.CORRECT} else EgoGapKind.UNKNOWN


def query(
    item: EgoGapItem, setting: EgoGapSetting, others: Sequence[OtherAgent] = (), *, style: str = "", ask: str = ""
) -> Query:
    """Make a query. `others` come from another image if swapped; `ask` replaces our prompt."""
    shown_others = {
        EgoGapSetting.SWAPPED: tuple(others),
        EgoGapSetting.OTHERS: item.others,
        EgoGapSetting.OTHERS_CAPTIONS: item.others,
    }
    captions = " ".join(item.captions) if setting in {EgoGapSetting.CAPTIONS, EgoGapSetting.OTHERS_CAPTIONS} else ""
    return Query(
        stamp_ns=0,
        query_id=item.uid,
        episode_id=item.uid,
        task=TASK,
        question=ask,
        style=style,
        options=item.options,
        others_given=setting is not EgoGapSetting.IMAGES,
        others=shown_others.get(setting, ()),
        viewpoint_given=bool(captions),
        viewpoint=Viewpoint(description=captions),
    )


_TEXTS = load_prompt_file("egogapbench_prompts", "sim_replays.suites").texts


def bare_query(item: EgoGapItem, style: str) -> Query:
    """Make a query of the dataset's own prompt, which holds the options."""
    if not item.prompt.strip():
        raise SuiteError(f"{item.uid}: carries no eval_prompt, which --bare asks; name data that carries it")
    prompt = f"{item.prompt.rstrip()}\n\n{_TEXTS['exclusion']}\n" if style == "exclusion" else item.prompt
    return query(item, EgoGapSetting.IMAGES, style="json_letter", ask=prompt)


def swapped(items: Sequence[EgoGapItem], seed: int) -> dict[str, tuple[OtherAgent, ...]]:
    """Assign each image the others of a different one, in a random cycle through all images."""
    others = {item.image: item.others for item in items}
    order = sorted(others)
    random.Random(seed).shuffle(order)
    return {image: others[order[place - 1]] for place, image in enumerate(order)}


def items(asking: RunConfig) -> RunItems:
    """Make one episode per question."""
    data = Path(asking.data)
    setting = EgoGapSetting(asking.setting)
    own_items, targets = read(data, asking.style)
    turned = swapped(own_items, asking.seed)
    if setting is EgoGapSetting.SWAPPED and len(turned) < 2:
        raise SuiteError(f"{data}: holds one image, and others cannot be swapped between fewer than two")
    asked = []
    for item in own_items:
        asked_query = (
            bare_query(item, asking.style)
            if asking.bare
            else query(item, setting, turned[item.image], style=asking.style)
        )
        shots: tuple[Shot, ...] = ()
        if setting is EgoGapSetting.IMAGES:
            shots = one_a_second(
                [picture_in(pictures_folder(asking.pictures, data, ("train2017", "images")), item.file_name)]
            )
        orders = {item.uid: tuple(range(len(item.options)))}
        asked.append(RunItem(id=item.uid, queries=(asked_query,), shots=shots, orders=orders))
    return RunItems(
        asked=tuple(asked),
        targets=tuple(targets),
        files=tuple(files(data, asking.style)),
    )


def picture_in(folder: Path, name: str) -> Path:
    """Return the path of a COCO image in a folder."""
    path = folder / name
    if not name or not path.is_file():
        raise SuiteError(f"{path}: is not there: get it from COCO train2017")
    return path


COLUMNS = ("overall", "n3", "n4", "direct", "indirect", "motor_intrusion", "off_vantage")


def figures(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute the suite's metrics. A question without an answer counts as wrong."""

    def of(subset: list[Target], kinds: set[str]) -> Figure:
        picks = [first_pick(target, predictions) for target in subset]
        hits = [
            0.0 if pick is None else float(target.kinds[pick] in kinds)
            for target, pick in zip(subset, picks, strict=True)
        ]
        return estimate_share(hits, [target.group for target in subset])

    correct, motor = {EgoGapKind.CORRECT.value}, {EgoGapKind.MOTOR_A.value, EgoGapKind.MOTOR_B.value}
    four = [target for target in targets if target.options == 4]
    kinds_known = [] if any(EgoGapKind.UNKNOWN in target.kinds for target in four) else four
    labelled = targets if all("directness" in target.by for target in targets) else ()
    by_directness = {
        name: [target for target in labelled if (target.by["directness"] == "direct") is (name == "direct")]
        for name in ("direct", "indirect")
    }
    return {
        "overall": of(list(targets), correct),
        "n3": of([target for target in targets if target.options == 3], correct),
        "n4": of(four, correct),
        **{name: of(subset, correct) for name, subset in by_directness.items()},
        "motor_intrusion": of(kinds_known, motor),  # without the kinds of all options, no figure
        "off_vantage": of(kinds_known, {EgoGapKind.OFF_VANTAGE.value}),
    }


SUITE = Suite(
    name="egogapbench",
    tasks=(TASK,),
    columns=COLUMNS,
    settings=tuple(map(str, EgoGapSetting)),
    read=lambda path, style: read(path, style)[1],
    items=items,
    figures=figures,
    bare_settings=(EgoGapSetting.IMAGES, EgoGapSetting.BLIND),
    given={
        EgoGapSetting.CAPTIONS: "captions",
        EgoGapSetting.OTHERS: "others' actions",
        EgoGapSetting.OTHERS_CAPTIONS: "others' actions and captions",
        EgoGapSetting.SWAPPED: "another image's others",
    },
    controls={"uniform": uniform},
    published=shipped_file("sim_replays.suites", "egogapbench_published.yaml"),
)
