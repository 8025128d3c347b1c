"""The threads of ears: one reads messages in the order of arrival, another transcribes; both publish."""

from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any, NamedTuple

from rclpy.publisher import Publisher

from norm_core.records.speech import RobotSpeech
from norm_core.records.status import Health
from norm_core.streams.bounded_queue import BoundedQueue
from norm_monitor.ears import Ears, HeardRecord
from norm_monitor.senses.speech.audio_front_end import SpeechSegment
from norm_nodes.base.convert import to_ros
from norm_nodes.base.norm_node import NormNode
from norm_nodes.hri_voice import HriVoice

# The capacity of the queue of messages to read.
MAX_TASKS = 500
# The capacity of the queue of speech segments to transcribe.
MAX_SEGMENTS = 8
# How long a thread waits for work before it notes that time has passed.
WAIT_S = 0.2

ReadMessage = Callable[..., Iterable[HeardRecord] | None]


class EarsTask(NamedTuple):
    """A message that waits to be read: its topic, the method that reads it, and the arguments."""

    topic: str
    read: ReadMessage
    arguments: tuple[Any, ...] = ()
    arrival_ns: int | None = None


class EarsWorker:
    """Read queued messages, transcribe the speech in them, and publish utterances and the robot's speech."""

    _ears: Ears
    _utterances: Publisher
    _robot_speech: Publisher | None
    hri_voice: HriVoice | None = None

    def __init__(self, node: NormNode[Any]) -> None:
        self._node = node
        self._tasks: BoundedQueue[EarsTask] = node.health_log.queue("sounds", MAX_TASKS)
        self.segments: BoundedQueue[SpeechSegment] = node.health_log.queue("speech", MAX_SEGMENTS)
        self._threads: list[Thread] = []

    def start(self, ears: Ears, utterances: Publisher, robot_speech: Publisher | None, *, transcribes: bool) -> None:
        """Start the threads; without `robot_speech`, the node reads that very topic and publishes nothing on it."""
        self._ears = ears
        self._utterances = utterances
        self._robot_speech = robot_speech
        work = {"ears_segment": self._read_messages}
        if transcribes:
            work["ears_transcribe"] = self._transcribe
        self._threads = [self._node.start_worker(name, step) for name, step in work.items()]

    def close(self) -> None:
        """Transcribe the segments in the queues, then end the threads."""
        self._tasks.close()
        for thread in self._threads:
            thread.join()
            self.segments.close()  # after the first thread, which has now put in its last segment
        if self.hri_voice:
            self.hri_voice.set_speaking(is_speaking=False)

    def add_message(self, topic: str, read: ReadMessage, message: Any, *arguments: Any) -> None:
        """Queue a message of a topic, with the time of its arrival."""
        arrival_ns = self._node.clock.now_ns()
        self._tasks.put(EarsTask(topic, read, (message, arrival_ns, *arguments), arrival_ns))

    def end_input(self, topic: str) -> None:
        """End open speech after the messages that are queued; `topic` is the cause."""
        self._tasks.put_order(EarsTask(topic, self._ears.end_input))

    def _read_messages(self) -> None:
        advance = self._node.guard("speech", lambda now_ns: self._publish(self._ears.advance(now_ns)), lambda _: None)
        while not self._tasks.is_drained():
            now_ns = self._node.clock.now_ns()  # before the wait: a message that comes meanwhile is not earlier
            if task := self._tasks.get(timeout_s=WAIT_S):
                self._read_message(task)
            else:
                advance(now_ns)
            if self.hri_voice:
                self.hri_voice.set_speaking(is_speaking=self._node.is_active and self._ears.is_somebody_speaking)
        self._publish(self._ears.end_input())

    def _read_message(self, task: EarsTask) -> None:
        issue = f"messages on {task.topic}"
        try:
            if task.arrival_ns is not None:
                self._publish(self._ears.advance(task.arrival_ns))
            self._publish(task.read(*task.arguments) or ())
            self._node.health_log.clear_issue(issue)
        except Exception as error:  # noqa: BLE001  no message may end the thread
            self._node.health_log.count("messages_refused")
            why = f"{task.topic}: a message was not used: {error}"
            self._node.health_log.raise_issue(issue, Health.DEGRADED, why)

    def _transcribe(self) -> None:
        transcribe = self._node.guard(
            "speech", lambda: self._publish(self._ears.transcribe(timeout_s=WAIT_S)), lambda: None
        )
        while not self.segments.is_drained():
            transcribe()

    def _publish(self, records: Iterable[HeardRecord]) -> None:
        for record in records:
            if isinstance(record, RobotSpeech):
                if self._robot_speech:
                    self._robot_speech.publish(to_ros(record))
                continue
            self._utterances.publish(to_ros(record))
            if self.hri_voice:
                self.hri_voice.publish_words(record)
            if record.text:
                self._node.health_log.count("utterances_final" if record.final else "utterances_partial")
