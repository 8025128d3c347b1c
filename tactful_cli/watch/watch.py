"""`tactful watch`: see in the terminal, or as plain lines in a log, what happens in a running graph."""

import json
import os
import re
import signal
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Annotated

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S
from norm_core.streams.watermarks import JUMP_NS
from tactful_cli.console import complain, out
from tactful_cli.graph_stream import GraphLine, GraphStream
from tactful_cli.up.profile import NAMESPACE, node_names
from tactful_cli.verb_options import make_app
from tactful_cli.watch.graph_view import GraphView
from tactful_cli.watch.node_view import WatchRow
from tactful_cli.watch.talk_order import TalkOrder

MAX_CHARACTERS = 500
TIME_WIDTH, LABEL_WIDTH = 8, 9
LEAST_TEXT = 30  # columns; where fewer are left beside a label, the text goes on below it

_JOINERS = "\u200c\u200d"  # which Persian, Hindi and emoji need
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_WRAPPER = Console()  # Text asks one how to wrap; nothing is printed on it


def plain(text: str) -> str:
    """Replace what a terminal would obey, turn around or hide, and cut what is too long."""
    cut = text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."
    return "".join(_plain_character(character) for character in cut)


def row_lines(row: WatchRow, when: str, width: int | None) -> Iterator[Text]:
    """Lay a row out; without a width, each text stays on one line. No line ends in spaces."""
    label = (f"{plain(row.label):{LABEL_WIDTH}} ", row.tone.value)
    yield from hanging(Text.assemble((f"{when:{TIME_WIDTH}} ", "dim"), label), row.text, width)
    for name, value in row.details:
        indent = " " * (TIME_WIDTH + 1 + LABEL_WIDTH + 1)
        yield from hanging(Text.assemble(indent, (f"{name:{LABEL_WIDTH}} ", "dim")), value, width)


def hanging(head: Text, text: str, width: int | None) -> Iterator[Text]:
    """Put a text beside its head, and what is left of it below, as far right where there is room."""
    body = Text(plain(text))
    if width is None:
        yield Text.assemble(head, body)
        return
    indent = cell_len(head.plain)
    if width - indent < LEAST_TEXT:
        head, body, indent = Text(), Text.assemble(head, body), 0
    for line in body.wrap(_WRAPPER, width - indent):
        line.rstrip()
        yield Text.assemble(head, line)
        head = Text(" " * indent)


def _plain_character(character: str) -> str:
    if character in "\t\n\r":
        return " "
    is_hidden = unicodedata.category(character) in _HIDDEN and character not in _JOINERS
    return "\ufffd" if is_hidden else character


class EventScreen:
    """Rows as they come, wrapped at the width of a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def print(self, rows: Iterable[WatchRow], when: str) -> None:
        """Print rows with a time of day."""
        width = self._console.width if self._console.is_terminal else None
        for row in rows:
            for line in row_lines(row, when, width):
                self._console.print(line, soft_wrap=True)


NOTHING_AFTER_S = 10.0


class Silence:
    """Say once where nothing is published, and again after it was."""

    def __init__(self, namespace: str, log: Callable[[str], None]) -> None:
        self._namespace, self._log = namespace, log
        self._since_s, self._is_told = time.monotonic(), False

    def take(self, line: GraphLine | None) -> None:
        """Take a line, or that none came."""
        if line:
            self._since_s, self._is_told = time.monotonic(), False
        elif not self._is_told and time.monotonic() - self._since_s > NOTHING_AFTER_S:
            self._is_told = True
            try:
                remedy = remedy_for(self._namespace, node_names())
            except TactfulError:
                remedy = f"run {PROGRAM} doctor"
            self._log(f"{self._namespace}/*: nothing is published; {remedy}")


def remedy_for(namespace: str, nodes: Iterable[str]) -> str:
    """Return what to do where a namespace is silent while these nodes run."""
    parts = (re.fullmatch(rf"(.*)/{NAMESPACE}/[^/]+", node) for node in nodes)
    robots = sorted({part[1].strip("/") for part in parts if part})
    if namespace.removesuffix(NAMESPACE).strip("/") in robots:
        return f"its nodes run and send nothing; look at the log of {PROGRAM} up"
    if robots:
        options = [f"give --namespace {robot}" if robot else "leave --namespace out" for robot in robots]
        return f"nodes run in another namespace; {' or '.join(options)}"
    return f"no nodes run here; start them with {PROGRAM} up, or check ROS_DOMAIN_ID"


class ArrivalClock:
    """The times of lines by this machine's clock: stamps may be of another one, or of a recording."""

    def __init__(self) -> None:
        self._delay_ns: int | None = None  # the smallest from a stamp to its arrival

    def find_time_ns(self, line: GraphLine) -> int:
        """Return when speech began, or when anything else arrived."""
        stamp_ns: int | None = (
            line.record.get("start_ns", line.stamp_ns) if line.kind in {"utterance", "robot_speech"} else None
        )
        if stamp_ns is None:
            return line.arrival_ns
        delay_ns = line.arrival_ns - stamp_ns
        if self._delay_ns is None or not 0 <= delay_ns - self._delay_ns < JUMP_NS:
            self._delay_ns = delay_ns
        return stamp_ns + self._delay_ns


