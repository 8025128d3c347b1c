"""`tactful mcp`: give a language model the flags, the talk and advice of a running graph, as tools."""

import os
import signal
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Annotated

import typer

from action_selector.request import Request
from norm_core.records.decision import Decision
from norm_core.records.json_codec import RecordError, from_plain, to_plain
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import MonitorStatus
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import ExtraMissingError, format_install_command, is_installed
from norm_core.runtime.time import s_to_ns
from norm_monitor.session_log.session_config import WordsPolicy
from tactful_cli.console import complain
from tactful_cli.graph_stream import GraphLine, GraphStream
from tactful_cli.main import EXIT_INTERRUPTED
from tactful_cli.mcp.session import Advise, Session
from tactful_cli.verb_options import make_app

WAIT_S, SPARE_S = 0.25, 1.0
OF_REQUEST = ("candidates", "situation", "others", "facts")
STUDY_SETTINGS = ["study.participants", "study.no_words"]
Log = Callable[[str], None]


class GraphFeed:
    """Listen to the topics of a running graph, and ask its monitor whose words stay private."""

    def __init__(self, stream: GraphStream, session: Session, log: Log) -> None:
        self._stream, self._session, self._log = stream, session, log
        self._instance, self._asked, self._spoken = "", 0, Event()
        self._policy: WordsPolicy | None = None
        self.behind_ns = 0  # the monitor's time behind that of this machine, as where it is simulated

    def advise(self, request: Request, deadline_s: float) -> Decision:
        """Ask the graph's selector, while `listen` runs."""
        deadline_ns = time.time_ns() - self.behind_ns + s_to_ns(deadline_s)
        asked = {name: part for name, part in to_plain(request).items() if name in OF_REQUEST}
        reply = self._stream.reply_to({"select": {**asked, "deadline_ns": deadline_ns}}, deadline_s + SPARE_S)
        if reply["problem"]:
            raise TactfulError(reply["problem"])
        return from_plain(Decision, reply["decision"])

    def listen(self) -> None:
        """Take lines."""
        while not self._session.ended.is_set():
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
            while not self._session.ended.is_set():
                self._session.follow()
                self._spoken.wait(WAIT_S)
                self._spoken.clear()
        except TactfulError as error:
            self._session.problem = str(error)
            self._log(str(error))

    def _take(self, line: GraphLine) -> None:
        if line.kind == "reply" and line.record.get("id") == self._asked:
            if values := line.record.get("values"):
                policy = WordsPolicy.from_settings(values)
                if self._policy not in {None, policy}:
                    self._session.forget()  # what was said before was said under other consents
                self._session.policy = self._policy = policy
            else:
                self._instance = ""  # the next heartbeat asks again
        taken = line.read()
        is_monitor = isinstance(taken, MonitorStatus) and taken.node == f"{self._stream.namespace}/monitor"
        if is_monitor:
            self.behind_ns = line.arrival_ns - taken.stamp_ns
        if is_monitor and (instance := taken.instance_id + taken.config_sha256) != self._instance:
            self._session.policy = WordsPolicy(is_known=False)
            self._asked, self._instance = self._stream.send({"get": STUDY_SETTINGS}), instance
        self._session.take(taken)
        if isinstance(taken, Utterance | RobotSpeech):
            self._spoken.set()


app = make_app()


@app.command()
def mcp(
    namespace: Annotated[str, typer.Option(help="Namespace of the robot, where several share a ROS domain.")] = "",
    deadline: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.5, max=600, help="Time limit of a request.")
    ] = 10.0,
) -> None:
    """Serve flags, explanations, the talk so far and advice to a language model, until it disconnects or Ctrl-C.

    It uses the Model Context Protocol. It only reads and advises: it neither moves the robot nor speaks.
    """
    if not is_installed("mcp"):
        raise ExtraMissingError(f"mcp: the package mcp is missing; run {format_install_command('mcp')}")
    from tactful_cli.mcp.server import build_server  # noqa: PLC0415  of the extra

    stream = GraphStream(namespace, "mcp", _complain, commands=True)
    advise: Advise = lambda *asked: feed.advise(*asked)  # noqa: E731, PLW0108  feed is made below
    session = Session(f"graph {stream.namespace}", advise, lambda: time.time_ns() - feed.behind_ns)
    feed = GraphFeed(stream, session, _complain)
    server = build_server(session, deadline)
    # Python waits for these threads: one that a model still keeps busy as Python ends would abort the process.
    for work in (feed.listen, feed.follow):
        Thread(target=work).start()
    try:
        # The SDK's thread waits for the input and cannot be interrupted; what listens to a graph ends with the process.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: os._exit(EXIT_INTERRUPTED))
        server.run()
    finally:
        session.ended.set()


def _complain(text: str) -> None:
    complain(f"mcp: {text}")
