"""Windows that close without utterances: a person who still talks is told from a node that is absent."""

from dataclasses import replace

import pytest

from norm_core.records.speech import Utterance
from norm_core.runtime.time import ReplayClock
from norm_monitor.context.meaning import Meanings
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.windows.window_config import WindowConfig
from tests.norm_monitor.encounter_talk import at, seen, user

CONFIG = MonitorConfig(windows=WindowConfig(sources=("presence", "utterances"), lateness_s=3.0))


def utterance(end_s: float, text: str, *, final: bool) -> Utterance:
    (entry,) = user(1.0, end_s, text)
    assert isinstance(entry, Utterance)
    return replace(entry, final=final)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ((), "utterances: none has arrived, and windows close without them; start ears"),
        ((utterance(3.0, "And then", final=False),), "utterances: somebody still talks"),
        ((utterance(3.0, "And then.", final=True),), "either somebody still talks, or ears is slow"),
        (
            (utterance(3.0, "And then", final=False), utterance(4.0, "And then.", final=True)),
            "either somebody still talks, or ears is slow",
        ),
    ],
    ids=["nothing", "partial", "final", "ended"],
)
def test_the_reason_tells_long_speech_from_an_absent_node(
    meaning: Meanings, said: tuple[Utterance, ...], words: str
) -> None:
    monitor = Monitor(CONFIG, ThresholdTable.shipped(), meaning, ReplayClock(at(0)))
    for entry in (*said, *seen(0, 30)):
        monitor.take(entry)
    assert monitor.missing == ("utterances",)
    assert monitor.missing_reason.startswith("utterances: ")
    assert words in monitor.missing_reason
