"""Make the questions of EgoNormia: to the robot's selector, and to a model alone."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from norm_core.prompts.texts import prompt_file
from norm_core.records.decision import OtherAgent, Viewpoint
from norm_core.records.episode import Query
from sim_replays.runs.items.clip import Shot, one_a_second, pictures_folder
from sim_replays.runs.run_config import RunConfig, RunItem, RunItems
from sim_replays.suites.egonormia.reader import TASKS, EgoNormiaItem, EgoNormiaSetting, file_of, halves, read
from sim_replays.suites.target import SuiteError


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


_TEXTS = prompt_file("prompts", "sim_replays.suites.egonormia").texts


def bare_query(item: EgoNormiaItem, setting: EgoNormiaSetting, task: str) -> Query:
    """Make a query of the whole prompt, in the order of the paper: the scene, the task, the options, the form."""
    scene = [_TEXTS["scene"][setting.value]]
    if setting is EgoNormiaSetting.PIPELINE:
        scene += [f"> {line}" for line in item.scene.splitlines() if line.strip()]
    offered = item.justifications if task == "justification" else item.actions
    options = "\n".join(f"{number}. {option or 'None'}" for number, option in enumerate(offered, 1))
    return replace(
        query(item, EgoNormiaSetting.BLIND, task),
        question="\n\n".join(("\n".join(scene), _TEXTS["asked"][task], _TEXTS["none"], options, _TEXTS["last"][task])),
        style="number_list" if task == "sensible" else "number",
    )


def items(asking: RunConfig) -> RunItems:
    """Make one episode per scene, with all three questions."""
    data = Path(asking.data)
    setting = EgoNormiaSetting(asking.setting)
    found, labels = read(data, asking.seed)
    if asking.precedents:
        found, labels = halves(found, labels, asking.seed)[1]
    asked = []
    for item in found:
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
