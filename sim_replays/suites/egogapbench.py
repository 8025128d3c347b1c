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
from sim_replays.items.clip import Shot, find_pictures_folder, list_shots_by_second
from sim_replays.items.dataset_files import read_entries
from sim_replays.items.run_config import RunConfig, RunItem, RunItems
from sim_replays.items.target import Predictions, SuiteError, Target, find_first_pick
from sim_replays.suites.controls import score_uniform_choice
from sim_replays.suites.suite import Suite

TASK = "eas"
SUFFIX = ".bundles.jsonl"
COLUMNS = ("overall", "n3", "n4", "direct", "indirect", "motor_intrusion", "off_vantage")

_TEXTS = load_prompt_file("egogapbench_prompts", "sim_replays.suites").texts


class EgoGapSetting(StrEnum):
    """The input besides the options."""

    BLIND = "blind"
    CAPTIONS = "captions"
    OTHERS = "others-given"
    OTHERS_CAPTIONS = "others-and-captions"
    SWAPPED = "others-swapped"  # other agents from another image
    IMAGES = "images"


class EgoGapKind(StrEnum):
    """The kind of an option; motor_* are actions of visible others, and unlabelled is an unknown kind."""

    CORRECT = "correct"
    MOTOR_A = "motor_a"
    MOTOR_B = "motor_b"
    OFF_VANTAGE = "composition_off"
    UNKNOWN = "unlabelled"


@record
class EgoGapItem:
    """One question without its answer; `others` is what perfect perception would see."""

    uid: str
    image: str
    file_name: str
    captions: tuple[str, ...]
    others: tuple[OtherAgent, ...]
    options: tuple[str, ...]
    prompt: str


def read(path: Path, style: str = "default") -> tuple[list[EgoGapItem], list[Target]]:
    """Read items and, separately, their right answers, from a file or the files of a style in a folder."""
    pairs: dict[str, tuple[EgoGapItem, Target]] = {}
    for file in list_files(path, style):
        for where, bundle in read_entries(file):
            try:
                pairs_of_bundle = [_read_pair(bundle, entry) for entry in bundle["mcq_items"]]
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                raise SuiteError(
                    f"{where}: is not a bundle of EgoGapBench: {type(error).__name__}: {error}; correct or remove it"
                ) from error
            for item, target in pairs_of_bundle:
                if item.uid in pairs:
                    raise SuiteError(f"{where}: the item {item.uid} stands in {path} twice; remove one")
                pairs[item.uid] = item, target
    if not pairs:
        raise SuiteError(f"{path}: holds no items of EgoGapBench; name the file or folder of its data")
    return [item for item, _ in pairs.values()], [target for _, target in pairs.values()]


def list_files(path: Path, style: str = "default") -> list[Path]:
    """List the files of a path: in a folder those with the style in their name, or the only one."""
    if style not in STYLES:
        raise SuiteError(f"there is no style {style!r}; name one of {', '.join(STYLES)}")
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise SuiteError(f"{path}: there is no such file or folder; check the path")
    files_here = sorted(path.glob(f"*{SUFFIX}")) or sorted(path.glob("*.json*"))
    name_part = "egoplan" if style == "egoplan" else "default"
    of_style = [file for file in files_here if name_part in file.name]
    if of_style:
        return of_style
    if len(files_here) != 1:
        names = ", ".join(file.name for file in files_here) or "none"
        raise SuiteError(f"{path}: has no file *{name_part}*{SUFFIX}, but {names}; name the file itself")
    return files_here


def _read_pair(bundle: dict[str, Any], entry: dict[str, Any]) -> tuple[EgoGapItem, Target]:
    """Return an item and its target, from its entry and the bundle of its image."""
    letters = sorted(entry["options"])
    image = str(bundle["image_id"])
    item = EgoGapItem(
        uid=str(entry["uid"]),
        image=image,
        file_name=bundle.get("file_name") or "",
        captions=tuple(bundle.get("captions") or ()),
        others=tuple(_read_agent(name, agent) for name, agent in sorted((bundle.get("agents") or {}).items())),
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
        kinds=tuple(_find_kind(kinds.get(letter), letter == entry["correct_letter"]) for letter in letters),
        by={"directness": str(entry["cand_kind"])} if entry.get("cand_kind") else {},
    )
    return item, target


def _read_agent(name: str, agent: dict[str, Any]) -> OtherAgent:
    return OtherAgent(
        agent_id=name,
        role=agent.get("role") or "",
        appearance=agent.get("appearance") or "",
        doing=agent.get("engagement") or "",
        duplicable=Duplicable.NO if "single" in (agent.get("singleton_type") or "") else Duplicable.UNKNOWN,
    )


def _find_kind(name: str | None, is_right: bool) -> EgoGapKind:
    """Return the kind of an option. The right letter takes precedence, because the figures depend on it."""
    if is_right:
        return EgoGapKind.CORRECT
    return EgoGapKind(name) if name in set(EgoGapKind) - {EgoGapKind.CORRECT} else EgoGapKind.UNKNOWN


