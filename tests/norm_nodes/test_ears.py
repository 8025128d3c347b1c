"""The node that hears, as a process over real DDS."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from norm_core.records.messages import from_message
from norm_core.records.speech import RobotSpeech as RobotSpeechRecord
from norm_core.records.speech import Speaker, SpeechEdge, Timing, Utterance
from norm_core.runtime.time import NS_PER_MS
from norm_monitor.replay.node_process import NodeProcess
from norm_monitor.senses.microphone.audio_message import read_sound_file
from norm_monitor.senses.microphone.pcm import Resampler
from tests.observer import Observer

pytestmark = pytest.mark.ros

# Its one field is that of an AudioData, and it is installed everywhere.
AUDIO_TYPE = "std_msgs/msg/UInt8MultiArray"


def spoken(path: Path) -> np.ndarray:
    """The recording's first sentence, 16 kHz mono, with silence after it."""
    sound = np.concatenate([chunk.samples[:, 0] for chunk in read_sound_file(path)])[: 3 * 44_100]
    resampler = Resampler(44_100, 16_000, 512)
    quiet = np.zeros(16_000, np.float32)
    return np.concatenate([*resampler.feed(sound), *resampler.flush(), quiet])


def play(shared_data: Path, observer: Observer, first_ns: int | None = None) -> None:
    """Publish the sentence in parts of a tenth of a second as fast as the ears take it, with stamps if one is given."""
    from norm_bench.stand_ins.encounter_player import make_stamped_sound
    from std_msgs.msg import UInt8MultiArray

    sound = (spoken(shared_data / "speech/jfk.flac") * 32_767).astype("<i2")
    audio = observer.node.create_publisher(UInt8MultiArray, "/audio", 100)
    taken = observer.counts_of("ears")

    def has_taken(count: int) -> bool:
        return taken()["/audio"] == count

    observer.until(audio.get_subscription_count, "the ears to listen")
    for sent, part in enumerate(np.array_split(sound, 40)):
        observer.until(partial(has_taken, sent), "the ears to take what was sent")
        stamp_ns = first_ns and first_ns + sent * 100 * NS_PER_MS
        data = part.tobytes()
        audio.publish(make_stamped_sound(data, stamp_ns) if stamp_ns else UInt8MultiArray(data=data))


def test_speech_on_a_topic_becomes_an_utterance(domain_id: int, shared_data: Path, observer: Observer) -> None:
    from norm_nodes.base.convert import to_ros

    robot = observer.publisher(RobotSpeechRecord, "robot_speech")
    messages = observer.records(Utterance, "utterances")

    def heard() -> list[Utterance]:
        return [from_message(Utterance, message) for message in messages]

    with NodeProcess(["ears"], {"ears": {"audio_type": AUDIO_TYPE}}, domain_id):
        observer.meet("ears")
        observer.until(robot.get_subscription_count, "the ears to listen")
        long_ago = RobotSpeechRecord(stamp_ns=1, speech_id="s", state=SpeechEdge.STOP, text="Hello")
        robot.publish(to_ros(long_ago))
        play(shared_data, observer)
        observer.until(lambda: any(utterance.final for utterance in heard()), "a final utterance")
    final = next(utterance for utterance in heard() if utterance.final)
    assert "fellow" in final.text.lower()
    assert (final.speaker, final.timing, final.source_topic) == (Speaker.USER, Timing.ARRIVAL, "/audio")
    # Beside it come marks of silence, which have no text.
    assert {u.utterance_id for u in heard() if u.text} == {final.utterance_id}


@pytest.mark.usefixtures("hri_msgs")
def test_words_are_a_voice_of_rep_155_that_other_ears_read(
    domain_id: int, shared_data: Path, observer: Observer
) -> None:
    from norm_nodes.base.convert import record_class

    messages = observer.collect(record_class(Utterance), "/other/utterances", 1000)
    other = ("--autostart", "--ros-args", "-r", "__ns:=/other", "-p", "words_from:=voices", "--")
    parameters = {"ears": {"audio_type": AUDIO_TYPE, "publish_hri": True}}
    with NodeProcess(["ears"], parameters, domain_id), NodeProcess(["ears"], None, domain_id, other):
        for name in ("speech", "is_speaking"):
            topic = f"/humans/voices/anonymous_speaker/{name}"
            observer.until(partial(observer.node.count_subscribers, topic), "the other ears to listen")
        play(shared_data, observer, observer.node.get_clock().now().nanoseconds)
        final = observer.until(lambda: next((u for u in messages if u.text and u.final), None), "the words")
    utterance = from_message(Utterance, final)
    assert "fellow" in utterance.text.lower()
    assert (utterance.speaker, utterance.speaker_id, utterance.timing) == (Speaker.USER, "", Timing.ARRIVAL)
    assert utterance.end_ns > utterance.start_ns


def test_an_empty_audio_type_is_named_with_the_type_that_is_published(domain_id: int, observer: Observer) -> None:
    from std_msgs.msg import UInt8MultiArray

    observer.watch_status()
    with NodeProcess(["ears"], None, domain_id):
        observer.until_told("which audio_topic names (/audio)")
        observer.node.create_publisher(UInt8MultiArray, "/audio", 1)
        observer.until_told(f"audio_type is empty; set it to {AUDIO_TYPE}")


def test_a_missing_audio_type_is_named_and_not_fatal(domain_id: int) -> None:
    with NodeProcess(["ears"], {"ears": {"audio_type": "naoqi_bridge_msgs/msg/AudioBuffer"}}, domain_id) as process:
        assert "ros-jazzy-naoqi-bridge-msgs" in process.last_output()
