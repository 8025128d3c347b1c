"""Words of the robot's own recognizer, told apart by their fields."""

from types import SimpleNamespace as Fields

import pytest

from norm_core.records.speech import Timing
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.speech.external_recognizer import LiveSpeechAdapter

AT_NS = 1_000 * NS_PER_S
HEADER = Fields(stamp=Fields(sec=1_000, nanosec=0), frame_id="")


@pytest.mark.parametrize(
    ("fields", "locale"),
    [({"language": "en"}, "en"), ({"locale": "en_US", "language": "en"}, "en-US"), ({"locale": "zh_CN"}, "zh-CN")],
)
def test_live_speech_is_timed_by_the_edges_of_is_speaking(fields: dict[str, str], locale: str) -> None:
    adapter = LiveSpeechAdapter("/humans/voices/v1/speech")
    adapter.is_speaking(True, AT_NS - 3 * NS_PER_S)
    adapter.is_speaking(False, AT_NS - NS_PER_S)
    message = Fields(header=HEADER, incremental="", final="hello there", confidence=0.8, **fields)
    utterance = adapter.live_speech(message, AT_NS, "v1")
    assert utterance is not None
    assert (utterance.start_ns, utterance.end_ns) == (AT_NS - 3 * NS_PER_S, AT_NS - NS_PER_S)
    assert (utterance.text, utterance.locale, utterance.speaker_id) == ("hello there", locale, "v1")
    assert (utterance.final, utterance.timing) == (True, Timing.ARRIVAL)


def test_live_speech_without_edges_has_no_times() -> None:
    message = Fields(header=HEADER, incremental="hel", final="", confidence=0.0, locale="en")
    utterance = LiveSpeechAdapter("/speech").live_speech(message, AT_NS)
    assert utterance is not None
    assert (utterance.timing, utterance.final, utterance.confidence) == (Timing.ABSENT, False, None)
