"""The eyes as every driver uses them: pictures in, frames and presence out, in that order."""

from norm_core.health.health_log import HealthLog
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence, PresenceState
from norm_core.runtime.time import NS_PER_S
from norm_monitor.eyes import Eyes
from norm_monitor.senses.faces.finder import FaceFinder
from tests.norm_monitor.senses.camera_messages import PERIOD_NS, START_NS, compressed, face_image, scene


def test_presence_follows_each_selected_frame() -> None:
    eyes = Eyes("/camera", HealthLog(), finder=FaceFinder())
    shown = [face_image(), face_image(), scene(), scene(), scene()]
    found = [
        one
        for second, image in enumerate(shown)
        for step in range(3)
        for one in eyes.take(compressed(START_NS + second * NS_PER_S + step * PERIOD_NS, image))
    ]
    frames, presences = found[::2], found[1::2]
    assert len(frames) == len(presences) == len(shown)
    assert all(isinstance(one, Frame) for one in frames)
    assert all(isinstance(one, Presence) for one in presences)
    assert [one.stamp_ns for one in frames] == [one.stamp_ns for one in presences]
    states = [one.state for one in presences if isinstance(one, Presence)]
    assert states == [PresenceState.PRESENT] * 2 + [PresenceState.LOST, PresenceState.LEFT, PresenceState.ABSENT]
