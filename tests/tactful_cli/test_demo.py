"""What the demo shows of what nodes say, without nodes: on a narrow terminal, and where there is none."""

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from norm_core.records.decision import CandidateJudgement, Decision, Veto
from norm_core.records.flag import Attribute, FlagState, Polarity
from norm_core.records.json_codec import to_plain
from norm_core.records.outcome import Outcome
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance, make_silence_mark
from norm_core.records.status import Health
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.encounters.demo_session import DemoSession, write_demo_session
from norm_monitor.replay.node_driver import NodeOutput
from tactful_cli.demo import HOLD_NS, DemoLog, print_report, report
from tests.action_selector.questions import error_flag
from tests.node_records import node_status

END = {"took_s": 1.0, "lost": {}}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> DemoSession:
    return write_demo_session(tmp_path_factory.mktemp("demo") / "session")


def said(session: DemoSession) -> list[NodeOutput]:
    """A robot's turn, a user's, a choice and an error that a person marked too."""
    start_ns = session.truth.start_ns
    error = next(event for event in session.truth.events if event.polarity is Polarity.ERROR)
    query = session.scenes[0].choice.query

    def at(seconds: float) -> int:
        return start_ns + s_to_ns(seconds)

    edge = RobotSpeech(stamp_ns=at(1), speech_id="r", state=SpeechEdge.START, text="Hey! [bold]Want[/] to know?")
    utterance = Utterance(
        stamp_ns=at(4), utterance_id="u", speaker=Speaker.USER, text="Sure.", start_ns=at(4), end_ns=at(5)
    )
    decision = Decision(
        stamp_ns=query.stamp_ns,
        decision_id="d",
        query_id=query.query_id,
        outcome=Outcome.ANSWERED,
        chosen_index=1,
        chosen=query.options[1],
        decided_ns=query.stamp_ns,
        candidates=(
            CandidateJudgement(index=0, action=query.options[0], veto=Veto.SINGLETON, veto_reason="another does"),
            CandidateJudgement(index=1, action=query.options[1], probability=0.9),
        ),
    )
    flag = error_flag(
        "e",
        state=FlagState.CLOSED,
        attributes=(Attribute.USER_INTENTION,),
        probability=0.8,
        onset_ns=error.onset_ns,
        offset_ns=error.onset_ns + NS_PER_S,
        correction="Let him go.",
    )
    lines: list[tuple[str, int, float, Any]] = [
        ("/tactful/robot_speech", at(1), 1.0, edge),
        ("/tactful/utterances", at(6), 6.0, utterance),
        ("/tactful/queries", query.stamp_ns, 24.0, query),
        ("/tactful/decisions", query.stamp_ns, 24.03, decision),
        ("/tactful/flags", error.onset_ns + 3 * NS_PER_S, 28.0, flag),
    ]
    return [
        NodeOutput(topic=topic, at_ns=at_ns, wall_s=wall_s, message=to_plain(r)) for topic, at_ns, wall_s, r in lines
    ]


def shown(session: DemoSession) -> tuple[str, DemoLog]:
    text = io.StringIO()
    console = Console(file=text, width=80, highlight=False)
    log = DemoLog(session, console)
    for output in said(session):
        log.take(output)
    log.end()
    print_report(session, log, report(session, log, END, 2.0), console)
    return text.getvalue(), log


def test_lines_and_report_say_what_happened_and_why(session: DemoSession) -> None:
    text, _ = shown(session)
    assert "\x1b" not in text
    flat = " ".join(text.split())
    assert "0:01 robot Hey! [bold]Want[/] to know?" in flat
    assert "0:04 person Sure." in flat
    assert "decision Wish the boy a good day with his class, probability 0.90" in flat
    assert "vetoed Throw fish to the penguins: singleton, another does" in flat
    assert "#1 ERROR closed: major, user intention, probability 0.80" in flat
    assert "instead Let him go." in flat
    assert f"1 of {len(session.truth.events)} marked events flagged" in flat
    assert "1 of 2 choices match the author's answer." in flat
    assert "dropped" not in flat


