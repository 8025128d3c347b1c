"""The monitor over real DDS: an encounter as the senses publish it goes in, flags and answers about them come out."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any
from unittest.mock import Mock

import pytest

from norm_core.records.decision import Decision
from norm_core.records.flag import FlagState, Polarity, SocialFlag, Verdict
from norm_core.records.frame import Frame
from norm_core.records.messages import from_message
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Presence
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import Health
from norm_core.records.topics import SENSES_ENDED_TOPIC
from norm_core.records.window import ClosedWindow
from norm_core.runtime.config import ConfigError
from norm_core.runtime.time import NS_PER_S
from norm_core.streams.bounded_queue import BoundedQueue
from norm_monitor.monitor import Monitor
from norm_monitor.replay.node_process import NodeProcess, NodeProcessError
from norm_monitor.session_log.reader import read
from norm_monitor.session_log.recording import open_recording
from norm_monitor.session_log.schema import Kind, Participant
from norm_monitor.utterance_check import UtteranceCheck
from norm_monitor.windows.cutter import Entry
from tests.node_records import camera_frame
from tests.norm_core.engines import fake_server
from tests.norm_core.engines.fake_server import DEAD_URL, describe_model, serving, stalling
from tests.norm_monitor.encounter_talk import near, robot, user, with_silence
from tests.norm_monitor.senses.camera_messages import START_NS
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

TALK: list[Entry] = [
    *robot(0, 2, "Hello, welcome to the museum."),
    *user(3, 6, "My mother died last week, I am only here for her picture."),
    *robot(7, 10, "Great! Do you want to hear a joke about whales?"),
    *user(11, 13, "No. Did you not hear what I said?"),
    *robot(24, 27, "Here is the joke."),
]
# What is flagged in it at a threshold that leaves room for weights that are fitted anew.
FLAGGED = {"no_response", "cheerful_after_bad_news"}
THRESHOLDS = {"min_probability": ["error=0.3"]}
SUCCEEDED, CANCELED, ABORTED = 4, 5, 6  # action_msgs/GoalStatus
FLAG_STATES = list(FlagState)
TOPICS = {Utterance: "utterances", RobotSpeech: "robot_speech", Presence: "presence"}


def play(observer: Observer, entries: list[Entry], until_s: float = 30.0) -> None:
    """Publishes entries in the order in which the senses give them, once somebody listens."""
    from norm_nodes.base.convert import to_ros

    publishers = {kind: observer.publisher(kind, topic) for kind, topic in TOPICS.items()}
    observer.until(lambda: all(p.get_subscription_count() for p in publishers.values()), "the monitor to listen")
    taken = observer.counts_of("monitor")
    observer.meet("monitor")
    due, last = taken(), ""
    for sent, (_, entry) in enumerate(with_silence(entries, until_s), start=1):
        topic = publishers[type(entry)].topic_name
        # A reader keeps no more of some topics than 50, and topics overtake one another.
        if topic != last or sent % 20 == 0:
            observer.until(lambda: taken() >= due, "the monitor to take what was sent")
        publishers[type(entry)].publish(to_ros(entry))
        due[topic] += 1
        last = topic
    observer.until(lambda: taken() >= due, "the monitor to take what was sent")  # a signal of the end may overtake it


def flags_in(messages: list[Any]) -> dict[str, SocialFlag]:
    return {flag.cue_id: flag for flag in (from_message(SocialFlag, message) for message in messages)}


def open_in(messages: list[Any]) -> set[str]:
    """The events that are open by the last state of each."""
    states = {message.event_id: message.state for message in messages}
    return {event for event, state in states.items() if FLAG_STATES[state] in {FlagState.OPENED, FlagState.UPDATED}}


def monitor(domain_id: int, **parameters: Any) -> NodeProcess:
    fusion = {**THRESHOLDS, **parameters.pop("fusion", {})}
    own = {"windows": {"sources": ["utterances"]}, "fusion": fusion, **parameters}
    return NodeProcess(["monitor"], {"monitor": own}, domain_id)


@contextmanager
def spinning_monitor(domain_id: int) -> Iterator[Any]:
    """A monitor in this process, whose parts a test may replace."""
    import rclpy
    from norm_bench.queried_monitor import QueriedMonitor
    from rclpy.executors import ExternalShutdownException

    def spin() -> None:
        with suppress(ExternalShutdownException):
            rclpy.spin(node)

    rclpy.init(domain_id=domain_id)
    node, spinning = QueriedMonitor(), Thread(target=spin)
    try:
        node.trigger_configure()
        node.trigger_activate()
        spinning.start()
        yield node
    finally:
        rclpy.try_shutdown()
        spinning.join()
        node.destroy_node()


@pytest.fixture
def flags(observer: Observer) -> Callable[..., list[Any]]:

    def collect(topic: str = "flags") -> list[Any]:
        return observer.records(SocialFlag, topic)

    return collect


def test_busy_monitor_loses_no_words_to_silence_marks(domain_id: int, observer: Observer) -> None:
    from norm_nodes.base.convert import record_class, to_ros
    from norm_nodes.base.endpoint import SPEECH

    busy, free = Event(), Event()
    entries = [entry for _, entry in with_silence(user(0, 2, "Where is the lift?"), 60.0)]
    with spinning_monitor(domain_id) as node:
        words = observer.node.create_publisher(record_class(Utterance), "/tactful/utterances", SPEECH)
        observer.until(words.get_subscription_count, "the monitor's subscription")
        node.executor.create_task(lambda: (busy.set(), free.wait(PATIENCE_S)))  # type: ignore[func-returns-value]
        assert busy.wait(PATIENCE_S)
        for entry in entries:
            words.publish(to_ros(entry))
        free.set()

        def received() -> int:
            return sum(queue.received for queue in node.status().queues if queue.name == "records")

        observer.until(lambda: received() == len(entries) > 100, "every record of speech")
        done = node.executor.create_task(node.wind_down)
        observer.until(done.done, "the node to wind down")
        assert done.exception() is None


def test_too_late_utterance_is_stated(domain_id: int, observer: Observer) -> None:
    statuses = observer.watch_status()
    with monitor(domain_id):
        play(observer, near(0, 60, 2.0), until_s=60)
        play(observer, user(1, 3, "Where is the lift?"), until_s=0)
        observer.until_told("too late for any window")
        observer.until(
            lambda: any("outside parity" in note for status in statuses for note in status.notes), "the note"
        )


def test_flags_their_mirror_attention_and_explanation(domain_id: int, observer: Observer, flags: Any) -> None:
    from norm_interfaces.msg import OpenFlags
    from norm_interfaces.srv import Explain
    from norm_nodes.base.convert import from_ros, to_ros
    from norm_nodes.base.endpoint import EVENTS, LATCHED
    from std_msgs.msg import Bool, String
    from std_srvs.srv import Trigger

    seen = flags()
    mirror = observer.collect(String, "/tactful/flags_json", EVENTS)
    attention = observer.collect(Bool, "/tactful/attention", EVENTS)
    observer.watch_status()
    with monitor(domain_id):
        play(observer, [*TALK, *user(24, 25, "My name is Anna.")])
        observer.until(lambda: set(flags_in(seen)) >= FLAGGED, "both flags")
        late = flags_in(seen)["no_response"]
        opened = observer.collect(OpenFlags, "/tactful/open_flags", LATCHED)  # by one who comes late
        observer.until(lambda: opened and {flag.event_id for flag in opened[-1].flags} == open_in(seen), "what is open")
        assert late.event_id in open_in(seen)
        assert late.polarity is Polarity.ERROR
        assert late.evidence
        assert late.correction
        assert late.provenance.window_digest
        assert not late.provenance.window_late
        observer.until(lambda: len(mirror) == len(seen), "the mirror of each flag")
        assert {json.loads(line.data)["event_id"] for line in mirror} == {m.event_id for m in seen}
        observer.until(lambda: [b.data for b in attention][-1:] == [False] and any(b.data for b in attention), "calm")
        answer = observer.call(Explain, "/tactful/explain", event_id=late.event_id)
        assert answer.found
        assert "silence after the turn" in answer.explanation
        unknown = observer.call(Explain, "/tactful/explain", event_id="nothing")
        assert not unknown.found
        assert "no such event" in unknown.explanation
        chosen = Decision(
            stamp_ns=1,
            decision_id="q@1",
            decided_ns=1,
            outcome=Outcome.ANSWERED,
            chosen_index=0,
            chosen="Wave.",
            explanation="It fits best.",
        )
        decisions = observer.publisher(Decision, "decisions")
        observer.until(decisions.get_subscription_count, "the monitor to listen")
        taken = observer.counts_of("monitor")
        decisions.publish(to_ros(chosen))
        observer.until(lambda: taken()["/tactful/decisions"], "the decision to be taken")
        answer = observer.call(Explain, "/tactful/explain", event_id="q@1")
        assert (answer.found, answer.explanation) == (True, "It fits best.")
        assert [from_ros(Decision, decision) for decision in answer.decision] == [chosen]
        assert observer.call(Trigger, "/tactful/forget").success
        observer.until(lambda: not opened[-1].flags, "every flag to be closed")
        assert not observer.call(Explain, "/tactful/explain", event_id="q@1").found
        observer.until(
            lambda: observer.counted("facts_forgotten_on_request") == 2, "her loss and her name to be forgotten"
        )


@pytest.mark.parametrize("shadow", [False, True])
def test_check_utterance_reads_text_after_the_talk(domain_id: int, observer: Observer, shadow: bool) -> None:
    from norm_interfaces.msg import Outcome as Ended
    from norm_interfaces.srv import CheckUtterance

    service = "/tactful/check_utterance"
    with monitor(domain_id, shadow=shadow, fusion={"sensitivity": "keen"}):
        play(observer, TALK[:2], until_s=6)
        bad = observer.call(CheckUtterance, service, text="Great! Do you want to hear a joke about whales?").check
        good = observer.call(CheckUtterance, service, text="I am so sorry for your loss.").check
        assert bad.checked
        assert good.checked
        assert bad.error > good.error
        assert (bad.shadow, good.advised_against) == (shadow, False)
        assert bad.advised_against is (bad.error >= bad.advised_against_from and not shadow)
        assert "would say" in bad.reason
        assert len(bad.attributes) == len(bad.attribute_probabilities) > 0
        empty = observer.call(CheckUtterance, service, text=" ")
        assert (empty.check.checked, empty.error_code) == (False, Ended.INVALID)
        assert "characters" in empty.error_msg
        goals = CheckGoals(observer)
        status, result = goals.ended(goals.send("Great! Do you want to hear a joke about whales?"))
        fields = [name for name in bad.get_fields_and_field_types() if name not in {"error", "competence"}]
        assert (status, result.error_code, result.error_msg) == (SUCCEEDED, 0, "")
        assert [getattr(result.check, name) for name in fields] == [getattr(bad, name) for name in fields]
        assert result.check.error == pytest.approx(bad.error, abs=0.01)
        status, result = goals.ended(goals.send(" "))
        assert (status, result.error_code, result.error_msg) == (ABORTED, Ended.INVALID, empty.error_msg)


class CheckGoals:
    """A client of the action CheckUtterance that notes the feedback."""

    def __init__(self, observer: Observer) -> None:
        from norm_interfaces.action import CheckUtterance
        from rclpy.action import ActionClient

        self._observer, self.waiting = observer, list[int]()
        self._goal = CheckUtterance.Goal
        self._client = ActionClient(observer.node, CheckUtterance, "/tactful/check_utterance")
        observer.until(self._client.server_is_ready, "the action")

    def send(self, text: str, deadline_s: float = 0.0) -> Any:
        """The handle of a goal that was accepted; its deadline is from now, or of the node's own where it is zero."""
        from builtin_interfaces.msg import Time
        from rclpy.duration import Duration

        goal = self._goal(text=text, deadline=Time(sec=-1))  # none, as zero is
        if deadline_s:
            goal.deadline = (self._observer.node.get_clock().now() + Duration(seconds=deadline_s)).to_msg()
        sent = self._client.send_goal_async(goal, lambda message: self.waiting.append(message.feedback.waiting))
        self._observer.until(sent.done, "the goal to be taken")
        assert sent.result().accepted
        return sent.result()

    def ended(self, handle: Any) -> tuple[int, Any]:
        asked = handle.get_result_async()
        self._observer.until(asked.done, "the goal to end")
        return asked.result().status, asked.result().result


