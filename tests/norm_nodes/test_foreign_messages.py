"""The ears node on the real definitions of other packages, each in a prefix and processes of its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from norm_core.records.messages import from_message
from norm_core.records.speech import Speaker, Timing, Utterance
from norm_core.runtime.time import NS_PER_S
from norm_monitor.replay.node_process import NodeProcess
from norm_monitor.senses.microphone.audio_message import read_sound_file
from tactful_cli.main import app
from tests.foreign_bag import Maker, int16, write
from tests.foreign_interfaces import ROS_DRIVERS
from tests.norm_monitor.senses.speech_path import START_NS
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.ros, pytest.mark.usefixtures("ros_drivers")]

SPEECH = Path(__file__).parents[1] / "norm_monitor/senses"
RATE_HZ, CHUNK, LENGTH_S = 16_000, 1_600, 11.0
ROBOT_TEXT = "There are seven books about the sea."


@pytest.fixture(scope="module")
def sound() -> Any:
    """The robot's echo, then a user."""
    whole = np.concatenate([chunk.samples[:, 0] for chunk in read_sound_file(SPEECH / "mixtures.flac")])
    return int16(whole[: round(LENGTH_S * RATE_HZ)])


def chunks(sound: Any) -> list[tuple[int, Any]]:
    """Each chunk with the stamp of its first sample."""
    return [
        (START_NS + first * NS_PER_S // RATE_HZ, sound[first : first + CHUNK]) for first in range(0, len(sound), CHUNK)
    ]


class Session:
    """A bag played to the ears, and what they say of it."""

    def __init__(self, observer: Observer, domain_id: int) -> None:

        self.observer, self._domain_id = observer, domain_id
        self._heard = observer.records(Utterance, "utterances")
        observer.watch_status()

    @property
    def finals(self) -> list[Utterance]:
        return [u for u in (from_message(Utterance, message) for message in self._heard) if u.final]

    def play(self, bag: Path, ears: dict[str, Any], until: Any, what: str) -> None:
        # So that speech at the end of the bag is ended soon.
        ears = {"partial_every_s": 0.0, "stale_after_s": 1.0, **ears}
        player = {"bag": str(bag), "wait_for_subscribers_s": 20.0}
        with NodeProcess(["ears"], {"ears": ears}, self._domain_id):
            self.observer.meet("ears")
            with NodeProcess(["bag_player"], {"bag_player": player}, self._domain_id) as played:
                assert played.wait(PATIENCE_S) == 0, played.last_output()
                self.observer.until(until, what)


@pytest.fixture
def session(observer: Observer, domain_id: int) -> Session:
    return Session(observer, domain_id)


def audio_of(kind: str, make: Maker, stamp_ns: int, part: Any) -> Any:
    """One message; of two channels the second is the microphone."""
    both = np.stack([np.zeros_like(part), part], axis=1).ravel()
    held = make("audio_common_msgs/msg/AudioData", {"data": np.frombuffer(both.tobytes(), np.uint8)})
    return held if kind.endswith("AudioData") else make(kind, {"header": make.header(stamp_ns), "audio": held})


def bag_of(path: Path, kind: str, sound: Any, more: Any) -> Path:
    make = Maker(ROS_DRIVERS)
    messages = [
        (stamp_ns + len(part) * NS_PER_S // RATE_HZ, "/audio", audio_of(kind, make, stamp_ns, part))
        for stamp_ns, part in chunks(sound)
    ]
    return write(path, make, [*messages, *more(make)])


def caption(make: Maker) -> list[tuple[int, str, Any]]:
    stamp_ns = START_NS + NS_PER_S // 2
    fields = {"header": make.header(stamp_ns), "speaker_id": "robot", "text": ROBOT_TEXT, "locale": "en_GB"}
    return [(stamp_ns, "/said", make("hri_actions_msgs/msg/ClosedCaption", fields))]


def sound_request(make: Maker) -> list[tuple[int, str, Any]]:
    fields = {"sound": -3, "command": 1, "volume": 1.0, "arg": ROBOT_TEXT, "arg2": ""}
    return [(START_NS + NS_PER_S // 2, "/said", make("sound_play/msg/SoundRequest", fields))]


@pytest.mark.parametrize(
    ("kind", "make_speech", "timing"),
    [("AudioDataStamped", caption, Timing.SOURCE), ("AudioData", sound_request, Timing.ARRIVAL)],
)
def test_ears_read_speech_requests_and_audio_info(  # noqa: PLR0917
    kind: str, make_speech: Any, timing: Timing, session: Session, sound: Any, tmp_path: Path
) -> None:
    def more(make: Maker) -> list[tuple[int, str, Any]]:
        fields = {
            "channels": 2,
            "sample_rate": RATE_HZ,
            "sample_format": "S16LE",
            "bitrate": 0,
            "coding_format": "wave",
        }
        info = (START_NS, "/audio_info", make("audio_common_msgs/msg/AudioInfo", fields))
        return [info, *make_speech(make)]

    bag = bag_of(tmp_path / "bag", f"audio_common_msgs/msg/{kind}", sound, more)
    # Neither rate nor channels are given but by the AudioInfo.
    ears = {"audio_type": f"audio_common_msgs/msg/{kind}", "audio_info_topic": "/audio_info", "channel": 1}
    ears |= {"robot_speech_topic": "/said"}
    speakers: list[Speaker] = []
    for count in (2, 4, 6):
        session.play(bag, ears, lambda count=count: len(session.finals) == count, "two utterances")
        speakers = [u.speaker for u in session.finals[-2:]]
        if timing is Timing.SOURCE or Speaker.UNKNOWN not in speakers:
            break  # by arrival, a busy machine may leave it open who spoke
    assert speakers == [Speaker.ROBOT, Speaker.USER]
    assert {u.timing for u in session.finals} == {timing}


def test_mp3_is_named_and_counted(session: Session, tmp_path: Path) -> None:
    make = Maker(ROS_DRIVERS)
    fields = {"channels": 1, "sample_rate": RATE_HZ, "sample_format": "", "bitrate": 128, "coding_format": "mp3"}
    messages = [(START_NS, "/audio_info", make("audio_common_msgs/msg/AudioInfo", fields))]
    data = np.frombuffer(b"no frame begins here", np.uint8)
    messages += [
        (START_NS + i * NS_PER_S // 10, "/audio", make("audio_common_msgs/msg/AudioData", {"data": data}))
        for i in range(1, 6)
    ]
    bag = write(tmp_path / "bag", make, messages)
    ears = {"audio_type": "audio_common_msgs/msg/AudioData", "audio_info_topic": "/audio_info"}
    observer = session.observer
    session.play(bag, ears, lambda: observer.counted("audio_compressed") >= 5, "five refused messages")
    assert any("mp3" in reason for status in observer.statuses for reason in status.reasons)


def talk_of_two(make: Maker) -> Iterator[tuple[int, str, Any]]:
    """Ann, of whom a tracker of persons knows, and a voice that is likely Bob's; each says a sentence."""
    text, ids, matched = "hri_msgs/msg/LiveSpeech", "hri_msgs/msg/IdsList", "hri_msgs/msg/IdsMatch"
    names = ["v1", "v2", "no/topic", "9"]
    for tenth in range(0, 60, 5):
        tracked = {"header": make.header(0), "ids": names if tenth < 50 else []}
        yield START_NS + tenth * NS_PER_S // 10, "/humans/voices/tracked", make(ids, tracked)
        state = make("std_msgs/msg/String", {"data": "v1" if tenth < 40 else ""})
        yield START_NS + tenth * NS_PER_S // 10, "/humans/persons/ann/voice_id", state
    match = {"id1": "v2", "id1_type": 4, "id2": "bob", "id2_type": 1, "confidence": 0.7}
    yield START_NS + NS_PER_S, "/humans/candidate_matches", make(matched, match)
    for at_s, voice, words in ((2, "v1", "where is the desk"), (3, "v2", "and the lift")):
        for later_s, speaking in ((0, True), (1, False)):
            edge = make("std_msgs/msg/Bool", {"data": speaking})
            yield START_NS + (at_s + later_s) * NS_PER_S, f"/humans/voices/{voice}/is_speaking", edge
        fields = {"header": make.header(0), "incremental": "", "final": words, "confidence": 0.9, "locale": "en_US"}
        yield START_NS + (at_s + 1) * NS_PER_S + 1, f"/humans/voices/{voice}/speech", make(text, fields)


SPEAKERS = {("ann", "where is the desk"), ("bob", "and the lift")}


def test_each_voice_is_followed_and_its_words_are_the_persons(session: Session, tmp_path: Path) -> None:
    make, observer = Maker(ROS_DRIVERS), session.observer
    bag = write(tmp_path / "bag", make, talk_of_two(make))

    def nobody_is_left() -> bool:
        note = "/humans/voices/tracked: no voice is tracked; if somebody speaks"
        return any(status_note.startswith(note) for status in observer.statuses for status_note in status.notes)

    def is_over() -> bool:
        return len(session.finals) == 2 and nobody_is_left()

    session.play(bag, {"words_from": "voices"}, is_over, "two utterances, and voices that have gone")
    assert {(utterance.speaker_id, utterance.text) for utterance in session.finals} == SPEAKERS
    assert {utterance.timing for utterance in session.finals} == {Timing.ARRIVAL}
    assert observer.counted("ids_invalid") == 2  # once each, however often they are listed
    replayed = CliRunner().invoke(app, ["hear", str(bag), "--words-topic", "/humans", "--json"])
    assert {(utterance["speaker_id"], utterance["text"]) for utterance in json.loads(replayed.stdout)} == SPEAKERS
