"""What may go wrong with a microphone on a robot: each is named and counted, and none is fatal."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from norm_core.records.speech import Utterance
from norm_core.records.status import Health, MonitorStatus
from norm_core.runtime.time import NS_PER_S
from norm_monitor.replay.node_process import NodeProcess
from norm_monitor.senses.speech.recognition import RecognizedSpeech
from norm_monitor.senses.speech.segmenter import AudioSegment
from tests.norm_monitor.senses.speech_path import LoudIsSpeech
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

AUDIO_TYPE = "std_msgs/msg/UInt8MultiArray"
TENTH = np.zeros(1_600, "<i2").tobytes()


def reasons(observer: Observer) -> str:
    """What the ears' last heartbeat says is not well."""
    statuses = [s for s in observer.statuses if s.node == "/tactful/ears"]
    return "; ".join(statuses[-1].reasons) if statuses else "nothing said yet"


def test_a_microphone_that_vanishes_and_comes_back_and_one_too_many(observer: Observer, domain_id: int) -> None:
    from std_msgs.msg import UInt8MultiArray

    observer.watch_status()
    node = observer.node

    def heard(publisher: Any, what: str, absent: bool) -> bool:
        publisher.publish(UInt8MultiArray(data=TENTH[:320]))  # less sound than time
        return (what in reasons(observer)) is not absent and bool(observer.statuses)

    with NodeProcess(["ears"], {"ears": {"audio_type": AUDIO_TYPE, "stale_after_s": 1.0}}, domain_id):
        observer.until(lambda: "nobody publishes it" in reasons(observer), "a microphone that was never there")
        first = node.create_publisher(UInt8MultiArray, "/audio", 10)
        observer.until(lambda: heard(first, "/audio", absent=True), "a microphone that is well")
        second = node.create_publisher(UInt8MultiArray, "/audio", 10)
        observer.until(lambda: node.count_publishers("/audio") == 2, "a second, as one that was killed")
        listed = len(observer.statuses) + 2
        observer.until(lambda: heard(first, "publishers", absent=True) and len(observer.statuses) > listed, "no fault")
        node.destroy_publisher(second)
        observer.until(lambda: "its publisher has stopped sending" in reasons(observer), "a microphone gone quiet")
        assert observer.statuses[-1].health is Health.STALE
        node.destroy_publisher(first)
        observer.until(lambda: "nobody publishes it" in reasons(observer), "a microphone that vanished")
        back = node.create_publisher(UInt8MultiArray, "/audio", 10)
        observer.until(lambda: heard(back, "/audio", absent=True), "a microphone that is back")


def test_wrong_audio_type_is_not_stated_as_silence(observer: Observer, domain_id: int) -> None:
    from std_msgs.msg import String

    observer.watch_status()
    with NodeProcess(["ears"], {"ears": {"audio_type": AUDIO_TYPE, "stale_after_s": 1.0}}, domain_id):
        observer.node.create_publisher(String, "/audio", 10)
        observer.until(lambda: "is published as std_msgs/msg/String" in reasons(observer), "the other type")
        listed = len(observer.statuses) + 3  # past stale_after_s
        observer.until(lambda: len(observer.statuses) > listed, "more heartbeats")
        assert "set audio_type of ears to its type" in reasons(observer)
        assert not any("stopped sending" in reason for status in observer.statuses for reason in status.reasons)


class Gate:
    """Stands for what is slow: it holds whoever comes until it is opened."""

    def __init__(self) -> None:
        self.opened, self.entered = threading.Event(), threading.Event()

    def hold(self) -> None:
        self.entered.set()
        assert self.opened.wait(PATIENCE_S)


class Deaf:
    """A recognizer behind a gate."""

    gate = Gate()

    def __init__(self, *_: Any) -> None: ...

    def recognize(self, segment: AudioSegment) -> RecognizedSpeech:
        self.gate.hold()
        return RecognizedSpeech(text="hello", locale="en", words=(), confidence=0.9, no_speech_probability=0.0)


