"""`tactful view`: a local page over a bag or a running graph, and the monitor's settings that its viewers change."""

import heapq
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

import typer

from norm_core.bags.reader import BagReader
from norm_core.records.decision import Decision
from norm_core.records.frame import Frame
from norm_core.records.json_codec import RecordError, to_plain
from norm_core.records.messages import message_type
from norm_core.records.speech import Utterance
from norm_core.records.status import Health, MonitorStatus, NodeState
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_core.runtime.wording import count_of
from norm_monitor.replay.bag_driver import feed_monitor, make_replay_monitor
from norm_monitor.session_log.recording import LOGGED_TYPES, read_bag_records
from norm_monitor.session_log.schema import Review
from norm_monitor.view.page_items import ms_since
from norm_monitor.view.page_server import LOOPBACK, StillAt
from norm_monitor.view.pictures import LIVE_REACH_NS, BagStills, LiveStills
from norm_monitor.view.timeline import SessionTimeline
from norm_monitor.view.view_server import ViewServer
from tactful_cli.console import complain, err
from tactful_cli.flag_watch import FlagOptions, WatchOptions, remarks_of
from tactful_cli.graph_stream import GraphLine, GraphStream
from tactful_cli.session_options import face_finder, holds_flags
from tactful_cli.verb_options import make_app, with_options

# The parameters of the monitor that the page shows.
SENSITIVITY = "fusion.sensitivity"
MUTED = "fusion.muted"
LOG = "study.log"


class LiveControls:
    """The settings of the graph's monitor. The viewers' threads change them, one reads the stream."""

    def __init__(self, stream: GraphStream, timeline: SessionTimeline) -> None:
        self._stream, self._timeline = stream, timeline
        self._node = f"{stream.namespace}/monitor"
        self._known: tuple[str, str] | None = None
        self._values: dict[str, Any] = {}
        self._asked = 0
        self._has_past = False
        self._changing = Lock()

    def take(self, line: GraphLine) -> None:
        """Take a heartbeat of the monitor, or what it replied about its settings."""
        if line.kind == "reply" and "recent" in line.record:
            self._has_past = True
        elif line.kind == "reply" and line.record.get("id") == self._asked:
            values = line.record.get("values")
            if values:
                self._take_values(values)
            else:
                self._known = None  # the next heartbeat asks again
        elif line.kind == "status" and line.record.get("node") == self._node:
            status: MonitorStatus = line.read()
            if not self._has_past:
                with suppress(OSError):  # the process starts again, and the next heartbeat asks again
                    self._stream.send({"recent": True})
            version = (status.instance_id, status.config_sha256)
            if version != self._known or not self._values:
                self._known = version
                with suppress(OSError):  # as above
                    self._asked = self._stream.send({"get": [SENSITIVITY, MUTED, LOG]})

    def set_sensitivity(self, name: str) -> str:
        """Set the sensitivity; return why it was not done, or nothing."""
        return self._set(SENSITIVITY, name)

    def set_muted(self, name: str, *, is_muted: bool) -> str:
        """Mute a cue or an attribute, or raise its flags again; return why it was not done, or nothing."""
        with self._changing:
            others = [muted for muted in self._values.get(MUTED, []) if muted != name]
            return self._set(MUTED, [*others, name] if is_muted else others)

    def review(self, review: Review) -> str:
        """Give a verdict to the monitor's study log; return why it was not recorded, or nothing."""
        return self._stream.ask({"review": to_plain(review)})

    def _set(self, name: str, value: Any) -> str:
        if not self._values:
            return "the monitor's settings are unknown; see its health"
        problem = self._stream.ask({"set": {name: value}})
        if not problem:
            self._take_values({**self._values, name: value})
        return problem

    def _take_values(self, values: dict[str, Any]) -> None:
        self._values = values
        self._timeline.set_state(
            "settings",
            {
                "sensitivity": values.get(SENSITIVITY),
                "muted": list(values.get(MUTED) or ()),
                "log": bool(values.get(LOG)),
            },
        )


SILENT_AFTER_S = 5.0
NOTHING_AFTER_S = 10.0
# Stamps that differ more from the system's clock come from another, such as that of a replay.
OTHER_CLOCK_NS = 120 * NS_PER_S
SAME_CLOCK_NS = 60 * NS_PER_S
MAX_NODES = 100


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
            case "reply":
                for kind, plain in line.record.get("recent", ()):
                    past = replace(line, kind=kind, record=plain).read()
                    self._timeline.take_past(past, self._shift_ns)
            case _:
                try:
                    if record := line.read():
                        self._take_record(record, line.arrival_ns)
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
        if status.node in self._beats or len(self._beats) < MAX_NODES:
            self._beats[status.node] = (arrival_ns, status)

    def _shift_of(self, stamp_ns: int, arrival_ns: int) -> int:
        """Return what takes a stamp to the system's clock: 0, or the same for all stamps of another clock."""
        ahead_ns = arrival_ns - stamp_ns
        if abs(ahead_ns) <= OTHER_CLOCK_NS:
            return 0
        if abs(ahead_ns - self._shift_ns) > SAME_CLOCK_NS:
            self._shift_ns = ahead_ns
        return self._shift_ns


