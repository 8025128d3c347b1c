"""What fills a session: the replay of a bag, or the topics of a running graph."""

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Protocol

from norm_core.bags.reader import BagReader
from norm_core.engines.errors import EngineFailedError
from norm_core.records.json_codec import RecordError
from norm_core.records.messages import MessageError
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import MonitorStatus
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock
from sim_replays.drivers.bag_driver import feed_monitor, replay_monitor
from tactful_cli.flag_watch import FlagOptions, remarks_of
from tactful_cli.graph_stream import GraphLine, GraphStream
from tactful_cli.mcp.session import Session, WordsPolicy

WAIT_S, END_S = 0.25, 5.0
STUDY_SETTINGS = ["study.participants", "study.no_words"]


class Feed(Protocol):
    """Fills a session from threads of its own."""

    def start(self) -> None:
        """Begin."""

    def close(self) -> None:
        """End."""


class BagFeed:
    """Run the monitor on a bag, as `tactful flags` does."""

    def __init__(self, bag: Path, options: FlagOptions, session: Session, log: Callable[[str], None]) -> None:
        self._bag, self._options, self._session, self._log = bag, options, session, log
        self._ending = Event()
        self._thread = Thread(target=self._run, name="bag", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """Stop reading."""
        self._ending.set()
        self._thread.join(END_S)

    def _run(self) -> None:
        try:
            self._read()
            self._session.follow()
        except (TactfulError, MessageError, OSError) as error:
            self._session.problem = str(error)
            self._log(str(error))
        self._session.read.set()

    def _read(self) -> None:
        with BagReader(self._bag, self._options.names) as bag:
            senses = self._options.senses(bag, str(self._bag))
            clock = ReplayClock()
            monitor = replay_monitor(senses.sources, clock, self._options.fusion)
            for _, taken in feed_monitor(senses, monitor, clock):
                self._session.take(taken)
                if self._ending.is_set():
                    return
            for remark in remarks_of(bag, senses, monitor):
                self._log(remark)


class GraphFeed:
    """Listen to the topics of a running graph, and ask its monitor whose words stay private."""

    def __init__(self, stream: GraphStream, session: Session, log: Callable[[str], None]) -> None:
        self._stream, self._session, self._log = stream, session, log
        self._monitor = f"{stream.namespace}/monitor"
        self._instance, self._asked = "", 0
        self._ending, self._spoken = Event(), Event()
        self._threads = [Thread(target=work, daemon=True) for work in (self._listen, self._follow)]

    def start(self) -> None:
        """Begin to listen."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the process that listens."""
        self._ending.set()
        self._spoken.set()
        for thread in self._threads:
            thread.join(END_S)
        self._stream.close()

    def _listen(self) -> None:
        while not self._ending.is_set():
            if (line := self._stream.get(WAIT_S)) is None:
                continue
            try:
                self._take(line)
            except RecordError as error:
                self._log(f"{line.topic}: a message was left out: {error}")
            except OSError:  # the process starts again, and the next heartbeat asks again
                self._instance = ""

    def _take(self, line: GraphLine) -> None:
        if line.kind == "reply" and line.record.get("id") == self._asked:
            if values := line.record.get("values"):
                self._session.policy = WordsPolicy.of_settings(values)
            else:
                self._instance = ""  # the next heartbeat asks again
            return
        taken = line.read()
        if isinstance(taken, MonitorStatus) and taken.node == self._monitor and taken.instance_id != self._instance:
            self._session.policy = WordsPolicy(is_known=False)
            self._asked = self._stream.send({"get": STUDY_SETTINGS})
            self._instance = taken.instance_id
        self._session.take(taken)
        if isinstance(taken, Utterance | RobotSpeech):
            self._spoken.set()

    def _follow(self) -> None:
        try:
            self._session.follow()
            while not self._ending.is_set():
                self._spoken.wait()
                self._spoken.clear()
                self._session.follow()
        except EngineFailedError as error:
            self._session.problem = str(error)
            self._log(str(error))
