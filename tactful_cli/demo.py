"""`tactful demo`: play a shipped session through the robot's nodes, over real DDS."""

import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from norm_core.records.decision import Decision
from norm_core.records.episode import Query
from norm_core.records.flag import Attribute, FlagState, Polarity, SocialFlag
from norm_core.records.json_codec import canonical, from_json
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import Health, MonitorStatus
from norm_core.records.topics import (
    DECISIONS_TOPIC,
    FLAGS_TOPIC,
    QUERIES_TOPIC,
    ROBOT_SPEECH_TOPIC,
    STATUS_TOPIC,
    UTTERANCES_TOPIC,
    WINDOWS_TOPIC,
    full_topic,
)
from norm_core.records.window import ClosedWindow
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_core.runtime.wording import count_of
from norm_monitor.encounters.demo_session import DemoSession, write_demo_session
from norm_monitor.replay.node_driver import END, NodeOutput, play_over_dds
from scoring.event_matching import match_events
from tactful_cli.console import err, out, print_json
from tactful_cli.verb_options import AsJson, make_app
from tactful_cli.watch.graph_view import FlagView, SpeechView, decision_row
from tactful_cli.watch.node_view import Tone, WatchRow
from tactful_cli.watch.talk_order import TalkOrder
from tactful_cli.watch.watch import EventScreen

TOLERANCE_S = 2.0
# The longest utterance, and the time to transcribe it.
HOLD_NS = 20 * NS_PER_S
MARKS = {Polarity.ERROR: ("▼", "red"), Polarity.COMPETENCE: ("▲", "green")}
RECORDS: dict[str, type] = {
    full_topic(ROBOT_SPEECH_TOPIC): RobotSpeech,
    full_topic(UTTERANCES_TOPIC): Utterance,
    full_topic(QUERIES_TOPIC): Query,
    full_topic(DECISIONS_TOPIC): Decision,
    full_topic(FLAGS_TOPIC): SocialFlag,
    full_topic(WINDOWS_TOPIC): ClosedWindow,
    full_topic(STATUS_TOPIC): MonitorStatus,
}