NO_SPEECH = "Speech was not recorded in this bag; record /tactful/utterances and /tactful/robot_speech with the flags."


def shown_records(bag: BagReader, timeline: SessionTimeline, options: FlagOptions) -> Iterator[tuple[int, Any]]:
    """Return what the nodes published; of a bag without flags, what the monitor makes of it here."""
    if holds_flags(bag):
        if not any(topic.type_name == message_type(Utterance) for topic in bag.topics):
            timeline.set_state("speech_missing", NO_SPEECH)
        return _recorded(bag, timeline, (*LOGGED_TYPES, MonitorStatus))
    return _monitored(bag, timeline, options)


def _recorded(bag: BagReader, timeline: SessionTimeline, kinds: Iterable[type]) -> Iterator[tuple[int, Any]]:
    """Yield the records of some kinds that the nodes published."""
    unreadable = 0
    for stamp_ns, record in read_bag_records(bag, kinds):
        if record is None:
            unreadable += 1
        else:
            yield stamp_ns, record
    if unreadable:
        timeline.note(f"{count_of(unreadable, 'message')} of the bag cannot be read")


def _monitored(bag: BagReader, timeline: SessionTimeline, options: FlagOptions) -> Iterator[tuple[int, Any]]:
    """Return what the senses and the monitor make of the bag."""
    senses = options.senses(bag, timeline.title)
    timeline.note("The bag holds no flags, so the monitor runs on it here, without a judge.")

    def run() -> Iterator[tuple[int, Any]]:
        clock = ReplayClock()
        monitor = make_replay_monitor(senses.sources, clock, options.fusion)
        published = list(
            _recorded(bag, timeline, (Decision, MonitorStatus))
        )  # read first: a bag is read once at a time
        yield from heapq.merge(feed_monitor(senses.records(), monitor, clock), published, key=lambda pair: pair[0])
        for remark in remarks_of(bag, senses, monitor):
            timeline.note(remark)

    return run()


app = make_app()

KEEP_S, PAST_S = 3 * 3600.0, 600.0  # of a running graph: what stays, and what the monitor knows from before
WAIT_S = 0.25
TICK_NS = NS_PER_S


@app.command()
@with_options
def view(
    bag: Annotated[
        Path | None, typer.Argument(metavar="BAG", help="Folder of a rosbag2 bag; default: the running graph.")
    ] = None,
    namespace: Annotated[str, typer.Option(help=f"Namespace of the robot, as given to {PROGRAM} up.")] = "",
    *,
    watched: WatchOptions,
    show_faces: Annotated[bool, typer.Option("--show-faces", help="Do not blur faces.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP port; 0: a free one.")] = 0,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Any address other than loopback exposes the page to the network.")
    ] = "127.0.0.1",
) -> None:
    """Serve a page that shows camera, speech, people, flags, decisions and health. Ctrl-C ends it.

    It shows a running graph, or replays a bag. Runs the monitor on a bag without flags, and the page fills as it goes.
    """
    if bag and namespace:
        raise TactfulError("--namespace: belongs to a running graph; leave it out, or leave out the bag")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts with &

    @contextmanager
    def serving(
        timeline: SessionTimeline, still_at: StillAt | None, controls: LiveControls | None = None
    ) -> Iterator[None]:
        server = ViewServer(timeline, still_at, controls=controls, is_live=bag is None, host=host, port=port)
        if host not in LOOPBACK:
            complain(f"listening on {host}: whoever reaches this machine and has the link sees the page, unencrypted")
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            print(server.url, flush=True)
            err.print("Ctrl-C ends it.")
            yield
        finally:
            server.close()
            thread.join()

    find = None if show_faces else face_finder()
    if bag is None:

        def log(line: str) -> None:
            complain(f"view: {line}")

        with closing(GraphStream(namespace, "view", log, frames=True, commands=True)) as stream:
            timeline = SessionTimeline(stream.namespace, time.time_ns(), keep_s=KEEP_S, past_s=PAST_S)
            live_stills = LiveStills(find, shows_faces=show_faces)
            controls = LiveControls(stream, timeline)
            with serving(timeline, live_stills.at, controls):
                _follow(stream, LiveFeed(stream.namespace, timeline, live_stills), controls)
    else:
        with BagReader(bag) as reader:
            start_ns, end_ns = reader.bounds_ns or (0, 0)
            timeline = SessionTimeline(bag.resolve().name, start_ns)
            timeline.extend_to(end_ns)
            records = shown_records(reader, timeline, watched.for_flags())
            stills = BagStills(bag, find, shows_faces=show_faces)
            with serving(timeline, stills.at if stills.topic else None):
                for known_ns, record in records:
                    timeline.take(record, known_ns)
                timeline.complete()
                threading.Event().wait()  # until Ctrl-C


def _follow(stream: GraphStream, feed: LiveFeed, controls: LiveControls) -> None:
    ticked_ns = 0
    while True:
        line = stream.get(WAIT_S)
        if line:
            feed.take(line)
            controls.take(line)
        now_ns = time.time_ns()
        if now_ns - ticked_ns >= TICK_NS:
            feed.take_time(now_ns)
            ticked_ns = now_ns
