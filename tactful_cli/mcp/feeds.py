"""What fills a session: the replay of a bag, or the topics of a running graph."""

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from norm_core.bags.reader import BagReader
from norm_core.records.json_codec import RecordError
from norm_core.records.messages import MessageError
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import MonitorStatus
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock
from sim_replays.drivers.bag_driver import feed_monitor, replay_monitor
from study_desk.privacy.words_policy import WordsPolicy
from tactful_cli.flag_watch import FlagOptions, remarks_of
from tactful_cli.graph_stream import GraphLine, GraphStream
from tactful_cli.mcp.session import Session

WAIT_S, END_S = 0.25, 5.0
STUDY_SETTINGS = ["study.participants", "study.no_words"]
Log = Callable[[str], None]


class Feed:
    """Threads that fill a session until it is closed. What ends one is told, and the session stays as it is."""

    def __init__(self, session: Session, log: Log, *works: Callable[[], None]) -> None:
        self.session, self.log, self.ending = session, log, Event()
        self._threads = [Thread(target=self._run, args=(work,), daemon=True) for work in works]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End."""
        self.ending.set()
        for thread in self._threads:
            thread.join(END_S)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (TactfulError, MessageError, OSError) as error:
            self.session.problem = str(error)
            self.log(str(error))
        self.session.read.set()


class BagFeed(Feed):
    """Run the monitor on a bag, as `tactful flags` does."""

    def __init__(self, bag: Path, options: FlagOptions, session: Session, log: Log) -> None:
        super().__init__(session, log, self._read)
        self._bag, self._options = bag, options

    def _read(self) -> None:
        with BagReader(self._bag, self._options.names) as bag:
            senses, clock = self._options.senses(bag, str(self._bag)), ReplayClock()
            monitor = replay_monitor(senses.sources, clock)
            for _, taken in feed_monitor(senses, monitor, clock):
                self.session.take(taken)
                if self.ending.is_set():
                    return
            for remark in remarks_of(bag, senses, monitor):
                self.log(remark)
        self.session.follow()


class GraphFeed(Feed):
    """Listen to the topics of a running graph, and ask its monitor whose words stay private."""

    def __init__(self, stream: GraphStream, session: Session, log: Log) -> None:
        super().__init__(session, log, self._listen, self._follow)
        self._stream, self._spoken = stream, Event()
        self._instance, self._asked = "", 0
        session.read.set()

    def close(self) -> None:
        """End the process that listens, too."""
        self._spoken.set()
        super().close()
        self._stream.close()

    def _listen(self) -> None:
        while not self.ending.is_set():
            if (line := self._stream.get(WAIT_S)) is None:
                continue
            try:
                self._take(line)
            except RecordError as error:
                self.log(f"{line.topic}: a message was left out: {error}")
            except OSError:  # the process starts again, and the next heartbeat asks again
                self._instance = ""

    def _take(self, line: GraphLine) -> None:
        if line.kind == "reply" and line.record.get("id") == self._asked:
            if values := line.record.get("values"):
                self.session.policy = WordsPolicy.of_settings(values)
            else:
                self._instance = ""  # the next heartbeat asks again
        taken = line.read()
        is_monitor = isinstance(taken, MonitorStatus) and taken.node == f"{self._stream.namespace}/monitor"
        if is_monitor and taken.instance_id != self._instance:
            self.session.policy = WordsPolicy(is_known=False)
            self._asked, self._instance = self._stream.send({"get": STUDY_SETTINGS}), taken.instance_id
        self.session.take(taken)
        if isinstance(taken, Utterance | RobotSpeech):
            self._spoken.set()

    def _follow(self) -> None:
        while not self.ending.is_set():
            self.session.follow()
            self._spoken.wait()
            self._spoken.clear()
