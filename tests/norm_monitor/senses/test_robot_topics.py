"""What the type of a topic tells of the robot's speech, before any message has come."""

from types import SimpleNamespace as Fields

import pytest

from norm_core.records.speech import SpeechContent
from norm_monitor.senses.robot_voice.robot_messages import speech_content


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (Fields(data=""), SpeechContent.WORDS),
        (Fields(data=False), SpeechContent.TIMES),
        (Fields(status_list=[]), SpeechContent.TIMES),
        (Fields(data=b"", layout=Fields(dim=[])), SpeechContent.SOUND),
        (Fields(data=b"", encoding="", width=0, height=0), SpeechContent.NOTHING),
        (Fields(incremental="", final=""), SpeechContent.NOTHING),
    ],
    ids=["String", "Bool", "GoalStatusArray", "UInt8MultiArray", "Image", "LiveSpeech"],
)
def test_a_type_tells_what_it_can_tell_of_the_robot(message: Fields, content: SpeechContent) -> None:
    assert speech_content(message) is content
