"""What a coder would look at to judge a unit: the talk around it, what was seen, what was measured, the frames."""

from norm_core.records.record import record
from norm_core.records.window import Window
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.cues.finding import Finding
from norm_monitor.units.unit import Unit

# How much of the talk is shown, so that the unit's own turn is always among it.
TALK_BEFORE_NS = 60 * NS_PER_S
MOST_TURNS_BEFORE, MOST_TURNS_AFTER = 20, 10


@record
class UnitView:
    """A unit with everything known about it at the end of a window; `turns` include the unit's own turn."""

    unit: Unit
    window: Window  # its frames and presences are shown, and its digest is cited
    known_until_ns: int
    turns: tuple[Turn, ...]
    findings: tuple[Finding, ...]  # of the cues, as measured facts


def unit_view(unit: Unit, scene: Scene, findings: tuple[Finding, ...]) -> UnitView:
    """Return the view of a unit at the end of the scene's window."""
    before = [t for t in scene.turns if unit.onset_ns - TALK_BEFORE_NS <= t.end_ns and t.start_ns <= unit.onset_ns]
    after = [turn for turn in scene.turns if turn.start_ns > unit.onset_ns][:MOST_TURNS_AFTER]
    return UnitView(
        unit=unit,
        window=scene.window,
        known_until_ns=scene.end_ns,
        turns=(*before[-MOST_TURNS_BEFORE:], *after),
        findings=findings,
    )
