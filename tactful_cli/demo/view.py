"""The demo's display: one line per event and, on a terminal, lanes of speech below."""

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from norm_core.records.decision import Decision
from norm_core.records.episode import Query
from norm_core.records.flag import Attribute, Polarity, SocialFlag
from norm_core.records.json_codec import canonical, from_json
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.records.status import Health, MonitorStatus
from norm_core.records.window import ClosedWindow
from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_core.runtime.wording import count_of
from sim_replays.drivers.node_driver import NodeOutput
from sim_replays.examples.demo_session import DemoSession

RECORDS: dict[str, type] = {
    "/tactful/robot_speech": RobotSpeech,
    "/tactful/utterances": Utterance,
    "/tactful/queries": Query,
    "/tactful/decisions": Decision,
    "/tactful/flags": SocialFlag,
    "/tactful/windows": ClosedWindow,
    "/tactful/status": MonitorStatus,
}
ROBOT, USER, ERROR, COMPETENCE, CHOICE = "cyan", "yellow", "red", "green", "magenta"
MARKS = {Polarity.ERROR: ("▼", ERROR), Polarity.COMPETENCE: ("▲", COMPETENCE)}
_COLUMN_NS, _INDENT = NS_PER_S // 2, 14


@record
class DemoCounts:
    """The latest state of a flag, and the position in the session at which it first appeared."""

    flag: SocialFlag
    known_ns: int


