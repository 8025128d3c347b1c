"""EgoGapBench: choose the action that is open from this viewpoint."""

from norm_core.runtime.data_files import shipped_file
from sim_replays.suites.controls import uniform
from sim_replays.suites.egogapbench.questions import items, query, swapped
from sim_replays.suites.egogapbench.reader import TASK, EgoGapItem, EgoGapKind, EgoGapLabel, EgoGapSetting, read
from sim_replays.suites.egogapbench.scorer import COLUMNS, figures
from sim_replays.suites.suite import Suite

__all__ = [
    "SUITE",
    "EgoGapItem",
    "EgoGapKind",
    "EgoGapLabel",
    "EgoGapSetting",
    "query",
    "read",
    "swapped",
]

SUITE = Suite(
    name="egogapbench",
    tasks=(TASK,),
    columns=COLUMNS,
    settings=tuple(map(str, EgoGapSetting)),
    read=lambda path, style: [label.target for label in read(path, style)[1]],
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
    published=shipped_file("sim_replays.suites.egogapbench", "published.yaml"),
)