def test_utterance_checks_end_with_their_reason(
    domain_id: int, observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from norm_interfaces.msg import Outcome as Ended
    from norm_nodes.utterance_checks import MAX_WAITING

    released, reading = Event(), Event()

    def check(*arguments: Any) -> Any:
        reading.set()
        released.wait(PATIENCE_S)
        raise LookupError("that is how it reads")

    monkeypatch.setattr(UtteranceCheck, "check", check)
    monkeypatch.setattr(UtteranceCheck, "follow", lambda *_: [].pop())
    put = BoundedQueue.put

    def put_early(*arguments: Any) -> Any:
        dropped = put(*arguments)
        time.sleep(0.05)  # the thread takes what was put before the executor's thread goes on
        return dropped

    monkeypatch.setattr(BoundedQueue, "put", put_early)
    ended: dict[str, tuple[int, int, str]] = {}
    with spinning_monitor(domain_id) as node:
        goals = CheckGoals(observer)

        def note(name: str, handle: Any) -> None:
            status, result = goals.ended(handle)
            ended[name] = (status, result.error_code, result.error_msg.partition(": ")[2])

        first = goals.send("first", PATIENCE_S)
        assert reading.wait(PATIENCE_S)
        note("past", goals.send("past", -5.0))
        waiting = [goals.send(f"waiting {number}", PATIENCE_S) for number in range(MAX_WAITING)]
        assert goals.waiting[:2] == [0, 1]
        observer.until(waiting[0].cancel_goal_async().done, "the cancelling")
        note("cancelled", waiting[0])
        released.set()
        note("read", first)
        note("read after", waiting[1])
        for handle in waiting[2:]:
            goals.ended(handle)
        observer.until(lambda: "not read ahead: pop from empty" in " ".join(node.status().reasons), "the reason")
        observer.until(node.executor.create_task(node.wind_down).done, "the node to wind down")
    assert ended == {
        "past": (ABORTED, Ended.TIMED_OUT, "the utterance was not read by its deadline; give it more time"),
        "cancelled": (CANCELED, Ended.CANCELLED, "the goal was cancelled"),
        "read": (ABORTED, Ended.FAILED, "that is how it reads"),
        "read after": (ABORTED, Ended.FAILED, "that is how it reads"),
    }


def test_a_cue_muted_at_run_time_withdraws_its_flag_until_unmuted(
    domain_id: int, observer: Observer, flags: Any
) -> None:
    seen = flags()

    def latest() -> SocialFlag | None:
        return flags_in(seen).get("no_response")

    def state() -> FlagState | None:
        flag = latest()
        return flag.state if flag else None

    with monitor(domain_id):
        play(observer, TALK)
        observer.until(lambda: set(flags_in(seen)) >= FLAGGED, "both flags")
        opened = latest()
        assert opened
        assert observer.set_parameter("monitor", "fusion.muted", ["no_response"]) == ""
        observer.until(lambda: state() is FlagState.WITHDRAWN, "the flag to be withdrawn")
        withdrawn = latest()
        assert withdrawn
        assert withdrawn.event_id == opened.event_id
        assert withdrawn.provenance.config_sha256 != opened.provenance.config_sha256
        assert observer.set_parameter("monitor", "fusion.muted", []) == ""
        observer.until(lambda: state() is FlagState.UPDATED, "the flag again")
        again = latest()
        assert again
        assert again.provenance.config_sha256 == opened.provenance.config_sha256


def test_a_deactivated_monitor_reads_the_last_turn(domain_id: int, observer: Observer, flags: Any) -> None:
    seen = flags()
    with monitor(domain_id):
        # The marks of silence end before the answer begins, so no window holds it yet.
        play(observer, [*user(0, 2, "Where can I buy a ticket?"), *robot(6.2, 9, "At the counter.")], until_s=6.0)
        assert not seen
        assert observer.change_state("monitor", label="deactivate")
        observer.until(lambda: "response_delay" in flags_in(seen), "the flag of the last turn")


def test_a_monitor_that_cannot_be_configured_leaves_the_study_s_log_free(
    domain_id: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import rclpy
    from norm_bench.queried_monitor import QueriedMonitor
    from rclpy.lifecycle import TransitionCallbackReturn
    from rclpy.parameter import Parameter

    monkeypatch.setenv("TACTFUL_FILE_FOLDERS", str(tmp_path))
    study = {"study.log": str(tmp_path / "log"), "study.name": "library", "study.session": "S07"}
    rclpy.init(domain_id=domain_id)
    node = QueriedMonitor()
    try:
        node.set_parameters([Parameter(name, value=value) for name, value in study.items()])
        with monkeypatch.context() as patch:
            patch.setattr(node, "lease_judge", Mock(side_effect=ConfigError("the judge is broken")))
            assert node.trigger_configure() is not TransitionCallbackReturn.SUCCESS
        assert "the judge is broken" in " ".join(node.status().reasons)
        assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
        assert not any("log" in reason for reason in node.status().reasons)
        node.trigger_cleanup()
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


def test_a_killed_monitor_loses_no_flag_that_was_seen_and_no_verdict(
    domain_id: int, observer: Observer, flags: Any, tmp_path: Path
) -> None:
    from norm_interfaces.srv import ReviewFlag

    seen, log = flags(), tmp_path / "log"
    study = {"log": str(log), "name": "library", "session": "S07", "participants": ["P-1=u1"]}
    reviewed: list[str] = []

    def review_and_kill() -> None:
        with monitor(domain_id, study=study) as process:
            play(observer, TALK)
            observer.until(lambda: set(flags_in(seen)) >= FLAGGED, "both flags")
            reviewed.append(flags_in(seen)["no_response"].event_id)
            verdict = {"event_id": reviewed[0], "coder": "r1", "verdict": 1}
            assert observer.call(ReviewFlag, "/tactful/review", **verdict).recorded
            for wrong, why in (
                ({"verdict": 9}, "0 to 2"),
                ({"coder": ""}, "pseudonym"),
                ({"event_id": "x"}, "not among"),
            ):
                answer = observer.call(ReviewFlag, "/tactful/review", **{**verdict, **wrong})
                assert not answer.recorded
                assert why in answer.message
            os.kill(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_S)

    with pytest.raises(NodeProcessError, match="-9"):
        review_and_kill()
    contents = read(log)
    assert [fault for fault in contents.faults if not fault.harmless] == []
    logged = [entry.record for entry in contents.entries if entry.kind is Kind.FLAG]
    assert all(from_message(SocialFlag, message) in logged for message in seen)
    recording = open_recording(log)
    reviews = [entry.record for entry in contents.entries if entry.kind is Kind.REVIEW]
    assert [(r.event_id, r.coder, r.verdict) for r in reviews] == [(reviewed[0], "r1", Verdict.REJECT)]
    assert recording.info.participants == (Participant(pseudonym="P-1", person_ids=("u1",)),)
    assert {u.text for u in recording.utterances} >= {"No. Did you not hear what I said?"}
    assert recording.robot_speech


def test_shadow_monitor_publishes_nothing_on_usual_topics(domain_id: int, observer: Observer, flags: Any) -> None:
    usual, shadow = flags(), flags("shadow/flags")
    with monitor(domain_id, shadow=True, fusion={"muted": ["no_response"]}):
        play(observer, [*TALK, *near(15, 19, 0.3)])
        observer.until(lambda: {"cheerful_after_bad_news", "too_near"} <= set(flags_in(shadow)), "the other flags")
        assert "no_response" not in flags_in(shadow)
        assert usual == []


@pytest.mark.parametrize(
    ("engine", "counter", "problem"),
    [
        (f"openai\nsource: {{url: '{DEAD_URL}'}}\nsettings: {{tries: 1}}", "judge_failed", "cues go on alone"),
        ("transformers\nsource: {path: nowhere}", "judge_load_failures", "cannot be loaded, and cues go on alone"),
    ],
    ids=["dead", "absent"],
)
def test_without_a_judge_that_answers_cues_go_on_and_flags_close_at_the_end(  # noqa: PLR0917
    domain_id: int, observer: Observer, flags: Any, own_models: Path, engine: str, counter: str, problem: str
) -> None:
    from norm_nodes.base.endpoint import EVENTS
    from std_msgs.msg import Empty

    (own_models / "absent.yaml").write_text(
        f"name: absent\ntask: vision-language\nquantization: none\nlicence: none\nengine: {engine}\n"
    )
    seen, statuses = flags(), observer.watch_status()
    ended = observer.node.create_publisher(Empty, f"/tactful/{SENSES_ENDED_TOPIC}", EVENTS)
    with monitor(domain_id, judge={"model": "absent"}):
        play(observer, TALK)
        observer.until(lambda: "cheerful_after_bad_news" in flags_in(seen), "flags of cues")
        observer.until(lambda: observer.counted(counter) > 0, "the judge to fail")
        degraded = observer.until(
            lambda: [s for s in statuses if s.health is Health.DEGRADED and "judge" in " ".join(s.reasons)],
            "the status",
        )
        assert problem in " ".join(degraded[0].reasons)
        observer.until(ended.get_subscription_count, "the monitor to listen for the end")
        ended.publish(Empty())
        observer.until(
            lambda: FlagState.CLOSED in {from_message(SocialFlag, message).state for message in seen}, "flags to close"
        )


def test_a_judge_slower_than_its_deadline_is_stated_with_a_remedy(
    domain_id: int, observer: Observer, own_models: Path
) -> None:
    statuses = observer.watch_status()
    with serving() as server:
        server.faults.append(stalling)
        describe_model(own_models, "slow", server.url)
        with monitor(domain_id, judge={"model": "slow", "deadline_s": 0.2, "calls_per_hour": 60.0}):
            play(observer, TALK)
            observer.until(lambda: observer.counted("judge_timed_out") > 0, "the judge to time out")
            observer.until_told("raise judge.deadline_s")
            note = f"judge: slow none, by openai on {server.url}, sees no pictures"
            assert any(note in s.notes for s in statuses)


def test_a_flag_waits_for_no_note_and_is_updated_by_it(
    domain_id: int, observer: Observer, flags: Any, own_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, _ = flags(), observer.watch_status()

    def rationales() -> dict[str, list[str]]:
        texts: dict[str, list[str]] = {}
        for flag in (from_message(SocialFlag, message) for message in seen):
            texts.setdefault(flag.event_id, []).append(flag.rationale)
        return texts

    with serving() as server:
        answer = server.complete

        def complete(body: Any) -> Any:
            if "response_format" not in body:
                return answer(body)
            server.reached.set()
            server.released.wait(PATIENCE_S)
            status, reply = answer(body)
            reply["choices"][0]["message"]["content"] = '{"rationale": "A note."}'
            return status, reply

        monkeypatch.setattr(server, "complete", complete)
        monkeypatch.setattr(
            fake_server, "likely", lambda text, letters: {"A": -0.01} | dict.fromkeys(letters[1:], -6.0)
        )
        describe_model(own_models, "writes", server.url)
        with monitor(domain_id, judge={"model": "writes", "deadline_s": 600.0}):
            play(observer, TALK)
            observer.until(server.reached.is_set, "a note to be asked for")
            judged = observer.until(
                lambda: [name for name, texts in rationales().items() if "The model takes" in texts[-1]], "flags"
            )
            server.released.set()
            observer.until(lambda: all(rationales()[name][-1] == "A note." for name in judged), "the notes")
            observer.until(lambda: observer.counted("judge_note_answered") >= len(judged), "the notes to be counted")


def test_a_failing_cue_is_counted_and_the_next_record_is_read(
    domain_id: int, observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(self: Monitor, record: Entry, received_ns: int) -> list[SocialFlag]:
        if isinstance(record, Utterance) and record.text:
            raise ZeroDivisionError
        taken.append(record)
        return []

    taken: list[Entry] = []
    monkeypatch.setattr(Monitor, "take", look)
    statuses = observer.watch_status()
    with spinning_monitor(domain_id):
        play(observer, [*user(0, 1, "Hello!"), *robot(2, 3, "Hello!")])
        observer.until(lambda: observer.counted("records_failed"), "the fault in the status")
        observer.until(lambda: sum(isinstance(record, RobotSpeech) for record in taken) == 2, "the records that follow")
    faulty = [status for status in statuses if "ZeroDivisionError" in " ".join(status.reasons)]
    assert {status.health for status in faulty} == {Health.DEGRADED}
    assert observer.counted("records_failed") == 1


def test_missing_robot_is_stated_until_it_speaks(domain_id: int, observer: Observer) -> None:
    statuses = observer.watch_status()
    people = [entry for start_s in (3, 11, 20, 28, 34) for entry in user(start_s, start_s + 2, "Do you hear me?")]

    def is_stated() -> bool:
        return any("nothing is heard of the robot" in reason for reason in statuses[-1].reasons)

    with monitor(domain_id):
        play(observer, people, until_s=40)
        observer.until(is_stated, "the monitor to miss the robot")
        assert "with the parameter robot_speech_topic" in " ".join(statuses[-1].reasons)
        play(observer, robot(41, 44, "I do."), until_s=45)
        observer.until(lambda: not is_stated(), "the monitor to be well again")


def test_without_a_source_windows_close_late_and_the_status_names_its_node(domain_id: int, observer: Observer) -> None:
    from norm_nodes.base.convert import from_ros, to_ros

    closed = observer.records(ClosedWindow, "windows")
    statuses = observer.watch_status()
    frames = observer.publisher(Frame, "frames")
    windows = {"length_s": 3.0, "step_s": 1.0, "lateness_s": 2.0}
    with NodeProcess(["monitor"], {"monitor": {"windows": windows}}, domain_id):
        observer.until(frames.get_subscription_count, "the monitor")
        observer.meet("monitor")
        for second in range(6):
            frames.publish(to_ros(camera_frame(START_NS + second * NS_PER_S, b"tile")))
        first = from_ros(ClosedWindow, observer.until(lambda: closed and closed[0], "a window"))
        assert (first.late, first.missing) == (True, ("presence", "utterances"))
        whole = ("presence: neither camera nor people is active", "utterances: ears is not active")
        observer.until(
            lambda: any(all(part in reason for part in whole) for s in statuses for reason in s.reasons),
            "the status to name them",
        )
