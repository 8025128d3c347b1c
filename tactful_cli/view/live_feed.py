"""Fill the view's timeline from a running graph."""

import time
from dataclasses import replace

from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.json_codec import RecordError
from norm_core.records.presence import Presence
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import Health, MonitorStatus, NodeState
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S
from study_desk.report.page_items import ms_since
from study_desk.view.stills import LIVE_REACH_NS, LiveStills
from study_desk.view.timeline import SessionTimeline
from tactful_cli.graph_stream import GraphLine

RECORDS: dict[str, type] = {
    "status": MonitorStatus,
    "utterance": Utterance,
    "robot_speech": RobotSpeech,
    "presence": Presence,
    "flag": SocialFlag,
    "decision": Decision,
    "frame": Frame,
}
SILENT_AFTER_S = 5.0
NOTHING_AFTER_S = 10.0
# Stamps that differ more from the system's clock come from another, such as that of a replay.
OTHER_CLOCK_NS = 600 * NS_PER_S
SAME_CLOCK_NS = 60 * NS_PER_S
MOST_NODES = 100


class LiveFeed:
    """Turn the lines of a graph's stream into a timeline. One thread calls it."""

    def __init__(self, namespace: str, timeline: SessionTimeline, stills: LiveStills) -> None:
        self._namespace, self._timeline, self._stills = namespace, timeline, stills
        self._shift_ns = 0
        self._lost = 0
        self._beats: dict[str, tuple[int, MonitorStatus]] = {}  # of the nodes that are not silent
        self._heard_ns = time.time_ns()
        self._last: float | None = None  # when data last arrived, on the page
        timeline.set_state("quiet", {"last": None})
        self._beat_ns, self._outage_after_s = self._heard_ns, NOTHING_AFTER_S  # of any node
        self._is_out = False

    def take(self, line: GraphLine) -> None:
        """Take a line."""
        if line.kind != "reply":  # to a viewer of this page
            self._heard_ns, self._last = line.arrival_ns, ms_since(self._timeline.start_ns, line.arrival_ns)
            self._timeline.set_state("quiet", None)
        match line.kind:
            case "refused":
                self._timeline.note(f"{line.topic}: {line.record.get('problem')}")
            case "lost":
                self._lost += int(line.record.get("count", 0))
                self._timeline.set_state("lost", self._lost)
            case kind if kind in RECORDS:
                try:
                    self._take_record(line.record_as(RECORDS[kind]), line.arrival_ns)
                except RecordError as error:
                    self._timeline.note(f"{line.topic}: {error}")

    def take_time(self, now_ns: int) -> None:
        """Take that time passed: a node without heartbeats has ended or hangs."""
        self._timeline.extend_to(now_ns)
        for node, (arrival_ns, status) in list(self._beats.items()):
            if now_ns - arrival_ns > SILENT_AFTER_S * NS_PER_S:
                del self._beats[node]
                ended = "it ended" if status.state is NodeState.FINALIZED else "look at its process and network"
                reason = f"no heartbeat for {SILENT_AFTER_S:.0f} s; {ended}"
                self._timeline.take(replace(status, health=Health.STALE, reasons=(reason,), notes=()), now_ns)
        self._is_out = not self._beats and now_ns - self._beat_ns > self._outage_after_s * NS_PER_S
        if self._is_out:
            self._timeline.mark_outage(self._beat_ns, now_ns)
        is_silent = now_ns - self._heard_ns > NOTHING_AFTER_S * NS_PER_S
        nothing = (
            f"{self._namespace}/*: nothing is published; start the nodes with {PROGRAM} up, or check ROS_DOMAIN_ID and "
            "--namespace"
        )
        self._timeline.set_state("silence", nothing if is_silent else "")
        self._timeline.set_state("quiet", {"last": self._last} if is_silent or self._last is None else None)

    def _take_record(self, record: object, arrival_ns: int) -> None:
        if isinstance(record, MonitorStatus):
            self._take_beat(record, arrival_ns)
        shift_ns = self._shift_of(getattr(record, "stamp_ns", arrival_ns), arrival_ns)
        if isinstance(record, Frame):
            stamp_ns = record.stamp_ns + shift_ns
            self._stills.take(record, stamp_ns, arrival_ns)
            late_ns = arrival_ns - stamp_ns
            self._timeline.set_state("late_s", late_ns // NS_PER_S if late_ns > LIVE_REACH_NS else None)
        else:
            self._timeline.take(record, arrival_ns, shift_ns=shift_ns)

    def _take_beat(self, status: MonitorStatus, arrival_ns: int) -> None:
        if self._is_out:
            self._timeline.mark_outage(self._beat_ns, arrival_ns)
        self._is_out, self._beat_ns, self._outage_after_s = False, arrival_ns, SILENT_AFTER_S
        if status.node in self._beats or len(self._beats) < MOST_NODES:
            self._beats[status.node] = (arrival_ns, status)

    def _shift_of(self, stamp_ns: int, arrival_ns: int) -> int:
        """Return what takes a stamp to the system's clock: 0, or the same for all stamps of another clock."""
        ahead_ns = arrival_ns - stamp_ns
        if abs(ahead_ns) <= OTHER_CLOCK_NS:
            return 0
        if abs(ahead_ns - self._shift_ns) > SAME_CLOCK_NS:
            self._shift_ns = ahead_ns
        return self._shift_ns
