"""Run the installed cue on a short talk."""

from norm_core import ReplayClock, Speaker, Utterance, s_to_ns
from norm_monitor import EncoderMatcher, Monitor, MonitorConfig

TALK = (
    (Speaker.USER, 0.0, 2.0, "Where can I buy a ticket?"),
    (Speaker.ROBOT, 2.5, 5.0, "You can buy it at the counter behind the stairs on your left before noon."),
    (Speaker.USER, 6.0, 7.5, "And where is the café?"),
    (Speaker.ROBOT, 8.0, 11.5, "The café is on the second floor."),
)


def test_only_the_fast_turn_is_flagged() -> None:
    """Let the cue flag a turn of 6 words a second, and not one of 2."""
    config = MonitorConfig.for_replay(["utterances"], cues=["speaks_too_fast"])
    monitor = Monitor(config, config.table(), EncoderMatcher.shipped(), ReplayClock())
    flags = []
    for speaker, start_s, end_s, text in TALK:
        start_ns, end_ns = s_to_ns(start_s), s_to_ns(end_s)
        line = Utterance(
            stamp_ns=start_ns, utterance_id=text, speaker=speaker, text=text, start_ns=start_ns, end_ns=end_ns
        )
        flags += monitor.take(line)
    flags += monitor.end_input()
    assert {flag.onset_ns for flag in flags if flag.cue_id == "speaks_too_fast"} == {s_to_ns(2.5)}
