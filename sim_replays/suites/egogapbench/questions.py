"""Make the questions of EgoGapBench: to the robot's selector, and to a model alone."""

import random
from collections.abc import Sequence
from pathlib import Path

from norm_core.prompts.texts import prompt_file
from norm_core.records.decision import OtherAgent, Viewpoint
from norm_core.records.episode import Query
from sim_replays.runs.items.clip import Shot, one_a_second, pictures_folder
from sim_replays.runs.run_config import RunConfig, RunItem, RunItems
from sim_replays.suites.egogapbench.reader import TASK, EgoGapItem, EgoGapSetting, files, read
from sim_replays.suites.target import SuiteError


def query(
    item: EgoGapItem, setting: EgoGapSetting, others: Sequence[OtherAgent] = (), *, style: str = "", ask: str = ""
) -> Query:
    """Make a query. `others` come from another image if swapped; `ask` replaces our prompt."""
    given = {
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
        others=given.get(setting, ()),
        viewpoint_given=bool(captions),
        viewpoint=Viewpoint(description=captions),
    )


_TEXTS = prompt_file("prompts", "sim_replays.suites.egogapbench").texts


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
    found, labels = read(data, asking.style)
    turned = swapped(found, asking.seed)
    if setting is EgoGapSetting.SWAPPED and len(turned) < 2:
        raise SuiteError(f"{data}: holds one image, and others cannot be swapped between fewer than two")
    asked = []
    for item in found:
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
        targets=tuple(label.target for label in labels),
        files=tuple(files(data, asking.style)),
    )


def picture_in(folder: Path, name: str) -> Path:
    """Return the path of a COCO image in a folder."""
    path = folder / name
    if not name or not path.is_file():
        raise SuiteError(f"{path}: is not there: get it from COCO train2017")
    return path