def test_a_reply_is_printed_behind_the_words_that_it_answers(session: DemoSession) -> None:
    """The words wait for the end of the turn and for the transcriber; the reply comes at once."""
    reply, words = said(session)[0], said(session)[1]
    start_ns = words.message["start_ns"]
    reply = replace(reply, at_ns=start_ns + 2 * NS_PER_S)
    earlier = make_silence_mark(start_ns - NS_PER_S, "/audio")
    text = io.StringIO()
    log = DemoLog(session, Console(file=text, width=80))
    log.take(replace(words, at_ns=start_ns, message=to_plain(earlier)))
    log.take(reply)
    assert "Hey!" not in text.getvalue()
    log.take(replace(words, at_ns=reply.at_ns + NS_PER_S))
    log.take(replace(words, message=to_plain(make_silence_mark(reply.at_ns + NS_PER_S, "/audio"))))
    flat = " ".join(text.getvalue().split())
    assert "0:04 person Sure. 0:06 robot Hey!" in flat


def test_words_that_never_come_hold_nothing_back_for_long(session: DemoSession) -> None:
    reply = said(session)[0]
    text = io.StringIO()
    log = DemoLog(session, Console(file=text, width=80))
    log.take(reply)
    log.take(replace(reply, topic="/tactful/other", at_ns=reply.at_ns + HOLD_NS))
    assert "0:01 robot Hey!" in " ".join(text.getvalue().split())


def test_what_one_heartbeat_alone_states_is_not_printed(session: DemoSession) -> None:
    """A monitor that starts before the player says that nobody publishes the robot's speech."""
    start_ns = session.truth.start_ns
    unheard, missing = "robot speech: nothing is heard of the robot", "frames: none has arrived (2 windows)"
    text = io.StringIO()
    log = DemoLog(session, Console(file=text, width=120))
    for reasons in ((unheard, missing), (missing,), (missing,)):
        status = node_status(start_ns, node="/tactful/monitor", health=Health.DEGRADED, reasons=reasons)
        log.take(NodeOutput(topic="/tactful/status", at_ns=start_ns, wall_s=0.1, message=to_plain(status)))
    log.end()
    assert "nothing is heard" not in text.getvalue()
    assert text.getvalue().count(missing) == 1


def test_a_flag_is_printed_again_for_another_attribute_and_once_withdrawn_or_opened_again(session: DemoSession) -> None:
    flag = said(session)[-1].message
    one, other = "user_intention", "emotions"
    updates: list[dict[str, Any]] = [
        {"attributes": attributes, "state": "updated"}
        for attributes in ([one], [one], [one, other], [other, one], [one], [one, other])
    ]
    for why in ("Withdrawn, as the judge reads it otherwise.", "Withdrawn, as the person accepts it."):
        updates += [{"state": "withdrawn", "rationale": why}, {"state": "updated"}, {"state": "updated"}]
    updates.append({"state": "withdrawn", "rationale": "Withdrawn, as the settings now rule it out."})
    text = io.StringIO()
    log = DemoLog(session, Console(file=text, width=80))
    for update in updates:
        log.take(replace(said(session)[-1], message={**flag, **update}))
    log.end()
    printed = " ".join(text.getvalue().split())
    assert [printed.count(f"ERROR {state}") for state in ("updated", "withdrawn", "opened again")] == [2, 3, 2]
    assert printed.count(f"was {flag['rationale']} why Withdrawn") == 3
    figures = report(session, log, END, 2.0)
    assert [figures[name] for name in ("flagged", "found", "found_but_withdrawn")] == [0, 0, 1]
    print_report(session, log, figures, Console(file=text, width=200))
    event_count = len(session.truth.events)
    assert f"0 of {event_count} marked events flagged; 1 more flagged and then withdrawn" in text.getvalue()
