"""Windows that close without utterances: a person who still talks is told from a node that is absent."""

from dataclasses import replace

import pytest

from norm_core.health.health_log import HealthLog
from norm_core.records.speech import Utterance, make_silence_mark
from norm_core.runtime.time import NS_PER_MS, ReplayClock
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.ears import Ears
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.windows.cutter import WindowConfig
from norm_monitor.windows.missing_sources import MissingReport
from tests.norm_monitor.encounter_talk import at, seen, user

CONFIG = MonitorConfig(windows=WindowConfig(sources=("presence", "utterances"), lateness_s=3.0))


def utterance(end_s: float, text: str, *, final: bool) -> Utterance:
    (entry,) = user(1.0, end_s, text)
    assert isinstance(entry, Utterance)
    return replace(entry, final=final)


PARTIAL, FINAL = utterance(3.0, "And then", final=False), utterance(4.0, "And then.", final=True)
HELD = make_silence_mark(at(3.0), "audio")
TALKS, LATE = "utterances: somebody talked on", "utterances: the newest are late"
ABSENT = "utterances: ears is not active, and windows close without them; start it"


def report(
    meaning: EncoderMatcher, said: tuple[Utterance, ...], active: set[str] | None, after: Utterance | None = None
) -> MissingReport:
    """What is told after thirty seconds with faces, and with these utterances at their beginning."""
    monitor = Monitor(CONFIG, ThresholdTable.shipped(), meaning, ReplayClock(at(0)))
    for entry in (*said, *seen(0, 30), *filter(None, [after])):
        monitor.take(entry)
    assert monitor.missing == ("utterances",)
    return monitor.missing_report(active)


@pytest.mark.parametrize("said", [(PARTIAL,), (HELD, HELD)], ids=["partial words", "silence that does not grow"])
@pytest.mark.parametrize("active", [None, {"ears", "camera"}])
def test_speech_under_way_is_only_noted(
    meaning: EncoderMatcher, active: set[str] | None, said: tuple[Utterance, ...]
) -> None:
    found = report(meaning, said, active)
    assert found.problem == ""
    assert found.note.startswith(TALKS)


@pytest.mark.parametrize(
    ("said", "active", "problem"),
    [
        ((), None, "utterances: none has arrived, and windows close without them; start ears"),
        ((), {"ears"}, "utterances: none has arrived, and windows close without them; ears is active"),
        ((), {"camera"}, ABSENT),
        ((FINAL,), None, LATE),
        ((PARTIAL, FINAL), {"ears"}, LATE),
        ((HELD, HELD, make_silence_mark(at(4.0), "audio")), {"ears"}, LATE),
        ((PARTIAL,), {"camera"}, ABSENT),
    ],
    ids=["nothing", "nothing_of_ears", "no_ears", "final", "ended", "silence_grew", "ears_ended"],
)
def test_late_or_absent_utterances_are_a_problem(
    meaning: EncoderMatcher, said: tuple[Utterance, ...], active: set[str] | None, problem: str
) -> None:
    found = report(meaning, said, active)
    assert found.problem.startswith(problem)
    assert found.note == ""


def test_utterance_that_ended_later_is_only_noted(meaning: EncoderMatcher) -> None:
    found = report(meaning, (HELD, HELD), {"ears"}, after=FINAL)
    assert found.problem == ""
    assert found.note.startswith(TALKS)


def test_windows_wait_for_the_marks_of_a_quiet_recognizer(meaning: EncoderMatcher) -> None:
    config = MonitorConfig(windows=WindowConfig(sources=("presence", "utterances")))
    monitor = Monitor(config, ThresholdTable.shipped(), meaning, ReplayClock(at(0)))
    ears = Ears(HearingConfig(), HealthLog())
    ears.expect_words("/words")
    for presence in seen(0, 30):
        monitor.take(presence)
        for tenth in (3, 7):
            for mark in ears.advance(presence.stamp_ns + tenth * 100 * NS_PER_MS):
                assert isinstance(mark, Utterance)
                monitor.take(mark)
    assert "windows_late" not in {counter.name for counter in monitor.counters}