class DemoLog:
    """Print the nodes' output as `watch` does, and keep it for the report."""

    def __init__(self, session: DemoSession, console: Console) -> None:
        self.flags: dict[str, SocialFlag] = {}  # those that stand
        self.withdrawn: dict[str, SocialFlag] = {}  # as they stood last
        self.decisions: list[Decision] = []
        self.windows: list[ClosedWindow] = []
        self.statuses: dict[str, MonitorStatus] = {}
        self._console, self._scenes = console, list(session.scenes)
        self._start_ns = self._at_ns = session.truth.start_ns
        self._speech, self._flag_view = SpeechView(), FlagView()
        self._order = TalkOrder(HOLD_NS)
        self._noted: set[str] = set()
        self._shown: dict[str, set[tuple[Polarity, frozenset[Attribute]]]] = {}  # of each flag

    def take(self, output: NodeOutput) -> None:
        """Take one output; print what has now come in full, in the order in which it happened."""
        self._at_ns = max(self._at_ns, output.at_ns)
        if output.topic in RECORDS:
            message: Any = from_json(RECORDS[output.topic], canonical(output.message))
            at_ns = self._at_ns
            if isinstance(message, Utterance):
                self._order.complete(message.start_ns)
                at_ns = message.start_ns
            self._order.add(at_ns, [*self._rows(message)])
        self._print(self._order.due(self._at_ns))

    def end(self) -> None:
        """Print what is held back."""
        self._print(self._order.due())

    def _print(self, due: Iterable[tuple[int, Sequence[WatchRow]]]) -> None:
        for at_ns, rows in due:
            while self._scenes and self._scenes[0].start_ns <= at_ns:
                self._console.print(f"\n[bold]{self._scenes.pop(0).title}[/]")
            EventScreen(self._console).print(rows, self.clock(at_ns))

    def clock(self, at_ns: int) -> str:
        """Format the time since the start of the session as minutes and seconds."""
        seconds = max(0, at_ns - self._start_ns) // NS_PER_S
        return f"{seconds // 60}:{seconds % 60:02}"

    def _rows(self, message: Any) -> Iterator[WatchRow]:
        match message:
            case RobotSpeech():
                yield from self._speech.take_robot_speech(message)
            case Utterance() if message.text:
                yield from self._speech.take_utterance(message)
            case Query():
                others = "; ".join(f"the {other.role} is {other.doing}" for other in message.others)
                yield WatchRow(label="choice", text=f"What next? Here {others}.")
            case Decision():
                self.decisions.append(message)
                yield decision_row(message)
            case SocialFlag():
                yield from self._flag_rows(message)
            case ClosedWindow():
                self.windows.append(message)
            case MonitorStatus():
                before = self.statuses.get(message.node, message)
                self.statuses[message.node] = message
                yield from self._complaints(message, before)

    def _flag_rows(self, flag: SocialFlag) -> Iterator[WatchRow]:
        is_withdrawn = flag.state is FlagState.WITHDRAWN
        is_reopened = not is_withdrawn and self.withdrawn.pop(flag.event_id, None) is not None
        if is_withdrawn:
            self.withdrawn[flag.event_id] = self.flags.pop(flag.event_id, flag)
        else:
            self.flags[flag.event_id] = flag
        # The order of the attributes changes with their probabilities, and is no news.
        shown = self._shown.setdefault(flag.event_id, set())
        news = flag.polarity, frozenset(flag.attributes)
        if news in shown and not (is_withdrawn or is_reopened):
            return
        shown.add(news)
        # In lockstep, the nodes' clocks are not the session's.
        for row in self._flag_view.take(replace(flag, decision_ns=self._at_ns)):
            yield replace(row, details=tuple(part for part in row.details if part[0] in {"was", "why", "instead"}))

    def _complaints(self, status: MonitorStatus, before: MonitorStatus) -> Iterator[WatchRow]:
        """Report each once. What only one heartbeat states is no fault: the nodes started a moment ago."""
        # In lockstep, the nodes' wall clocks see the bag stand still at times. That is no fault.
        if status is before or status.health in {Health.OK, Health.STALE}:
            return
        # Details in brackets change with every heartbeat.
        stated_before = {reason.split(" (")[0] for reason in before.reasons}
        for reason in status.reasons:
            name = reason.split(" (")[0]
            key = f"{status.node}{name}"
            if name in stated_before and key not in self._noted and "being loaded" not in reason:
                self._noted.add(key)
                yield WatchRow(label="node", text=f"{status.node.split('/')[-1]}: {reason}", tone=Tone.NOTE)

    def dropped(self) -> int:
        """Count messages lost by the middleware or a queue, and windows closed without a source."""
        statuses = self.statuses.values()
        counters = (counter for status in statuses for counter in status.counters)
        lost = sum(counter.count for counter in counters if counter.name == "messages_lost")
        queues = sum(queue.dropped for status in statuses for queue in status.queues)
        return lost + queues + sum(bool(window.missing) for window in self.windows)


def report(session: DemoSession, log: DemoLog, end: Mapping[str, Any], took_s: float) -> dict[str, Any]:
    """Summarize the demo's result as plain JSON."""
    pairs = _pairs(session, log.flags)
    right = {scene.choice.query.query_id: scene.choice.right for scene in session.scenes}
    return {
        "took_s": round(took_s, 1),
        "played_in_s": round(end["took_s"], 1),
        "marked": len(session.truth.events),
        "flagged": len(log.flags),
        "found": len(pairs),
        "found_but_withdrawn": len(_pairs(session, log.withdrawn).keys() - pairs.keys()),
        "choices": len(right),
        "choices_right": sum(
            d.chosen_index is not None and d.chosen_index == right.get(d.query_id) for d in log.decisions
        ),
        "window_digests": [window.sha256 for window in log.windows],
        "windows_late": sum(window.late for window in log.windows),
        "dropped": log.dropped(),
        "lost": end["lost"],
    }


def print_report(session: DemoSession, log: DemoLog, figures: Mapping[str, Any], console: Console) -> None:
    """Print the summary for a person."""
    console.print()
    console.print(_table(session, log), soft_wrap=False)
    event_count, withdrawn_count = figures["found"], figures["found_but_withdrawn"]
    withdrawn = f"; {withdrawn_count} more flagged and then withdrawn" if withdrawn_count else ""
    console.print(
        f"{event_count} of {figures['marked']} marked events flagged{withdrawn} (same polarity, a shared attribute, "
        f"within {TOLERANCE_S:.0f} s). Other flags: {figures['flagged'] - event_count}. "
        "Two encounters are too few to measure anything: docs/results/monitor.md has the figures of many."
    )
    console.print(f"{figures['choices_right']} of {figures['choices']} choices match the author's answer.")
    lost = sum(figures["lost"].values()) + figures["dropped"]
    if lost or figures["windows_late"]:
        late = count_of(figures["windows_late"], "late window")
        console.print(f"{lost} dropped, {late}; the machine was too slow for its rate", style="dim")


