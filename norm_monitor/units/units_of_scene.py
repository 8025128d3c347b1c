"""List the units of a scene."""

from collections.abc import Iterator

from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.units.unit import Unit

# A shorter silence after a person's turn is the usual gap between turns.
SHORTEST_SILENCE_NS = 2 * NS_PER_S


def units_of(scene: Scene, since_ns: int) -> Iterator[Unit]:
    """Return the turns, and the silences after people's turns, that end at `since_ns` or later."""
    for index, turn in enumerate(scene.turns):
        if turn.text.strip() and turn.end_ns >= since_ns:
            yield Unit.of_turn(turn)
        silence = None if turn.is_robot else _silence_after(scene, index, turn)
        if silence and (silence.offset_ns is None or silence.offset_ns >= since_ns):
            yield silence


def _silence_after(scene: Scene, index: int, turn: Turn) -> Unit | None:
    """Return the silence from the end of a person's turn until anybody speaks, if it is long enough."""
    if not turn.timed:
        return None  # words without times say nothing about silence
    if any(other.end_ns > turn.end_ns and other.start_ns <= turn.end_ns for other in scene.turns):
        return None  # somebody else still speaks
    following = next((other for other in scene.turns[index + 1 :] if other.start_ns > turn.end_ns), None)
    end_ns = following.start_ns if following else None
    if (end_ns or scene.end_ns) - turn.end_ns < SHORTEST_SILENCE_NS:
        return None
    return Unit.of_silence(turn, end_ns)
