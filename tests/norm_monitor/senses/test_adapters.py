"""Other conventions for speech, told apart by their fields."""

from types import SimpleNamespace as Fields

import pytest

from norm_core.records.speech import SpeechEdge, Timing
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.robot_voice.robot_speech_adapter import (
    NotRobotSpeechError,
    RobotSpeechAdapter,
    estimate_duration_ns,
)
from norm_monitor.senses.speech.external_recognizer import LiveSpeechAdapter

AT_NS = 1_000 * NS_PER_S
HEADER = Fields(stamp=Fields(sec=1_000, nanosec=0), frame_id="")


@pytest.mark.parametrize(
    "message",
    [
        Fields(header=HEADER, speaker_id="robot", text="Good morning", locale="en_GB"),
        Fields(input="Good morning", locale="en_GB", voice=""),
        Fields(rawtext=Fields(text="Good morning", lang_id="en_GB")),
        Fields(sound=-3, command=1, arg="Good morning", arg2="", volume=1.0),
        Fields(data="Good morning"),
    ],
)
def test_a_command_to_speak_becomes_a_start_and_a_reckoned_stop(message: Fields) -> None:
    start, stop = RobotSpeechAdapter().feed(message, AT_NS)
    assert (start.state, start.stamp_ns, start.text) == (SpeechEdge.START, AT_NS, "Good morning")
    assert (stop.state, stop.stamp_ns) == (SpeechEdge.STOP, AT_NS + estimate_duration_ns("Good morning"))
    assert start.speech_id == stop.speech_id
    assert start.estimated
    assert stop.estimated


def test_a_new_command_cuts_the_one_before_short() -> None:
    adapter = RobotSpeechAdapter()
    first = adapter.feed(Fields(data="Let me tell you all about the history of this library"), AT_NS)
    second = adapter.feed(Fields(data="Hello"), AT_NS + NS_PER_S)
    assert (second[0].speech_id, second[0].stamp_ns) == (first[0].speech_id, AT_NS + NS_PER_S)


def test_a_stop_of_sound_play_ends_what_is_said() -> None:
    adapter = RobotSpeechAdapter()
    adapter.feed(Fields(sound=-3, command=1, arg="Let me tell you about this library", arg2=""), AT_NS)
    (stop,) = adapter.feed(Fields(sound=-1, command=0, arg="", arg2=""), AT_NS + NS_PER_S)
    assert (stop.state, stop.stamp_ns) == (SpeechEdge.STOP, AT_NS + NS_PER_S)


def test_a_caption_of_someone_else_is_not_the_robots() -> None:
    caption = Fields(header=HEADER, speaker_id="ana", text="Hello", locale="en")
    assert RobotSpeechAdapter(("robot",)).feed(caption, AT_NS) == []


def test_a_message_without_such_fields_is_refused() -> None:
    with pytest.raises(NotRobotSpeechError):
        RobotSpeechAdapter().feed(Fields(angle=3), AT_NS)


@pytest.mark.parametrize(
    ("fields", "locale"),
    [({"language": "en"}, "en"), ({"locale": "en_US", "language": "en"}, "en-US"), ({"locale": "zh_CN"}, "zh-CN")],
)
def test_live_speech_is_timed_by_the_edges_of_is_speaking(fields: dict[str, str], locale: str) -> None:
    adapter = LiveSpeechAdapter("/humans/voices/v1/speech", "v1")
    adapter.is_speaking(True, AT_NS - 3 * NS_PER_S)
    adapter.is_speaking(False, AT_NS - NS_PER_S)
    message = Fields(header=HEADER, incremental="", final="hello there", confidence=0.8, **fields)
    utterance = adapter.live_speech(message, AT_NS)
    assert utterance is not None
    assert (utterance.start_ns, utterance.end_ns) == (AT_NS - 3 * NS_PER_S, AT_NS - NS_PER_S)
    assert (utterance.text, utterance.locale, utterance.speaker_id) == ("hello there", locale, "v1")
    assert (utterance.final, utterance.timing) == (True, Timing.ARRIVAL)


def test_live_speech_without_edges_has_no_times() -> None:
    message = Fields(header=HEADER, incremental="hel", final="", confidence=0.0, locale="en")
    utterance = LiveSpeechAdapter("/speech").live_speech(message, AT_NS)
    assert utterance is not None
    assert (utterance.timing, utterance.final, utterance.confidence) == (Timing.ABSENT, False, None)