def _pairs(session: DemoSession, flags_by_id: Mapping[str, SocialFlag]) -> dict[int, int]:
    events, flags = session.truth.events, list(flags_by_id.values())

    def agree(event: int, flag: int) -> bool:
        shared = {*events[event].attributes} & {*flags[flag].attributes}
        return events[event].polarity is flags[flag].polarity and bool(shared)

    onsets_ns = [event.onset_ns for event in events], [flag.onset_ns for flag in flags]
    return dict(match_events(*onsets_ns, s_to_ns(TOLERANCE_S), agree).pairs)


def _table(session: DemoSession, log: DemoLog) -> Table:
    pairs, flags = _pairs(session, log.flags), list(log.flags.values())
    withdrawn = _pairs(session, log.withdrawn)
    rows: list[tuple[int, Text, Text]] = []
    for place, event in enumerate(session.truth.events):
        flag = flags[pairs[place]] if place in pairs else None
        no_flag = Text("flagged, then withdrawn" if place in withdrawn else "–", "dim")
        flag_text = _about(flag.polarity, flag.attributes) if flag else no_flag
        rows.append((event.onset_ns, _about(event.polarity, event.attributes, event.rationale), flag_text))
    for place, flag in enumerate(flags):
        if place not in pairs.values():
            rows.append((flag.onset_ns, Text("–", "dim"), _about(flag.polarity, flag.attributes)))
    table = Table("", "marked beforehand", "flagged", box=None, padding=(0, 2, 0, 0), title_justify="left")
    for onset_ns, marked, flagged in sorted(rows, key=lambda row: row[0]):
        table.add_row(Text(log.clock(onset_ns), "dim"), marked, flagged)
    return table


def _about(polarity: Polarity, attributes: Sequence[Attribute], rationale: str = "") -> Text:
    mark, colour = MARKS[polarity]
    about = ", ".join(attribute.replace("_", " ") for attribute in attributes)
    return Text.assemble((f"{mark} {about}", colour), (f"\n{rationale}" if rationale else "", "dim"))


app = make_app()


@app.command()
def demo(
    folder: Annotated[Path | None, typer.Option(help="Folder to write to; default: a new temporary folder.")] = None,
    rate: Annotated[
        float, typer.Option(min=0.1, max=10, help="Playback speed as a multiple of the recorded one.")
    ] = 1.0,
    fast: Annotated[
        bool, typer.Option("--fast", help="Play in lockstep: as fast as the models allow, without drops.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Play two short encounters to the camera, ears, monitor and selector over DDS, and show their output."""
    if find_spec("norm_nodes") is None or find_spec("norm_bench") is None:
        raise TactfulError("demo: the nodes are not installed; run ./tactful demo in a checkout")
    began_s = time.monotonic()
    folder = folder or Path(tempfile.mkdtemp(prefix="tactful-demo-"))
    # The recorder never overwrites a bag.
    folder = folder / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True)
    session = write_demo_session(folder / "session")
    length_s = (session.truth.end_ns - session.truth.start_ns) / 1e9
    pace = "as fast as the models allow" if fast else f"{length_s / rate:.0f} s"
    console = Console(quiet=True) if as_json else out
    err.print(f"Starting camera, ears, monitor and selector; then {length_s:.0f} s of talk, {pace}.")
    end: dict[str, Any] = {}
    log = DemoLog(session, console)
    for output in play_over_dds(session.bag, 0.0 if fast else rate, in_lockstep=True):
        if output.topic == END:
            end = output.message
        else:
            log.take(output)
    log.end()
    figures = report(session, log, end, time.monotonic() - began_s)
    files = {"session": session.bag, "labels": session.bag.with_name(f"{session.bag.name}.truth.json")}
    if as_json:
        print_json({**figures, "files": {name: str(path) for name, path in files.items()}})
    else:
        print_report(session, log, figures, out)
        for name, path in files.items():
            out.print(f"{name:<8} {path}")
        out.print(f"More: {PROGRAM} flags {session.bag} --topic /audio --explain")
    if not (log.flags and log.decisions):
        err.print(f"demo: no flag or no decision arrived; run {PROGRAM} doctor to find what does not work")
        raise typer.Exit(1)
