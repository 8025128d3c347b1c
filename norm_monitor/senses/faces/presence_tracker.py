"""Track who came, who left and who looks away, by stamps alone."""

from collections.abc import Sequence
from dataclasses import replace

from norm_core.records.frame import Frame
from norm_core.records.presence import Face, Presence, PresenceState
from norm_core.runtime.time import NS_PER_S, s_to_ns

# A pause longer than the time after which people have left, and this, shows nothing about them.
_MAX_PAUSE_NS = 3 * NS_PER_S


class PresenceTracker:
    """A tracker with the states absent -> present -> lost -> left -> absent. Any face makes the state present again.

    After a gap between stamps, or an earlier stamp, everybody is new.
    """

    def __init__(self, left_after_s: float = 2.0) -> None:
        self._left_after_ns = s_to_ns(left_after_s)
        self._restart()

    def _restart(self) -> None:
        self._state = PresenceState.ABSENT
        self._since_ns: int | None = None
        self._seen_ns: int | None = None
        self._away_ns: int | None = None
        self._latest_ns: int | None = None

    def follow(self, frame: Frame, faces: tuple[Face, ...]) -> Presence:
        """Return the presence at a frame."""
        return replace(
            self.step(frame.stamp_ns, frame.source_topic, [face.looking_away for face in faces]),
            frame_id=frame.frame_id,
            faces=faces,
        )

    def step(self, stamp_ns: int, source_topic: str, away: Sequence[bool]) -> Presence:
        """Return the presence at a stamp. `away` has an entry for each person, which is true if they look away."""
        if self._latest_ns is not None and not 0 <= stamp_ns - self._latest_ns <= self._left_after_ns + _MAX_PAUSE_NS:
            self._restart()  # nobody was seen to leave meanwhile
        self._latest_ns = stamp_ns
        if away:
            self._mark_seen(stamp_ns, all(away))
        else:
            self._mark_missed(stamp_ns)
        return Presence(
            stamp_ns=stamp_ns,
            source_topic=source_topic,
            state=self._state,
            since_ns=self._since_ns,
            last_seen_ns=self._seen_ns,
            away_since_ns=self._away_ns,
        )

    def _mark_seen(self, stamp_ns: int, all_away: bool) -> None:
        # Whoever returns after the leave time is a new person, even without a frame in between.
        has_left = self._seen_ns is not None and stamp_ns - self._seen_ns > self._left_after_ns
        if self._state in (PresenceState.ABSENT, PresenceState.LEFT) or has_left:
            self._since_ns = stamp_ns
            self._away_ns = None
        self._state = PresenceState.PRESENT
        self._seen_ns = stamp_ns
        if not all_away:
            self._away_ns = None
        elif self._away_ns is None:
            self._away_ns = stamp_ns

    def _mark_missed(self, stamp_ns: int) -> None:
        match self._state:
            case PresenceState.PRESENT | PresenceState.LOST:
                has_left = self._seen_ns is not None and stamp_ns - self._seen_ns >= self._left_after_ns
                self._state = PresenceState.LEFT if has_left else PresenceState.LOST
            case PresenceState.LEFT | PresenceState.ABSENT:
                self._state = PresenceState.ABSENT
                self._since_ns = None
        if self._state is not PresenceState.LOST:
            self._away_ns = None
