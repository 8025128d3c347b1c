"""Select the first frame at or after each period of stamp time. No clock is read."""

from collections import deque

from norm_core.runtime.health_log import HealthLog
from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_monitor.senses.camera.faults import CameraFault, log_fault

JUMP_NS = 60 * NS_PER_S  # a longer step in stamps comes from a clock, not from a camera
_MANY = 60  # intervals for estimating the camera's frame rate
_SLACK = 1.8  # a gap exceeds this many camera intervals


class Sampler:
    """Check each stamp in order of arrival; `keep` confirms that a selected frame was usable."""

    def __init__(self, topic: str, keep_hz: float, health_log: HealthLog) -> None:
        """Raises ValueError unless `keep_hz` is above 0."""
        if not keep_hz > 0:
            raise ValueError(f"frames are kept at a rate above 0, not {keep_hz}")
        self._period_ns = round(NS_PER_S / keep_hz)
        self._topic, self._health_log = topic, health_log
        self._latest_ns: int | None = None
        self._kept_slot: int | None = None
        self._intervals_ns: deque[int] = deque(maxlen=_MANY)
        self.missing_by_stamps = 0

    @property
    def latest_ns(self) -> int | None:
        """The latest stamp of the current timeline."""
        return self._latest_ns

    def is_due(self, stamp_ns: int) -> bool:
        """Count irregularities of a stamp; return whether its frame should be decoded."""
        if self._latest_ns is not None and not self._follows(stamp_ns, self._latest_ns):
            return False
        self._latest_ns = stamp_ns
        return self._kept_slot is None or self.slot_of(stamp_ns) > self._kept_slot

    def keep(self, stamp_ns: int) -> None:
        """Use the frame at `stamp_ns` for its period; without this call the next frame is tried."""
        self._kept_slot = self.slot_of(stamp_ns)

    def slot_of(self, stamp_ns: int) -> int:
        """Return the period of a stamp; each period has one frame."""
        return stamp_ns // self._period_ns

    def _follows(self, stamp_ns: int, latest_ns: int) -> bool:
        step_ns = stamp_ns - latest_ns
        if step_ns == 0:
            log_fault(self._health_log, self._topic, CameraFault.DUPLICATE)
            return False
        if step_ns < -JUMP_NS:
            log_fault(self._health_log, self._topic, CameraFault.JUMPED_BACK, f"by {ns_to_s(-step_ns):.0f} s")
            self._kept_slot = None
            return True
        if step_ns < 0:
            log_fault(self._health_log, self._topic, CameraFault.REORDERED, f"by {ns_to_s(-step_ns):.3f} s")
            return False
        if step_ns > JUMP_NS:
            log_fault(self._health_log, self._topic, CameraFault.JUMPED_FORWARD, f"by {ns_to_s(step_ns):.0f} s")
            return True
        self._look_for_gap(step_ns)
        return True

    def _look_for_gap(self, step_ns: int) -> None:
        # The second shortest interval shows the frame rate despite lost frames and a single irregular pair.
        if len(self._intervals_ns) >= 3:
            pace_ns = sorted(self._intervals_ns)[1]
            if step_ns > _SLACK * pace_ns:
                missing = round(step_ns / pace_ns) - 1
                self.missing_by_stamps += missing
                log_fault(self._health_log, self._topic, CameraFault.STAMP_GAP, f"the last of {ns_to_s(step_ns):.3f} s")
        self._intervals_ns.append(step_ns)
