"""A conversation generated with known times: onsets, offsets and who spoke."""

import json
from pathlib import Path
from statistics import median

from norm_core.speech import RobotSpeech, Speaker, SpeechEdge
from norm_core.time import NS_PER_MS, NS_PER_S, s_to_ns
from norm_monitor.senses.hearing import HearingConfig, Listener, Scribe
from norm_monitor.senses.segments import SegmentConfig
from norm_monitor.senses.sound_file import chunks_of
from norm_monitor.senses.whisper import Whisper

HERE = Path(__file__).parent
START_NS = 1_000 * NS_PER_S
CONFIG = HearingConfig(segments=SegmentConfig(partial_every_s=0))


def test_a_generated_conversation_is_heard_at_its_known_times() -> None:
    truth = json.loads((HERE / "conversation.json").read_text(encoding="utf-8"))
    scribe = Scribe(CONFIG, Whisper(CONFIG.whisper), "mic")
    for index, turn in enumerate(truth):
        if turn["speaker"] == "robot":
            for state, at_s in ((SpeechEdge.START, turn["start_s"]), (SpeechEdge.STOP, turn["end_s"])):
                stamp_ns = START_NS + s_to_ns(at_s)
                edge = RobotSpeech(stamp_ns=stamp_ns, speech_id=f"s{index}", state=state, text=turn["text"])
                scribe.robot_speaks(edge)
    listener = Listener(CONFIG)
    chunks = chunks_of(HERE / "conversation.flac", START_NS)
    segments = [segment for chunk in chunks for segment in listener.hear(chunk, START_NS)]
    utterances = [u for segment in [*segments, *listener.flush()] for u in scribe.write(segment)]
    assert len(utterances) == len(truth)
    onsets = [abs(u.start_ns - START_NS - s_to_ns(t["start_s"])) for u, t in zip(utterances, truth, strict=True)]
    offsets = [abs(u.end_ns - START_NS - s_to_ns(t["end_s"])) for u, t in zip(utterances, truth, strict=True)]
    assert median(onsets) < 120 * NS_PER_MS
    assert median(offsets) < 120 * NS_PER_MS
    assert [u.speaker for u in utterances][:2] == [Speaker.ROBOT, Speaker.USER]
    assert utterances[3].speaker is Speaker.USER
