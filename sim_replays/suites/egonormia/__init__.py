"""EgoNormia: best action, justification and sensible actions."""

from norm_core.runtime.data_files import shipped_file
from sim_replays.suites.controls import best_constant, once, uniform
from sim_replays.suites.egonormia.questions import items, query
from sim_replays.suites.egonormia.reader import (
    TASKS,
    EgoNormiaItem,
    EgoNormiaLabel,
    EgoNormiaSetting,
    file_of,
    halves,
    precedents,
    read,
    source_of,
)
from sim_replays.suites.egonormia.scorer import COLUMNS, figures
from sim_replays.suites.suite import Suite

__all__ = [
    "SUITE",
    "EgoNormiaItem",
    "EgoNormiaLabel",
    "EgoNormiaSetting",
    "file_of",
    "halves",
    "precedents",
    "query",
    "read",
    "source_of",
]

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
    published=shipped_file("sim_replays.suites.egonormia", "published.yaml"),
)
