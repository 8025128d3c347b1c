"""What `watch` prints of a recorded session, in a log and in terminals of two widths."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from norm_core.records.decision import CandidateJudgement, Decision, Veto
from norm_core.records.flag import Attribute, FlagState, Severity, SocialFlag, Tier
from norm_core.records.json_codec import to_plain
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import LatencySegment, Provenance
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance, make_silence_mark
from norm_core.records.status import MonitorStatus
from norm_core.runtime.time import NS_PER_MS, NS_PER_S, ns_to_s, s_to_ns
from tactful_cli.graph_stream import GraphLine, parse_line
from tactful_cli.watch.graph_view import GraphView
from tactful_cli.watch.talk_order import TalkOrder
from tactful_cli.watch.watch import HOLD_NS, ArrivalClock, EventScreen, add_line, remedy_for
from tests.action_selector.questions import error_flag
from tests.node_records import node_status

SESSION = [
    line
    for text in Path(__file__).with_name("session.jsonl").read_text(encoding="utf-8").splitlines()
    if (line := parse_line(text))
]
AT_NS = 1_000 * NS_PER_S
FLAG = error_flag(
    "e",
    stamp_ns=AT_NS,
    attributes=(Attribute.EMOTIONS,),
    probability=0.75,
    onset_ns=AT_NS - 3 * NS_PER_S,
    decision_ns=AT_NS,
)
STATUS = node_status(AT_NS, node="/tactful/monitor", instance_id="a", started_ns=1)
HOSTILE = "\x1b[2J\x1b]0;title\x07[red]hi[/red]\u202eback\x9b31m\r\n\x00\u2028tail"


@pytest.fixture
def view() -> GraphView:
    return GraphView("/tactful")


def line_of(kind: str, record: object, arrival_ns: int = AT_NS, topic: str = "") -> GraphLine:
    return GraphLine(kind=kind, topic=topic or f"/tactful/{kind}s", arrival_ns=arrival_ns, record=to_plain(record))


def log_of(view: GraphView, *lines: GraphLine) -> str:
    """What a log gets."""
    written = io.StringIO()
    screen = EventScreen(Console(file=written, highlight=False))
    for line in lines:
        screen.print(view.take(line), "12:00:00")
    return written.getvalue()


def flag_log(view: GraphView, *flags: SocialFlag) -> str:
    return log_of(view, *(line_of("flag", flag) for flag in flags))


def status_log(view: GraphView, *statuses: MonitorStatus) -> str:
    return log_of(view, *(line_of("status", status) for status in statuses))


def terminal_console(width: int, written: io.StringIO) -> Console:
    return Console(file=written, width=width, height=40, force_terminal=True, highlight=False)


def test_a_recorded_session_reads_as_a_log(view: GraphView) -> None:
    log = log_of(view, *SESSION)
    assert "someone   Hello, can you tell me where the old bridge is?" in log
    assert "robot     Newspapers are one euro fifty." in log
    assert "#1 ERROR opened: major, conversational mechanics, probability 0.73, 9.5 s after its onset" in log
    assert "measured  silence before the answer" in log
    assert "instead   Answer within two seconds" in log
    assert "#2 ERROR updated: another reason" in log
    assert "#1 ERROR closed: conversational mechanics, probability 0.73" in log
    assert "selector: sentence encoder: it is being loaded" in log
    assert "\x1b" not in log
    assert "for example in the row" not in log  # what the microphone made of the robot's words


@pytest.mark.parametrize("width", [80, 160])
def test_no_line_is_wider_than_the_terminal(view: GraphView, width: int) -> None:
    written = io.StringIO()
    screen = EventScreen(terminal_console(width, written))
    for line in SESSION:
        screen.print(view.take(line), "12:00:00")
    shown = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", written.getvalue())
    assert "#1 ERROR opened" in shown
    assert max(map(len, shown.splitlines())) <= width


def test_hostile_words_reach_no_terminal_raw(view: GraphView) -> None:
    said = Utterance(stamp_ns=1, utterance_id="u", speaker=Speaker.USER, text=HOSTILE, start_ns=1, end_ns=2)
    log = log_of(view, line_of("utterance", said), line_of("flag", replace(FLAG, rationale=HOSTILE)))
    assert "[red]hi[/red]" in log
    assert "tail" in log
    assert len(log.splitlines()) == 5
    assert not set(log) & set("\x1b\x07\x00\x9b\r\u202e\u2028")


def test_a_reply_is_printed_behind_the_words_that_it_answers(view: GraphView) -> None:
    """Stamps are of another clock, and words come once they are transcribed."""
    order, clock = TalkOrder(HOLD_NS), ArrivalClock()

    def arrive(kind: str, entry: Utterance | RobotSpeech, at_s: float) -> list[tuple[float, str]]:
        now_ns = AT_NS + s_to_ns(at_s)
        add_line(order, view, line_of(kind, entry, now_ns), clock)
        return [(ns_to_s(when_ns - AT_NS), row.text) for when_ns, rows in order.due(now_ns) for row in rows]

    said = Utterance(
        stamp_ns=s_to_ns(4), utterance_id="u", speaker=Speaker.USER, text="Why?", start_ns=s_to_ns(4), end_ns=s_to_ns(5)
    )
    reply = RobotSpeech(stamp_ns=s_to_ns(6), speech_id="r", state=SpeechEdge.START, text="Because.")
    assert arrive("utterance", make_silence_mark(s_to_ns(3.5), "/audio"), 3.5) == []
    assert arrive("robot_speech", reply, 6.0) == []
    assert arrive("utterance", said, 8.0) == [(4.0, "Why?")]
    assert arrive("utterance", make_silence_mark(s_to_ns(8), "/audio"), 8.1) == [(6.0, "Because.")]
    unanswered = replace(reply, stamp_ns=s_to_ns(9), text="Hello?")
    assert arrive("robot_speech", unanswered, 9.0) == []
    assert [row.text for _, rows in order.due(AT_NS + s_to_ns(9) + HOLD_NS) for row in rows] == ["Hello?"]


def test_a_flag_tells_what_changed(view: GraphView) -> None:
    stronger = replace(FLAG, state=FlagState.UPDATED, probability=0.9, severity=Severity.SEVERE)
    log = flag_log(view, FLAG, stronger, stronger)
    assert log.count("probability from 0.75 to 0.90, severity from major to severe") == 1
    assert log.count("#1 ERROR") == 2


def test_an_update_that_changes_nothing_to_read_is_left_out(view: GraphView) -> None:
    both = replace(FLAG, state=FlagState.UPDATED, attributes=(Attribute.EMOTIONS, Attribute.ENGAGEMENT))
    turned = replace(both, attributes=both.attributes[::-1], rationale="The robot ignored her.")
    assert "now about emotions, engagement" in flag_log(view, FLAG, both)
    assert "#1 ERROR updated: another reason" in flag_log(view, turned)
    unchanged = replace(turned, probability=0.751, tier=Tier.FUSED, cue_id="other")
    assert flag_log(view, both, turned, both, unchanged) == ""


def test_a_withdrawn_flag_can_be_opened_again(view: GraphView) -> None:
    why = "Withdrawn, as the judge reads it otherwise."
    withdrawn = replace(FLAG, state=FlagState.WITHDRAWN, probability=0.3, rationale=why)
    told = flag_log(view, FLAG, withdrawn).partition("#1 ERROR withdrawn: ")[2]
    assert told.startswith("emotions, probability 0.30")
    assert f"was       {FLAG.rationale}" in told
    assert f"why       {why}" in told
    assert "instead" not in told
    assert view.flags.open == []
    assert "#1 ERROR opened again" in flag_log(view, replace(FLAG, state=FlagState.UPDATED))
    assert len(view.flags.open) == 1


def test_a_flag_in_the_shadow_is_told_apart(view: GraphView) -> None:
    assert "opened in the shadow" in log_of(view, line_of("flag", FLAG, topic="/tactful/shadow/flags"))


def test_a_new_monitor_leaves_the_old_flags_without_an_end(view: GraphView) -> None:
    status_log(view, STATUS)
    flag_log(view, FLAG)
    log = status_log(view, replace(STATUS, instance_id="b", started_ns=2))
    assert "#1 without an end" in log
    assert "monitor: started anew, ok" in log
    assert view.flags.open == []


def test_a_node_that_goes_and_comes_back_is_told(view: GraphView) -> None:
    status_log(view, STATUS)
    assert not list(view.nodes.take_time(AT_NS + 4 * NS_PER_S))
    (row,) = view.nodes.take_time(AT_NS + 6 * NS_PER_S)
    assert row.text.startswith("monitor: no heartbeat for 5 s")
    assert "monitor: from silent to ok" in log_of(view, line_of("status", STATUS, AT_NS + 7 * NS_PER_S))


def test_a_decision_shows_its_vetoes_and_its_time(view: GraphView) -> None:
    decision = Decision(
        stamp_ns=1,
        decision_id="d",
        outcome=Outcome.ANSWERED,
        chosen_index=0,
        chosen="Step aside",
        candidates=(
            CandidateJudgement(index=0, action="Step aside", probability=0.8),
            CandidateJudgement(index=1, action="Bat", veto=Veto.SINGLETON, veto_reason="Anna bats"),
        ),
        explanation="Somebody comes.",
        decided_ns=1,
        provenance=Provenance(latency=(LatencySegment(name="decode", duration_ns=140 * NS_PER_MS),)),
    )
    log = log_of(view, line_of("decision", decision))
    assert "decision  Step aside, probability 0.80, after 140 ms" in log
    assert "vetoed    Bat: singleton, Anna bats" in log


def test_what_cannot_be_read_is_told_once(view: GraphView) -> None:
    broken = GraphLine(kind="flag", topic="/tactful/flags", arrival_ns=1, record={"event_id": "e"})
    log = log_of(view, broken, broken)
    assert log.count("refused") == 1


@pytest.mark.parametrize(
    ("nodes", "remedy"),
    [
        (["/right/tactful/monitor", "/right/tactful/ears", "/driver"], "give --namespace right"),
        (["/tactful/ears", "/b/c/tactful/ears"], "leave --namespace out or give --namespace b/c"),
        (["/left/tactful/monitor", "/right/tactful/ears"], "its nodes run and send nothing"),
        (["/driver", "/tactful_helper"], "start them with ./tactful up, or check ROS_DOMAIN_ID"),
    ],
)
def test_the_remedy_names_the_namespace_that_has_nodes(nodes: list[str], remedy: str) -> None:
    assert remedy in remedy_for("/left/tactful", nodes)
