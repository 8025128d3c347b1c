"""HSRI (SHREC): eight tasks on segments of human-robot talk."""

from norm_core.runtime.data_files import shipped_file
from sim_replays.suites.controls import most_frequent, once, over_draws, prior, uniform
from sim_replays.suites.hsri.questions import PAPER_FRAMES, SegmentSetting, items
from sim_replays.suites.hsri.reader import CHOICES, FILE, SEEDS, TASKS, HsriSegment, draw_questions, read, targets
from sim_replays.suites.hsri.scorer import COLUMNS, figures
from sim_replays.suites.suite import Suite

__all__ = ["CHOICES", "FILE", "SEEDS", "SUITE", "TASKS", "HsriSegment", "draw_questions", "read", "targets"]

SUITE = Suite(
    name="hsri",
    tasks=TASKS,
    columns=COLUMNS,
    settings=tuple(map(str, SegmentSetting)),
    read=lambda path, _: targets(draw_questions(read(path))),
    items=items,
    figures=figures,
    controls={"most frequent": once(most_frequent), "prior": over_draws(prior), "uniform": uniform},
    bare_settings=(SegmentSetting.GIVEN, SegmentSetting.TEXT, SegmentSetting.BLIND),
    given={SegmentSetting.GIVEN: "transcript", SegmentSetting.TEXT: "transcript"},
    about_emotions=("attributes", "multi"),
    answered_by="judge",
    ranges="mean ± sd of seeds",
    paper_frames=PAPER_FRAMES,
    published=shipped_file("sim_replays.suites.hsri", "published.yaml"),
)
