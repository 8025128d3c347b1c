"""The monitor node: flag social errors and competences from what the senses publish.

The stages: `listen_to` queues the senses' records in `_records`. The thread `monitor_look` gives them to the
role (`_watch_records`, `_handle`), publishes what it decides (`_publish`), and queues units in `_to_judge`. The
thread `monitor_judge` (`JudgeWorker`) asks the model and queues its answer in `_records`.

What threads share has a lock of its own: both queues, `_explanations`, `_attention`, counts and issues. Callbacks
set whole items of `_arrived_s`, and read two facts of `_monitor`; the rest of it, `_study` and `_counted` belong
to `monitor_look`.
"""

import difflib
import json
import time
import traceback
from collections.abc import Callable
from threading import Thread
from typing import Any, NamedTuple

from norm_interfaces.msg import OpenFlags
from norm_interfaces.srv import Explain, ReviewFlag
from pydantic import Field
from std_msgs.msg import Bool, Empty, Header, String
from std_srvs.srv import Trigger

from norm_core.engines.engine_pool import EngineLease, Urgency
from norm_core.records.decision import Decision
from norm_core.records.flag import Attribute, FlagState, SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.json_codec import to_json, to_plain
from norm_core.records.presence import Presence
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import Health
from norm_core.records.topics import (
    ATTENTION_TOPIC,
    DECISIONS_TOPIC,
    FLAGS_JSON_TOPIC,
    FLAGS_TOPIC,
    FRAMES_TOPIC,
    OPEN_FLAGS_TOPIC,
    PRESENCE_TOPIC,
    ROBOT_SPEECH_TOPIC,
    SENSES_ENDED_TOPIC,
    SHADOW,
    UTTERANCES_TOPIC,
    WINDOWS_TOPIC,
)
from norm_core.records.window import ClosedWindow
from norm_core.runtime.config import ConfigError
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S
from norm_core.runtime.wording import count_of
from norm_core.streams.bounded_queue import BoundedQueue, OverflowPolicy
from norm_core.streams.watermarks import FRAMES
from norm_monitor.assessment.unit import UnitJudgement
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.judge.excerpt import UnitView
from norm_monitor.judge.judge import Judge, NoteAnswer, NoteRequest, count_images
from norm_monitor.monitor import ROBOT_MISSING, Monitor, MonitorConfig
from norm_monitor.session_log.session_config import StudyConfig
from norm_monitor.utterance_check import UtteranceCheck
from norm_nodes.attention import Attention
from norm_nodes.base.convert import from_ros, to_ros
from norm_nodes.base.endpoint import EVENTS, LATCHED, SPEECH
from norm_nodes.base.norm_node import NodeConfig, NormNode
from norm_nodes.explanations import Explanations
from norm_nodes.judge_worker import JudgeWorker
from norm_nodes.study_session import StudySession
from norm_nodes.utterance_checks import UtteranceChecks

# How many records wait for the role.
MAX_RECORDS = 1000
# Only one unit waits for the judge. The monitor holds the others, so that the most useful goes first.
MAX_TO_JUDGE = 1
# How long the role's thread waits for a record before it checks for silent sources.
WAIT_S = 0.2
NO_ROBOT = f"robot speech: {ROBOT_MISSING} with the parameter robot_speech_topic of ears"
# How long after its activation the monitor waits for a publisher of the robot's speech.
ROBOT_GRACE_S = 5.0
JUDGE_BEHIND = (
    "judge: it answers slower than moments come, so measured facts alone decide about some; "
    "name a faster model in judge.model, or lower judge.calls_per_hour"
)
FORGOTTEN = "what was said until now is forgotten; flags that were published quote it still"
LEFT_OUT = (
    "monitor: a record came too late for any window, so it is not judged; "
    "read the status of the node that published it, or synchronise the clocks"
)
# The issue that is raised when a counter of the monitor rises.
FAULTS = {
    "entries_left_out": ("late", Health.DEGRADED, LEFT_OUT),
    "units_not_judged": ("judge_queue", Health.DEGRADED, JUDGE_BEHIND),
    "judgements_after_close": ("judge_queue", Health.DEGRADED, JUDGE_BEHIND),
}
# How long the status reports such an issue, or a record that was left out.
FAULT_STATED_S = 60.0
# After this long without a record, a source is silent.
SILENT_S = 10.0
# How far back the service `recent` reports, and the kind of each record in its report.
RECENT_NS = 600 * NS_PER_S
KINDS = {Utterance: "utterance", RobotSpeech: "robot_speech", SocialFlag: "flag", Decision: "decision"}
# How often attention is published.
ATTENTION_EVERY_S = 0.5