app = make_app()

WAIT_S = 0.25
HOLD_NS = 3 * NS_PER_S  # for which a row waits for words that were said before it
LOOK_EVERY_S = 1.0  # for silent nodes


@app.command()
def watch(
    namespace: Annotated[str, typer.Option(help=f"Namespace of the robot, as given to {PROGRAM} up.")] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each message as one line of JSON, without the pictures.")
    ] = False,
) -> None:
    """Show speech, flags, decisions and health of a running graph, until Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts with &
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a plain terminal may have few characters
    with closing(GraphStream(namespace, "watch", _complain)) as stream:
        view = GraphView(stream.namespace)
        try:
            _print_json(stream) if as_json else _show(stream, view)
        except KeyboardInterrupt:
            if not as_json:
                out.print(view.talk.format())
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the flush at exit would fail too
            if not isinstance(error, BrokenPipeError):
                raise TactfulError(
                    f"watch: standard output: cannot be written: {error.strerror}; make room, or name another file"
                ) from error


def _complain(text: str) -> None:
    complain(f"watch: {text}")


def _print_json(stream: GraphStream) -> None:
    silence = Silence(stream.namespace, _complain)
    while True:
        line = stream.get(WAIT_S)
        silence.take(line)
        if line:
            # ASCII alone: no terminal takes a control character of a transcript for a command.
            print(json.dumps(asdict(line)), flush=True)


def _show(stream: GraphStream, view: GraphView) -> None:
    """Print what happens as rows, without an end."""
    silence = Silence(stream.namespace, _complain)
    screen, order, clock = EventScreen(out), TalkOrder(HOLD_NS), ArrivalClock()
    looked_s = 0.0
    try:
        while True:
            line, now_ns = stream.get(WAIT_S), time.time_ns()
            silence.take(line)
            if line:
                add_line(order, view, line, clock)
            if time.monotonic() - looked_s >= LOOK_EVERY_S:
                looked_s = time.monotonic()
                order.add(now_ns, [*view.nodes.take_time(now_ns)])
            _print(screen, order.due(now_ns))
    except KeyboardInterrupt:
        _print(screen, order.due())
        raise


def add_line(order: TalkOrder, view: GraphView, line: GraphLine, clock: ArrivalClock) -> None:
    """Add what a line is worth; an utterance or a mark also shows that all words before it have arrived."""
    at_ns = clock.find_time_ns(line)
    order.add(at_ns, [*view.take(line)])
    if line.kind == "utterance":
        order.complete(at_ns)


def _print(screen: EventScreen, due: Iterable[tuple[int, Sequence[WatchRow]]]) -> None:
    for at_ns, rows in due:
        screen.print(rows, time.strftime("%H:%M:%S", time.localtime(at_ns // NS_PER_S)))
