"""VideoNorms: adherence or violation in 15 s clips, the evidence and the norm."""

from norm_core.runtime.data_files import shipped_file
from sim_replays.suites.controls import first_always, once, over_draws, prior, uniform
from sim_replays.suites.suite import Suite
from sim_replays.suites.videonorms.questions import PAPER_FRAMES, NormSetting, items
from sim_replays.suites.videonorms.reader import FILE, TASKS, read, targets
from sim_replays.suites.videonorms.replies import FORMS
from sim_replays.suites.videonorms.scorer import COLUMNS, figures

__all__ = ["FILE", "SUITE", "TASKS", "read", "targets"]

SUITE = Suite(
    name="videonorms",
    tasks=TASKS,
    columns=COLUMNS,
    settings=tuple(map(str, NormSetting)),
    read=lambda path, _: targets(read(path)),
    items=items,
    figures=figures,
    controls={"always adherence": once(first_always), "prior": over_draws(prior), "uniform": uniform},
    bare_settings=(NormSetting.GIVEN, NormSetting.WHISPER, NormSetting.TEXT, NormSetting.BLIND),
    forms=FORMS,
    tries=3,
    given={NormSetting.GIVEN: "transcript", NormSetting.TEXT: "transcript"},
    answered_by="judge",
    broken_down_by=("culture", "show", "category"),
    paper_frames=PAPER_FRAMES,
    published=shipped_file("sim_replays.suites.videonorms", "published.yaml"),
)