class DemoView:
    """Show the nodes' output in order. Use it in a with statement."""

    def __init__(self, session: DemoSession, console: Console) -> None:
        self.flags: dict[str, DemoCounts] = {}
        self.decisions: list[Decision] = []
        self.windows: list[ClosedWindow] = []
        self.statuses: dict[str, MonitorStatus] = {}
        self._session, self._console = session, console
        self._scenes = list(session.scenes)
        self._start_ns = self._at_ns = session.truth.start_ns
        self._speech: dict[str, tuple[Speaker, int, int | None]] = {}
        self._noted: set[str] = set()
        self._shown: dict[str, set[tuple[Polarity, frozenset[Attribute]]]] = {}  # of each flag
        self._asked_s: dict[str, float] = {}
        self._wall_s = 0.0
        live = console.is_terminal and not console.is_dumb_terminal
        self._live = Live(console=console, auto_refresh=False, transient=True) if live else None

    def __enter__(self) -> Self:
        """Start the live display, on a terminal."""
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the live display and erase it."""
        if self._live:
            self._live.stop()

    def show(self, said: NodeOutput) -> Any:
        """Show one output, and return it as a record if it is one."""
        self._at_ns, self._wall_s = max(self._at_ns, said.at_ns), said.wall_s
        while self._scenes and self._scenes[0].start_ns <= self._at_ns:
            scene = self._scenes.pop(0)
            self._print(Text(""), Rule(Text(scene.title, style="bold"), style="dim", align="left"))
        told = from_json(RECORDS[said.topic], canonical(said.message)) if said.topic in RECORDS else None
        self._print(*self._lines(told))
        if self._live:
            self._live.update(self._panel(), refresh=True)
        return told

    def clock(self, at_ns: int) -> str:
        """Format the time since the start of the session as minutes and seconds."""
        seconds = max(0, at_ns - self._start_ns) // NS_PER_S
        return f"{seconds // 60}:{seconds % 60:02}"

    def _lines(self, told: Any) -> Iterator[RenderableType]:
        match told:
            case RobotSpeech():
                began = self._speech.get(told.speech_id, (Speaker.ROBOT, told.stamp_ns, None))
                ended_ns = told.stamp_ns if told.state is SpeechEdge.STOP else None
                self._speech[told.speech_id] = (Speaker.ROBOT, began[1], ended_ns)
                if told.state is SpeechEdge.START:
                    yield self._line(told.stamp_ns, "robot", ROBOT, Text(told.text))
            case Utterance() if told.text and told.speaker is not Speaker.ROBOT:
                self._speech[told.utterance_id] = (Speaker.USER, told.start_ns, told.end_ns)
                if told.final:
                    who = "user" if told.speaker is Speaker.USER else "someone"
                    yield self._line(told.start_ns, who, USER, Text(told.text))
            case Query():
                self._asked_s[told.query_id] = self._wall_s
                others = "; ".join(f"the {other.role} is {other.doing}" for other in told.others)
                yield self._line(told.stamp_ns, "choice", CHOICE, Text(f"What next? Here {others}."))
            case Decision():
                self.decisions.append(told)
                yield from self._decided(told)
            case SocialFlag():
                yield from self._flagged(told)
            case ClosedWindow():
                self.windows.append(told)
            case MonitorStatus():
                self.statuses[told.node] = told
                yield from self._complaints(told)

    def _decided(self, decision: Decision) -> Iterator[RenderableType]:
        for judged in decision.candidates:
            chosen = judged.index == decision.chosen_index
            mark = "→" if chosen else "✗" if judged.veto_reason else "·"
            why = judged.veto_reason or f"{100 * judged.probability:.0f} %"
            yield _below(
                Text.assemble((f"{mark} {judged.action}", f"bold {CHOICE}" if chosen else ""), (f"  {why}", "dim"))
            )
        if decision.outcome is not Outcome.ANSWERED:
            yield _below(Text(f"{decision.outcome.replace('_', ' ')}: {decision.explanation}"))
        took_ms = 1000 * (self._wall_s - self._asked_s.get(decision.query_id, self._wall_s))
        yield _below(Text(f"decided in {took_ms:.0f} ms", style="dim"))

    def _flagged(self, flag: SocialFlag) -> Iterator[RenderableType]:
        before = self.flags.get(flag.event_id)
        self.flags[flag.event_id] = DemoCounts(flag=flag, known_ns=before.known_ns if before else self._at_ns)
        # The order of the attributes changes with their probabilities, and is no news.
        shown = self._shown.setdefault(flag.event_id, set())
        if (news := (flag.polarity, frozenset(flag.attributes))) in shown:
            return
        shown.add(news)
        mark, colour = MARKS[flag.polarity]
        kind = f"{flag.severity} error" if flag.polarity is Polarity.ERROR else "competence"
        about = ", ".join(attribute.replace("_", " ") for attribute in flag.attributes)
        head = Text.assemble((kind, f"bold {colour}"), f"  {about}", (" (more was seen)" if before else "", "dim"))
        yield self._line(flag.onset_ns, mark, colour, head)
        yield _below(Text(flag.rationale))
        if flag.correction:
            yield _below(Text.assemble(("Instead: ", colour), flag.correction))
        after_s = ns_to_s(self._at_ns - flag.known_until_ns)
        yield _below(Text(f"known {max(after_s, 0.0):.1f} s after it was over", style="dim"))

    def _complaints(self, status: MonitorStatus) -> Iterator[RenderableType]:
        for reason in status.reasons if status.health is not Health.OK else ():
            # Report each once. Details in brackets change with every heartbeat, so they are no part of the key.
            key = f"{status.node}{reason.split(' (')[0]}"
            # In lockstep, the nodes' wall clocks see the bag stand still at times. That is no fault.
            if key not in self._noted and status.health is not Health.STALE and "being loaded" not in reason:
                self._noted.add(key)
                yield self._line(self._at_ns, "note", "dim", Text(f"{status.node.split('/')[-1]}: {reason}", "dim"))

    def _line(self, at_ns: int, who: str, colour: str, what: Text) -> RenderableType:
        return _row(self.clock(at_ns), Text(who, colour), what)

    def _print(self, *lines: RenderableType) -> None:
        for line in lines:
            self._console.print(line)

    def _panel(self) -> RenderableType:
        columns = max(20, self._console.width - _INDENT - 1)
        from_ns = self._at_ns - columns * _COLUMN_NS
        rows: list[RenderableType] = [Rule(style="dim")]
        for speaker, name, colour in ((Speaker.ROBOT, "robot", ROBOT), (Speaker.USER, "user", USER)):
            cells = [" "] * columns
            for who, begun_ns, ended_ns in self._speech.values():
                if who is speaker:
                    first = (begun_ns - from_ns) // _COLUMN_NS
                    last = ((self._at_ns if ended_ns is None else ended_ns) - from_ns) // _COLUMN_NS
                    for place in range(max(first, 0), min(last, columns - 1) + 1):
                        cells[place] = "█"
            rows.append(_lane(name, Text("".join(cells), style=colour)))
        marks = Text(" " * columns)
        # Errors last: where two flags share a place, the error stays visible.
        for seen in sorted(self.flags.values(), key=lambda one: one.flag.polarity is Polarity.ERROR):
            place = (seen.flag.onset_ns - from_ns) // _COLUMN_NS
            if 0 <= place < columns:
                mark, colour = MARKS[seen.flag.polarity]
                marks = marks[:place] + Text(mark, style=colour) + marks[place + 1 :]
        rows.append(_lane("flags", marks))
        length_ns = self._session.truth.end_ns
        facts = f"{self.clock(self._at_ns)} of {self.clock(length_ns)} · {self.counts()}"
        return Group(*rows, Text(facts, style="dim", no_wrap=True, overflow="ellipsis"))

    def counts(self) -> str:
        """Summarize the counts so far in one line."""
        frames = self._counter("camera", "frames_kept")
        said = self._counter("ears", "utterances_final")
        return (
            f"{count_of(frames, 'frame')} · {count_of(said, 'utterance')} · "
            f"{count_of(len(self.windows), 'window')} · {count_of(len(self.flags), 'flag')} · "
            f"{len(self.decisions)} decisions · {self.dropped()} dropped"
        )

    def dropped(self) -> int:
        """Count messages lost by the middleware or a queue, and windows closed without a source."""
        lost = sum(self._counter(node.split("/")[-1], "messages_lost") for node in self.statuses)
        queues = sum(queue.dropped for status in self.statuses.values() for queue in status.queues)
        return lost + queues + sum(bool(window.missing) for window in self.windows)

    def _counter(self, node: str, name: str) -> int:
        status = self.statuses.get(f"/tactful/{node}")
        return next((counter.count for counter in status.counters if counter.name == name), 0) if status else 0


def _lane(name: str, cells: Text) -> Text:
    return Text.assemble((f"{name:>{_INDENT - 2}} ", "dim"), cells)


def _below(what: Text) -> RenderableType:
    return _row("", Text(), what)


def _row(at: str, who: Text, what: Text) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=5, justify="right", style="dim")
    grid.add_column(width=7)
    grid.add_column()
    grid.add_row(at, who, what)
    return grid