class Arrived(NamedTuple):
    """A record of a sense, and when it arrived."""

    record: Any
    received_ns: int


class Forget:
    """An order to forget what people said about themselves; `answer` gets the problem, or "" once it is done."""

    def __init__(self, answer: Callable[[str], None] = lambda problem: None) -> None:
        self.answer = answer


class InputEnded:
    """An order to decide on all that is open, because a recording has ended."""


class MonitorNodeConfig(NodeConfig, MonitorConfig):
    """The parameters of the monitor, and of the parts that only its node has."""

    study: StudyConfig = StudyConfig()
    shadow: bool = Field(default=False, description="publish only on shadow/ topics, for a trial on a robot")


class MonitorNode(NormNode[MonitorNodeConfig]):
    """Publish flags of social errors and competences."""

    # norm_bench extends `lease_judge`, `build_judge`, `subscribe_senses`, `receive` and `awaits_senses`.
    config_model = MonitorNodeConfig
    _engine: EngineLease | None
    _judge: Judge | None
    _study: StudySession
    _monitor: Monitor
    _checks: UtteranceChecks
    _records: BoundedQueue[Any]
    _to_judge: BoundedQueue[UnitView | NoteRequest]
    _threads: list[Thread]

    def __init__(self) -> None:
        super().__init__("monitor")

    def check(self, config: MonitorNodeConfig) -> None:
        """Check that each muted name is a cue or an attribute. Raises ConfigError."""
        names = [*config.table().cues, *(attribute.value for attribute in Attribute)]
        for name in config.fusion.muted:
            if name not in names:
                close = difflib.get_close_matches(name, names, 1)
                remedy = f"did you mean {close[0]}?" if close else "docs/reference/cues.md lists them"
                raise ConfigError(f"monitor: fusion.muted: {name!r} is neither a cue nor an attribute; {remedy}")

    def get_model_name(self) -> str:
        """Return the name of the judge's model."""
        return self.config.judge.model

    def open(self) -> None:
        """Build the role and its judge, connect it to the graph, and start its threads."""
        self._build_parts()
        self._advertise_flags()
        self.subscribe_senses()
        self.serve(Explain, "explain", self._explanations.explain, "why an event was flagged or an action chosen")
        self.serve(ReviewFlag, "review", self._study.review, "adds a coder's verdict on an event to the study log")
        about = "what was said, flagged and decided in the last ten minutes, as JSON"
        self.serve(Trigger, "recent", self._report_recent, about)
        self.serve_later(Trigger, "forget", self._forget, "forgets what people and the robot have said so far")
        self._start_threads()

    def _build_parts(self) -> None:
        """Lease the judge's engine, open the study log, and build the role; raise ConfigError if a part is unusable."""
        config = self.config
        table = config.table()
        try:
            self._matcher = EncoderMatcher.shipped(config.reader)
            self._engine = self.lease_judge()
            self._judge = self.build_judge(self._engine) if self._engine else None
            # Last, because it locks the log: if a later step failed, nothing would release the lock.
            self._study = StudySession(
                config.study,
                table,
                self.clock,
                self.health_log,
                context=config.judge.deployment_context,
                weighed_by=config.fusion.describe(),
                config_sha256=config.sha256(),
            )
        except TactfulError as error:
            text = str(error)
            raise ConfigError(text if text.startswith("monitor: ") else f"monitor: {text}") from error
        self._applied = config
        self._monitor = Monitor(self._select_config(), table, self._matcher, self.clock)
        self._checks = self._serve_checks()
        self._explanations = Explanations()
        self._attention = Attention()
        self._arrived_s: dict[str, float] = {}  # by source
        self._counted: dict[str, int] = {}
        self._records = self.health_log.queue("records", MAX_RECORDS)
        self._to_judge = self.health_log.queue("to_judge", MAX_TO_JUDGE, OverflowPolicy.REFUSE)

    def _advertise_flags(self) -> None:
        shadow = SHADOW if self.config.shadow else ""
        self._flags = self.advertise(
            SocialFlag, f"{shadow}{FLAGS_TOPIC}", EVENTS, "flags as they open, change and close"
        )
        open_now = "the flags that are open now, for late subscribers"
        self._open_flags = self.advertise(OpenFlags, f"{shadow}{OPEN_FLAGS_TOPIC}", LATCHED, open_now)
        self._publish_open_flags()
        self._mirror = self.advertise(
            String, f"{shadow}{FLAGS_JSON_TOPIC}", EVENTS, "the flags, each as one line of JSON"
        )
        # Published periodically. A latched value would reach a late subscriber seconds late, behind the older one.
        self._attention_topic = self.advertise(
            Bool,
            f"{shadow}{ATTENTION_TOPIC}",
            EVENTS,
            "whether a major or severe error goes on, or was flagged or ended in the last 3 s; twice a second",
        )
        self._closed = self.advertise(ClosedWindow, WINDOWS_TOPIC, EVENTS, "digests of closed windows")

    def subscribe_senses(self) -> None:
        """Subscribe to what the senses publish."""
        if FRAMES in self.config.windows.sources:
            self.listen_to(Frame, FRAMES_TOPIC, "kept frames, if a camera is configured")
        self.listen_to(Utterance, UTTERANCES_TOPIC, "who said what, and until when it was quiet")
        self.listen_to(RobotSpeech, ROBOT_SPEECH_TOPIC, "when the robot itself speaks")
        self.listen_to(Presence, PRESENCE_TOPIC, "who is there")
        ended = "the senses have finished a recording"
        self.subscribe(Empty, SENSES_ENDED_TOPIC, lambda _: self._records.put_order(InputEnded()), EVENTS, ended)
        self.listen_to(Decision, DECISIONS_TOPIC, "decisions, to explain and log them")

    def _start_threads(self) -> None:
        workers = {"monitor_look": self._watch_records}
        if self._judge:
            worker = JudgeWorker(self, self._judge, self._to_judge, self._records)
            workers["monitor_judge"] = worker.answer_requests
        self._threads = [self.start_worker(name, work) for name, work in workers.items()]
        self.repeat(ATTENTION_EVERY_S, self._keep_time)

    def start(self) -> None:
        """Accept records; each source counts as silent from now on."""
        self._arrived_s = dict.fromkeys(self.config.windows.sources, time.monotonic())
        self._active_since_s = time.monotonic()

    def stop(self) -> None:
        """Ignore further records, decide on the last turn, and forget what people said of themselves."""
        self._checks.stop()
        # A session ends: read its last turn with what is there, then forget what people said about themselves.
        self._records.put_order(InputEnded())
        self._records.put_order(Forget())

    def close(self) -> None:
        """End the threads within the judge's deadline, then seal the study log."""
        self._records.close()
        self._to_judge.close()
        self._checks.close(self.config.judge.deadline_s)
        for thread in self._threads:
            thread.join(timeout=self.config.judge.deadline_s)
        self._study.close()

    def _select_config(self) -> MonitorConfig:
        """Return the configuration, without the judge if none is open to answer."""
        config = self._applied
        if self._judge:
            return config
        return config.model_copy(update={"judge": config.judge.model_copy(update={"model": ""})})

    def lease_judge(self) -> EngineLease | None:
        """Lease the engine; None if no model is set, or if it cannot be opened, so that cues go on alone."""
        model = self.config.judge.model
        if not model:
            return None
        try:
            return self.engines.lease(model, Urgency.WINDOW)
        except TactfulError as error:
            self.health_log.count("judge_load_failures")
            why = f"judge: the model {model} cannot be loaded, and cues go on alone: {error}"
            self.health_log.state_issue("judge", why)
            return None

    def build_judge(self, engine: EngineLease) -> Judge | None:
        """Build the judge, and state if it sees no pictures; the bench may put another answerer in its place."""
        judge = Judge(engine, self.config.judge)
        if self.config.judge.images and FRAMES in self.config.windows.sources:
            self.state_pictures_held_back(engine)
        return judge

    def _judge_note(self) -> str:
        """Say which model judges, on which device, and how many pictures it sees."""
        if not (self._judge and self._engine):
            return ""
        model_info, config = self._engine.model_info, self.config
        pictures = count_images(model_info, config.judge) if FRAMES in config.windows.sources else 0
        sees = f"sees up to {count_of(pictures, 'picture')} of a unit" if pictures else "sees no pictures"
        form = f" {model_info.quantization}" if model_info.quantization else ""
        return f"judge: {config.judge.model}{form}, by {model_info.engine} on {model_info.device}, {sees}"

    def state_pictures_held_back(self, engine: EngineLease) -> None:
        """State that a model on another machine is shown no images, if they may not leave this one."""
        if engine.model_info.on_this_machine or self.config.judge.pictures_may_leave:
            return
        why = (
            f"judge: the model {self.config.judge.model} runs on another machine, so it is shown no images; "
            "set judge.pictures_may_leave to true to send them"
        )
        self.health_log.state_issue("pictures", why)

    def _serve_checks(self) -> UtteranceChecks:
        """Serve checks with a matcher of their own, which shares the models of the monitor's."""
        matcher, config = self._matcher.beside(), self.config
        check = UtteranceCheck(matcher, config.unit_model(matcher), config.fusion.sensitivity)
        return UtteranceChecks(self, check, shadow=config.shadow)

    def listen_to(self, type_: type[Any], topic: str, description: str) -> None:
        """Pass the records of a topic to `receive` while the node is active."""

        def on_message(message: Any) -> None:
            if not self.is_active:
                return
            if topic in self._arrived_s:
                self._arrived_s[topic] = time.monotonic()
            if type_ is Decision:
                self._explanations.decisions.add(message.decision_id, message)
                if not self._study.keeps:
                    return
            if (record := self.read_record(type_, message, topic)) is not None:
                self.receive(record)

        self.subscribe(type_, topic, on_message, SPEECH if type_ in (Utterance, RobotSpeech) else EVENTS, description)

    def receive(self, record: Any) -> None:
        """Queue a record for the role, and note talk for checks of utterances."""
        self._records.put(Arrived(record, self.clock.now_ns()))
        self._checks.talk.take(record)

    def _report_recent(self, _: Any, response: Any) -> Any:
        talk, since_ns = self._checks.talk, self._checks.talk.newest_ns - RECENT_NS
        events: list[Any] = [*self._explanations.flags.all()]
        events += [from_ros(Decision, decision) for decision in self._explanations.decisions.all()]
        recent = [*talk.speech_since(since_ns), *(event for event in events if event.stamp_ns >= since_ns)]
        response.message = json.dumps([[KINDS[type(record)], to_plain(record)] for record in recent])
        response.success = True
        return response

    def awaits_senses(self) -> bool:
        """Return whether silent senses, and a robot that is not heard, are stated as faults."""
        return self.is_active

    def _watch_records(self) -> None:
        while not self._records.is_drained():
            item = self._records.get(timeout_s=WAIT_S)
            record, received_ns = item if isinstance(item, Arrived) else (item, None)
            if self._applied is not self.config:  # between two records, so that each is decided by one configuration
                self._applied = self.config
                self._publish(self._monitor.reconfigure(self._select_config()))
            if record is None:
                self._state_sources()
                continue
            try:
                self._handle(record, received_ns)
            except Exception as error:  # noqa: BLE001  one record that a cue fails at must not end the watch
                self.get_logger().error(traceback.format_exc())
                why = f"monitor: this {type(record).__name__} was left out, because of {error!r}; please report it"
                self.health_log.raise_issue("records", Health.DEGRADED, why, lasting_s=FAULT_STATED_S)
                self.health_log.count("records_failed")
                if isinstance(record, Forget):
                    record.answer(why)
        self._publish(self._monitor.end_input(awaits_judge=False))

    def _handle(self, record: Any, received_ns: int | None) -> None:
        if isinstance(record, UnitJudgement):
            self._publish(self._monitor.take_judgement(record))
        elif isinstance(record, NoteAnswer):
            self._publish(self._monitor.take_note(record))
        elif isinstance(record, Forget):
            self._publish(self._monitor.close_flags())
            self._monitor.forget()
            self._checks.forget()
            self._explanations.decisions.clear()  # their situations may describe people
            record.answer("")
        elif isinstance(record, InputEnded):
            self._publish(self._monitor.end_input())
        else:
            if isinstance(record, Utterance | RobotSpeech | Presence | Decision):
                self._study.keep(record)
            if not isinstance(record, Decision):
                self._publish(self._monitor.take(record, received_ns))
        self._ask_for_next()
        self._report_counts()

    def _ask_for_next(self) -> None:
        """Give the judge the most useful unit, or else a note to write on a flagged one."""
        room = MAX_TO_JUDGE - self._to_judge.status().depth
        if room > 0:
            for request in self._monitor.units_to_judge(room) or self._monitor.notes_to_write(room):
                self._to_judge.put(request)

    def _publish(self, flags: list[SocialFlag]) -> None:
        """Publish flags and the windows that have closed."""
        windows = self._monitor.closed_windows()
        for window in windows:
            self._closed.publish(to_ros(window))
        self._study.keep_flags(flags)
        for flag in flags:
            self._explanations.flags.add(flag.event_id, flag)
            self._flags.publish(to_ros(flag))
            self._mirror.publish(String(data=to_json(flag)))
            self.health_log.count(f"flags_{flag.polarity}")
            self._update_attention(flag)
        if flags:
            self._publish_open_flags()

    def _publish_open_flags(self) -> None:
        states = {FlagState.OPENED, FlagState.UPDATED}
        flags = [to_ros(flag) for flag in self._explanations.flags.all() if flag.state in states]
        self._open_flags.publish(OpenFlags(header=Header(stamp=self.get_clock().now().to_msg()), flags=flags))

    def _update_attention(self, flag: SocialFlag) -> None:
        """Publish at once that attention is raised; its end can wait for the timer."""
        now_s = time.monotonic()
        was_raised = self._attention.is_raised(now_s)
        self._attention.update(flag, now_s)
        if self._attention.is_raised(now_s) and not was_raised:
            self._publish_attention()

    def _keep_time(self) -> None:
        self._publish_attention()
        if self.awaits_senses():
            self._state_missing_robot()

    def _state_missing_robot(self) -> None:
        """State that the robot is not heard: nobody publishes its speech, or only people ever speak."""
        is_due = time.monotonic() > self._active_since_s + ROBOT_GRACE_S
        topic = self.resolve_topic_name(ROBOT_SPEECH_TOPIC)
        is_unpublished = is_due and not self._monitor.has_robot_speech and not self.count_publishers(topic)
        self.health_log.state_issue("robot", NO_ROBOT if is_unpublished or self._monitor.is_robot_missing else "")

    def _publish_attention(self) -> None:
        if self.is_active:
            self._attention_topic.publish(Bool(data=self._attention.is_raised(time.monotonic())))

    def _report_counts(self) -> None:
        self._state_sources()
        for counter in self._monitor.counters:
            if counter.name in FAULTS and counter.count > self._counted.get(counter.name, 0):
                self.health_log.raise_issue(*FAULTS[counter.name], lasting_s=FAULT_STATED_S)
            self.health_log.count(counter.name, counter.count - self._counted.get(counter.name, 0))
            self._counted[counter.name] = counter.count
        self.health_log.state_issue("language", self._monitor.language_reason)
        self.health_log.state_issue("clocks", self._monitor.clocks_reason)
        if failure := self._matcher.reader_failure:
            self.health_log.state_issue("reader", f"reader: {failure}; talk is read by sentences alone")

    def _state_sources(self) -> None:
        """State how well the monitor is known to work, and which sources are missing and why."""
        now_s = time.monotonic()
        awaited = self._arrived_s if self.awaits_senses() else {}
        silent = [source for source, arrived_s in awaited.items() if now_s > arrived_s + SILENT_S]
        report = self._monitor.missing_report(self.heartbeat.node_watch.active_nodes(), silent)
        self.notes = tuple(filter(None, (self._monitor.expectation, self._judge_note(), report.note)))
        self.health_log.state_issue("missing", report.problem, Health.STALE if silent else Health.DEGRADED)

    def _forget(self, _: Any, response: Any, send: Callable[[], None]) -> None:
        """Order the role to forget, and send the response once that is done."""

        def answer(problem: str) -> None:
            response.success = not problem
            response.message = problem or FORGOTTEN
            send()

        if not self._records.put_order(Forget(answer)):
            answer("monitor: nothing was forgotten, because the node is being closed; it keeps nothing once it is")