def make_query(
    item: EgoGapItem, setting: EgoGapSetting, others: Sequence[OtherAgent] = (), *, style: str = "", prompt: str = ""
) -> Query:
    """Make a query; `others` are of another image, for the setting that swaps them; `prompt` replaces ours."""
    others_by_setting = {
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
        question=prompt,
        style=style,
        options=item.options,
        others_given=setting is not EgoGapSetting.IMAGES,
        others=others_by_setting.get(setting, ()),
        viewpoint_given=bool(captions),
        viewpoint=Viewpoint(description=captions),
    )


def make_bare_query(item: EgoGapItem, style: str) -> Query:
    """Make a query of the prompt of the dataset, which holds the options."""
    if not item.prompt.strip():
        raise SuiteError(f"{item.uid}: has no eval_prompt, which a model alone is asked; name data that has it")
    prompt = f"{item.prompt.rstrip()}\n\n{_TEXTS['exclusion']}\n" if style == "exclusion" else item.prompt
    return make_query(item, EgoGapSetting.IMAGES, style="json_letter", prompt=prompt)


def swap_others(items: Sequence[EgoGapItem], seed: int) -> dict[str, tuple[OtherAgent, ...]]:
    """Give each image the others of another one, in a random cycle through all images."""
    others_by_image = {item.image: item.others for item in items}
    order = sorted(others_by_image)
    random.Random(seed).shuffle(order)
    return {image: others_by_image[order[index - 1]] for index, image in enumerate(order)}


def make_items(run_config: RunConfig) -> RunItems:
    """Make an episode of each question."""
    data = Path(run_config.data)
    setting = EgoGapSetting(run_config.setting)
    dataset_items, targets = read(data, run_config.style)
    swapped_others = swap_others(dataset_items, run_config.seed)
    if setting is EgoGapSetting.SWAPPED and len(swapped_others) < 2:
        raise SuiteError(f"{data}: holds one image, and others are swapped between two or more; name more data")
    episodes = []
    for item in dataset_items:
        if run_config.bare:
            query = make_bare_query(item, run_config.style)
        else:
            query = make_query(item, setting, swapped_others[item.image], style=run_config.style)
        shots: tuple[Shot, ...] = ()
        if setting is EgoGapSetting.IMAGES:
            folder = find_pictures_folder(run_config.pictures, data, ("train2017", "images"))
            shots = list_shots_by_second([find_picture(folder, item.file_name)])
        orders = {item.uid: tuple(range(len(item.options)))}
        episodes.append(RunItem(id=item.uid, queries=(query,), shots=shots, orders=orders))
    files = list_files(data, run_config.style)
    return RunItems(episodes=tuple(episodes), targets=tuple(targets), files=tuple(files))


def find_picture(folder: Path, name: str) -> Path:
    """Return the path of an image of COCO in a folder."""
    path = folder / name
    if not name or not path.is_file():
        raise SuiteError(f"{path}: is not there; get it from COCO train2017")
    return path


def compute_figures(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute the figures of the paper. A question without an answer counts as wrong."""

    def share_kinds(subset: Sequence[Target], kinds: set[str]) -> Figure:
        """Compute the share of answers of these kinds."""
        picks = [find_first_pick(target, predictions) for target in subset]
        hits = [
            0.0 if pick is None else float(target.kinds[pick] in kinds)
            for target, pick in zip(subset, picks, strict=True)
        ]
        return estimate_share(hits, [target.group for target in subset])

    correct = {EgoGapKind.CORRECT.value}
    motor = {EgoGapKind.MOTOR_A.value, EgoGapKind.MOTOR_B.value}
    four = [target for target in targets if target.options == 4]
    kinds_known = [] if any(EgoGapKind.UNKNOWN in target.kinds for target in four) else four
    labelled = targets if all("directness" in target.by for target in targets) else ()
    by_directness = {
        name: [target for target in labelled if (target.by["directness"] == "direct") is (name == "direct")]
        for name in ("direct", "indirect")
    }
    return {
        "overall": share_kinds(targets, correct),
        "n3": share_kinds([target for target in targets if target.options == 3], correct),
        "n4": share_kinds(four, correct),
        **{name: share_kinds(subset, correct) for name, subset in by_directness.items()},
        "motor_intrusion": share_kinds(kinds_known, motor),  # no figure unless the kinds of all options are known
        "off_vantage": share_kinds(kinds_known, {EgoGapKind.OFF_VANTAGE.value}),
    }


SUITE = Suite(
    name="egogapbench",
    tasks=(TASK,),
    columns=COLUMNS,
    settings=tuple(map(str, EgoGapSetting)),
    read_targets=lambda path, style: read(path, style)[1],
    make_items=make_items,
    compute_figures=compute_figures,
    bare_settings=(EgoGapSetting.IMAGES, EgoGapSetting.BLIND),
    oracle_texts={
        EgoGapSetting.CAPTIONS: "captions",
        EgoGapSetting.OTHERS: "others' actions",
        EgoGapSetting.OTHERS_CAPTIONS: "others' actions and captions",
        EgoGapSetting.SWAPPED: "another image's others",
    },
    controls={"uniform": score_uniform_choice},
    published=shipped_file("sim_replays.suites", "egogapbench_published.yaml"),
)