@pytest.fixture
def ears(domain_id: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The node in this process, its audio callback called as the executor would."""
    import rclpy
    from norm_nodes import ears_node as module
    from rclpy.parameter import Parameter

    monkeypatch.setattr(Deaf, "gate", Gate())
    monkeypatch.setattr(module, "Whisper", Deaf)
    monkeypatch.setattr("norm_monitor.senses.speech.audio_front_end.Silero", LoudIsSpeech)
    rclpy.init(domain_id=domain_id)
    node = module.EarsNode()
    try:
        node.set_parameters([Parameter("audio_type", value=AUDIO_TYPE), Parameter("partial_every_s", value=0.0)])
        node.trigger_configure()
        node.trigger_activate()
        yield node
    finally:
        Deaf.gate.opened.set()
        node.trigger_deactivate()
        node.trigger_cleanup()
        node.destroy_node()
        rclpy.try_shutdown()


def queue(status: MonitorStatus, name: str) -> Any:
    return next(q for q in status.queues if q.name == name)


def until(condition: Any, what: str) -> None:
    """Waits without sleeping for work of the node's own threads."""
    for _ in range(int(PATIENCE_S / 0.05)):
        if condition():
            return
        threading.Event().wait(0.05)
    pytest.fail(f"waited in vain for {what}")


def words(count: int) -> list[Any]:
    """So many loud stretches with quiet between them, in stamped tenths of a second."""
    from norm_bench.stand_ins.encounter_player import make_stamped_sound

    loud = (np.sin(np.arange(1_600) / 3) * 16_000).astype("<i2").tobytes()
    parts = ((loud,) * 4 + (TENTH,) * 10) * count
    return [make_stamped_sound(part, NS_PER_S + place * NS_PER_S // 10) for place, part in enumerate(parts)]


def test_a_slow_transcriber_drops_counted_segments_and_never_blocks(ears: Any) -> None:
    for part in words(14):
        ears.hear(part)
    assert not Deaf.gate.opened.is_set()  # every callback has returned while the transcriber was held
    until(lambda: queue(ears.status(), "sounds").depth == 0, "all sound listened to")
    speech = queue(ears.status(), "speech")
    assert speech.dropped > 0
    assert speech.depth <= speech.capacity
    assert speech.received >= 13


def test_silence_after_waiting_words_follows_their_transcript(ears: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the last window of a recording stays open where its words are written after its sound has ended."""
    from norm_nodes.base.convert import to_ros

    utterances: list[Utterance] = []

    def noted(record: Utterance) -> Any:
        utterances.append(record)
        return to_ros(record)

    monkeypatch.setattr("norm_nodes.ears_worker.to_ros", noted)
    for part in words(3):
        ears.hear(part)
    until(lambda: queue(ears.status(), "sounds").depth == 0, "all sound listened to")
    Deaf.gate.opened.set()
    until(ears.health_log.is_idle, "all words written")
    last_words = [utterance for utterance in utterances if utterance.text][-1]
    assert utterances[-1].end_ns > last_words.end_ns + NS_PER_S // 2
    assert not utterances[-1].text


@pytest.mark.parametrize(("stale_after_s", "ended"), [(3.0, 1), (0.0, 0)])
def test_a_stopped_microphone_ends_speech_unless_ears_wait(ears: Any, stale_after_s: float, ended: int) -> None:
    """A replay in lockstep waits for whichever node is slow, however long it takes."""
    from rclpy.parameter import Parameter
    from std_msgs.msg import UInt8MultiArray

    ears.trigger_deactivate()
    ears.trigger_cleanup()
    ears.set_parameters([Parameter("stale_after_s", value=stale_after_s)])
    ears.trigger_configure()
    ears.trigger_activate()
    ears.hear(UInt8MultiArray(data=TENTH))
    ears.watch_microphone(time.monotonic() + 60)
    assert queue(ears.status(), "sounds").received == 1 + ended
    assert (ears.status().health is Health.STALE) is bool(ended)
