"""Clocks that lie apart are named with their distance, and timing raises no flag until they agree."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from norm_core.records.flag import FlagState, SocialFlag
from norm_core.records.speech import RobotSpeech, Speaker, Timing, Utterance, make_silence_mark
from norm_core.runtime.time import ReplayClock, s_to_ns
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.windows.cutter import Entry, WindowConfig
from tests.node_records import camera_frame
from tests.norm_monitor.encounter_talk import ALONE, at, robot, seen, user, waiting_alone, when_given, with_silence

LIVE = MonitorConfig(windows=WindowConfig(sources=("utterances",)))
SAID = [
    "Good morning, I am the robot of this museum.",
    "The whales are on the second floor today.",
    "You can take the stairs behind the shop.",
    "There is a lift for wheelchairs as well.",
    "Tickets cost twelve euros for one adult.",
    "Children below the age of six are free.",
]


def talk(shift_s: float) -> list[Entry]:
    """A robot's tour whose words the microphone hears as a person's, by a clock that differs."""
    entries: list[Entry] = []
    for number, text in enumerate(SAID):
        start_s = 8.0 * number + 2
        entries += robot(start_s, start_s + 3, text)
        (echo,) = user(start_s + shift_s, start_s + shift_s + 3, text)
        entries.append(
            replace(echo, speaker=Speaker.ROBOT) if abs(shift_s) < 1 and isinstance(echo, Utterance) else echo
        )
        if number % 2:
            entries += robot(start_s + shift_s + 1.5, start_s + shift_s + 2.5, "And the tickets are over there.")
    return entries


def watch(entries: Iterable[Entry], meaning: EncoderMatcher, **turns: float) -> tuple[Monitor, list[SocialFlag]]:
    model = waiting_alone(**turns)
    monitor = Monitor(ALONE, ThresholdTable.shipped(), meaning, ReplayClock(at(0)), unit_model=model)
    flags = [flag for _, entry in with_silence(list(entries), until_s=60) for flag in monitor.take(entry)]
    return monitor, flags + monitor.end_input()


def cues_left(flags: Iterable[SocialFlag]) -> set[str]:
    last = {flag.event_id: flag for flag in flags}
    return {flag.cue_id for flag in last.values() if flag.state is not FlagState.WITHDRAWN}


@pytest.mark.parametrize("shift_s", [4.0, -4.0])
def test_robot_words_heard_at_another_time_hold_timing_back(meaning: EncoderMatcher, shift_s: float) -> None:
    monitor, flags = watch(talk(shift_s), meaning, duration_s=0.5)
    way = "behind" if shift_s > 0 else "ahead of"
    assert f"clocks: robot_speech is stamped 4.0 s {way} utterances" in monitor.clocks_reason
    assert "chrony" in monitor.clocks_reason
    assert cues_left(flags) & {"robot_cuts_in", "talks_over_user", "response_delay", "no_response"} == set()
    withdrawn = [flag.rationale for flag in flags if flag.state is FlagState.WITHDRAWN]
    assert any("clocks" in text for text in withdrawn)


def test_person_who_repeats_the_robot_shows_no_skew(meaning: EncoderMatcher) -> None:
    """The microphone does not hear the robot, and a pupil repeats each sentence in a time of their own."""
    entries: list[Entry] = []
    for number, text in enumerate(SAID):
        start_s = 9.0 * number + 2
        entries += [*robot(start_s, start_s + 3, text), *user(start_s + 3.4 + 0.4 * number, start_s + 7, text)]
    monitor, _ = watch(entries, meaning)
    assert monitor.clocks_reason == ""


def test_timing_counts_again_once_the_clocks_agree(meaning: EncoderMatcher) -> None:
    later = [
        replace(entry, stamp_ns=entry.stamp_ns + s_to_ns(60), speech_id=f"{entry.speech_id}b")
        if isinstance(entry, RobotSpeech)
        else replace(entry, stamp_ns=entry.stamp_ns + s_to_ns(60), start_ns=entry.start_ns + s_to_ns(60),
                     end_ns=entry.end_ns + s_to_ns(60), utterance_id=f"{entry.utterance_id}b")
        for entry in talk(0.3)
        if isinstance(entry, RobotSpeech | Utterance)
    ]  # fmt: skip
    asked = [*user(112, 114, "Where can I buy a ticket?"), *robot(122, 124, "At the counter over there.")]
    monitor = Monitor(ALONE, ThresholdTable.shipped(), meaning, ReplayClock(at(0)), unit_model=waiting_alone())
    flags, reasons = [], []
    for _, entry in with_silence([*talk(4.0), *later, *asked], until_s=150):
        flags += monitor.take(entry)
        reasons.append(monitor.clocks_reason)
    assert any(reasons)
    assert reasons[-1] == ""
    assert cues_left([flag for flag in flags if flag.onset_ns > at(110)]) & {"response_delay", "no_response"}


def test_sound_that_came_late_without_stamps_holds_timing_back(meaning: EncoderMatcher) -> None:
    rude = [*user(20, 24, "I am looking for a book about whales and"), *robot(22, 25, "The shop is over there.")]

    def cues(from_s: float, until_s: float) -> tuple[str, set[str]]:
        model = waiting_alone(words=1)
        monitor = Monitor(ALONE, ThresholdTable.shipped(), meaning, ReplayClock(at(0)), unit_model=model)
        flags, reasons = [], set()
        for _, entry in with_silence(rude, until_s=60):
            if isinstance(entry, Utterance) and not entry.text and at(from_s) < entry.end_ns < at(until_s):
                entry = replace(entry, timing=Timing.ABSENT)  # noqa: PLW2901
            flags += monitor.take(entry)
            reasons.add(monitor.clocks_reason)
        return "".join(reasons), cues_left(flags + monitor.end_input())

    assert cues(0, 0)[0] == ""
    assert "robot_cuts_in" in cues(0, 0)[1]
    assert "driver that stamps its sound" in cues(19, 29)[0]
    assert "robot_cuts_in" not in cues(19, 29)[1]


def test_flags_during_skew_are_marked_late(meaning: EncoderMatcher) -> None:
    rude = robot(55, 57, "Great! Do you want to hear a joke about whales?")
    _, flags = watch([*talk(4.0), *user(51, 54, "My mother died last week."), *rude], meaning, words=1)
    late = [flag for flag in flags if flag.onset_ns >= at(55)]
    assert late
    assert all(flag.provenance.window_late for flag in late)


def test_sources_an_hour_apart_are_named_by_stamps_alone(meaning: EncoderMatcher) -> None:
    hour = s_to_ns(3600)
    for ahead_ns, way in ((hour, "ahead of"), (-hour, "behind")):
        entries = [*talk(0.3), *seen(0, 55)]
        skewed = [
            (when_given(e), replace(e, stamp_ns=e.stamp_ns + ahead_ns) if isinstance(e, RobotSpeech) else e)
            for e in entries
        ]
        marks = [(when, entry) for when, entry in with_silence([], until_s=60)]
        monitor = Monitor(ALONE, ThresholdTable.shipped(), meaning, ReplayClock(at(0)))
        for _, entry in sorted([*skewed, *marks], key=lambda pair: pair[0]):
            monitor.take(entry)
        assert f"robot_speech is stamped 60 min {way} utterances" in monitor.clocks_reason


@pytest.mark.parametrize(
    ("camera_s", "here_s", "pace", "reason"),
    [
        (-4.0, 0.0, 1.0, "frames is stamped 4.0 s behind utterances (this machine's clock agrees with utterances)"),
        (0.0, 4.0, 1.0, ""),  # this machine, or the recording that it plays, is old, and all sources with it
        (4.0, 4.0, 1.0, "frames is stamped 4.0 s ahead of utterances (this machine's clock agrees with frames)"),
        (-4.0, 0.0, 5.0, ""),  # a replay at five times its pace
        (-1.0, 0.0, 1.0, ""),
    ],
)
def test_receive_times_name_the_wrong_clock(
    meaning: EncoderMatcher, camera_s: float, here_s: float, pace: float, reason: str
) -> None:
    monitor = Monitor(LIVE, ThresholdTable.shipped(), meaning, ReplayClock(at(0)))
    for tenth in range(300):
        now_s = tenth / 10
        received_ns = at(here_s + now_s / pace)
        monitor.take(make_silence_mark(at(now_s), "audio"), received_ns + s_to_ns(0.1))
        if tenth % 10 == 0:
            # A slow one now and then says nothing of clocks.
            monitor.take(camera_frame(at(now_s + camera_s), b""), received_ns + s_to_ns(8.0 if tenth % 50 else 0.05))
    assert reason in monitor.clocks_reason
    assert bool(monitor.clocks_reason) is bool(reason)


def test_camera_that_falls_behind_hides_no_other_clock(meaning: EncoderMatcher) -> None:
    monitor = Monitor(LIVE, ThresholdTable.shipped(), meaning, ReplayClock(at(0)))
    for second in range(60):
        monitor.take(camera_frame(at(second / 2), b""), at(second + 0.05))
        monitor.take(make_silence_mark(at(second), "audio"), at(second + 0.1))
        monitor.take(seen(second - 5, second - 4)[0], at(second + 0.1))
    assert "presence is stamped 5.0 s behind utterances" in monitor.clocks_reason
    assert "frames" not in monitor.clocks_reason


@pytest.mark.parametrize("late", ["utterances", "frames", "robot_speech"])
def test_lateness_of_a_slow_machine_is_no_skew(meaning: EncoderMatcher, late: str) -> None:
    """One source comes ever later from the third second on, up to forty seconds; the others come in time."""
    monitor = Monitor(LIVE, ThresholdTable.shipped(), meaning, ReplayClock(at(0)))
    arrivals: list[tuple[float, Entry]] = []
    for second in range(120):
        lateness_s = min(40.0, max(0.0, second - 3.0))
        said = robot(second, second + 1, "Hello.") if second % 20 == 2 else []
        sources: dict[str, list[Entry]] = {
            "utterances": [make_silence_mark(at(second), "audio")],
            "frames": [camera_frame(at(second), b"")],
            "robot_speech": said,
        }
        for source, entries in sources.items():
            arrivals += [(second + 0.1 + lateness_s * (source == late), entry) for entry in entries]
    for arrival_s, entry in sorted(arrivals, key=lambda pair: pair[0]):
        monitor.take(entry, at(arrival_s))
        assert monitor.clocks_reason == ""


def test_receive_times_in_lockstep_say_nothing_of_clocks(meaning: EncoderMatcher) -> None:
    """Without a limit of lateness, the recording may come at any pace, here at that of time."""
    monitor = Monitor(ALONE, ThresholdTable.shipped(), meaning, ReplayClock(at(0)))
    for second in range(60):
        monitor.take(make_silence_mark(at(second), "audio"), at(second + 0.1))
        monitor.take(camera_frame(at(second - 4.0), b""), at(second + 0.1))
    assert monitor.clocks_reason == ""
