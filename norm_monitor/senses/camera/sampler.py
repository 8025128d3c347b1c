"""Select the first frame at or after each period of stamp time. No clock is read."""

from collections import deque
from itertools import accumulate

from norm_core.records.record import record
from norm_core.runtime.health_log import HealthLog
from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_monitor.senses.camera.faults import CameraFault, log_fault

JUMP_NS = 60 * NS_PER_S  # a longer step in stamps comes from a clock, not from a camera
_MANY = 60  # intervals for estimating the camera's frame rate
_SLACK = 1.8  # a gap exceeds this many camera intervals
_SURE = 3.0  # a step this long is a gap, whatever follows it
_SPAN = 4  # intervals over which jitter averages out


@record
class _Step:
    """From one stamp to the next."""

    length_ns: int
    leaves_period_empty: bool


class Sampler:
    """Check each stamp in order of arrival; `keep` confirms that a selected frame was usable."""

    def __init__(self, topic: str, keep_hz: float, health_log: HealthLog) -> None:
        """Raises ValueError unless `keep_hz` is above 0."""
        self._topic, self._health_log = topic, health_log
        self._latest_ns: int | None = None
        self._kept_ns: int | None = None
        self._late: _Step | None = None  # either a gap or jitter, until the next step shows which
        self.set_rate(keep_hz)
        self._intervals_ns: deque[int] = deque(maxlen=_MANY)
        self.missing_by_stamps = 0

    def set_rate(self, keep_hz: float) -> None:
        """Keep at another rate from the next frame on. Raises ValueError unless it is above 0."""
        if not keep_hz > 0:
            raise ValueError(f"frames are kept at a rate above 0, not {keep_hz}")
        self._period_ns = round(NS_PER_S / keep_hz)

    @property
    def latest_ns(self) -> int | None:
        """The latest stamp of the current timeline."""
        return self._latest_ns

    def is_due(self, stamp_ns: int) -> bool:
        """Count irregularities of a stamp; return whether its frame should be decoded."""
        if self._latest_ns is not None and not self._follows(stamp_ns, self._latest_ns):
            return False
        self._latest_ns = stamp_ns
        return self._kept_ns is None or self.slot_of(stamp_ns) > self.slot_of(self._kept_ns)

    def keep(self, stamp_ns: int) -> None:
        """Use the frame at `stamp_ns` for its period; without this call the next frame is tried."""
        self._kept_ns = stamp_ns

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
            self._kept_ns, self._late = None, None
            return True
        if step_ns < 0:
            log_fault(self._health_log, self._topic, CameraFault.REORDERED, f"by {ns_to_s(-step_ns):.3f} s")
            return False
        if step_ns > JUMP_NS:
            log_fault(self._health_log, self._topic, CameraFault.JUMPED_FORWARD, f"by {ns_to_s(step_ns):.0f} s")
            return True
        leaves_empty = self.slot_of(stamp_ns) - self.slot_of(latest_ns) > 1
        self._look_for_gap(_Step(length_ns=step_ns, leaves_period_empty=leaves_empty))
        return True

    def _look_for_gap(self, step: _Step) -> None:
        if len(self._intervals_ns) >= _SPAN:
            pace_ns = self._pace_ns()
            # After a frame that was only late, the next one comes so much the sooner.
            if self._late and self._late.length_ns + step.length_ns > (_SLACK + 1) * pace_ns:
                self._count_gap(self._late, pace_ns)
            self._late = step if _SLACK < step.length_ns / pace_ns <= _SURE else None
            if step.length_ns > _SURE * pace_ns:
                self._count_gap(step, pace_ns)
        self._intervals_ns.append(step.length_ns)

    def _pace_ns(self) -> float:
        """Estimate the interval of the camera, despite jitter, lost frames and a single irregular pair."""
        ends_ns = [0, *accumulate(self._intervals_ns)]
        spans_ns = sorted(end_ns - start_ns for start_ns, end_ns in zip(ends_ns, ends_ns[_SPAN:], strict=False))
        return spans_ns[:2][-1] / _SPAN

    def _count_gap(self, step: _Step, pace_ns: float) -> None:
        """Count a gap; it is a fault where a period lacks its frame."""
        self.missing_by_stamps += round(step.length_ns / pace_ns) - 1
        if step.leaves_period_empty:
            log_fault(self._health_log, self._topic, CameraFault.STAMP_GAP)
        else:
            self._health_log.count(CameraFault.STAMP_GAP.value)
