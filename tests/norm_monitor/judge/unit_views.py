"""Units of a talk as the judge gets them."""

from collections.abc import Iterable, Sequence

from norm_core.records.frame import Frame
from norm_monitor.assessment.unit import UnitKind, units_of
from norm_monitor.context.scene import History
from norm_monitor.judge.excerpt import UnitView, unit_view
from norm_monitor.windows.cutter import Entry
from tests.node_records import camera_frame
from tests.norm_monitor.encounter_talk import at, window_of

FRAME = camera_frame(at(2), b"picture")


def views_of(
    talk: Iterable[Entry],
    end_s: float = 15,
    frames: Sequence[Frame] = (),
) -> dict[tuple[UnitKind, float], UnitView]:
    """The units of a talk by kind and onset in seconds."""
    scene = History().scene(window_of(talk, end_s, frames))
    units = units_of(scene, scene.start_ns)
    return {(unit.kind, (unit.onset_ns - at(0)) / 1e9): unit_view(unit, scene) for unit in units}
