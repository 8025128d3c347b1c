"""What fills a session: the replay of a bag, or the topics of a running graph. Each runs in a thread until the end."""

from collections.abc import Callable
from pathlib import Path
from threading import Event

from norm_core.bags.reader import BagReader
from norm_core.records.json_codec import RecordError
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import MonitorStatus
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock
from sim_replays.drivers.bag_driver import feed_monitor, replay_monitor
from study_desk.log.session_config import WordsPolicy
from study_desk.study.study_folder import study_of
from tactful_cli.flag_watch import FlagOptions, remarks_of
from tactful_cli.graph_stream import GraphLine, GraphStream
from tactful_cli.mcp.session import Session

WAIT_S = 0.25
STUDY_SETTINGS = ["study.participants", "study.no_words"]
Log = Callable[[str], None]


def policy_of(bag: Path) -> WordsPolicy:
    """Return whose words of a bag may be told, by the log of its study."""
    of_study = study_of(bag)
    return WordsPolicy.of_participants(of_study[0].recording_of(of_study[1]).info.participants if of_study else ())


def read_bag(bag: Path, options: FlagOptions, session: Session, log: Log) -> None:
    """Run the monitor on a bag, as `tactful flags` does."""
    try:
        with BagReader(bag, options.names) as reader:
            senses, clock = options.senses(reader, str(bag)), ReplayClock()
            monitor = replay_monitor(senses.sources, clock)
            for _, taken in feed_monitor(senses.records(), monitor, clock):
                session.take(taken)
            for remark in remarks_of(reader, senses, monitor):
                log(remark)
        session.follow()
    except (TactfulError, ValueError, OSError) as error:
        session.problem = str(error)
        log(str(error))
    session.read.set()


class GraphFeed:
    """Listen to the topics of a running graph, and ask its monitor whose words stay private."""

    def __init__(self, stream: GraphStream, session: Session, log: Log) -> None:
        self._stream, self._session, self._log = stream, session, log
        self._instance, self._asked, self._spoken = "", 0, Event()
        self._policy: WordsPolicy | None = None
        self.behind_ns = 0  # the monitor's time behind that of this machine, as where it is simulated
        session.read.set()

    def listen(self) -> None:
        """Take lines."""
        while True:
            try:
                if line := self._stream.get(WAIT_S):
                    self._take(line)
            except (RecordError, TactfulError) as error:
                self._log(f"a message was left out: {error}")
            except OSError:  # the process starts again, and the next heartbeat asks again
                self._instance = ""

    def follow(self) -> None:
        """Read along what is said."""
        try:
            while True:
                self._session.follow()
                self._spoken.wait()
                self._spoken.clear()
        except TactfulError as error:
            self._session.problem = str(error)
            self._log(str(error))

    def _take(self, line: GraphLine) -> None:
        if line.kind == "reply" and line.record.get("id") == self._asked:
            if values := line.record.get("values"):
                policy = WordsPolicy.of_settings(values)
                if self._policy not in {None, policy}:
                    self._session.forget()  # what was said before was said under other consents
                self._session.policy = self._policy = policy
            else:
                self._instance = ""  # the next heartbeat asks again
        taken = line.read()
        is_monitor = isinstance(taken, MonitorStatus) and taken.node == f"{self._stream.namespace}/monitor"
        if is_monitor:
            self.behind_ns = line.arrival_ns - taken.stamp_ns
        if is_monitor and taken.instance_id != self._instance:
            self._session.policy = WordsPolicy(is_known=False)
            self._asked, self._instance = self._stream.send({"get": STUDY_SETTINGS}), taken.instance_id
        self._session.take(taken)
        if isinstance(taken, Utterance | RobotSpeech):
            self._spoken.set()
