"""A microphone without stamps, and a computer that stalls while it records: the robot interrupts nobody."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.senses.microphone.audio_message import read_sound_file
from tests.command_line import tactful
from tests.foreign_bag import Maker, int16, write

SOUND = Path(__file__).parents[1] / "norm_monitor/senses/conversation.flac"
SPOKEN_S = (4.2982, 7.3634)  # "Good morning, I am looking for a book about whales."
REPLY = "Whales are on the second floor."
START_NS, RATE_HZ, STEP, EVERY_S = 1_700_000_000 * NS_PER_S, 16_000, 1_600, 9.0
TALK_OVER = {"robot_cuts_in", "talks_over_user"}
LATE = "messages have no stamps, and some came over 0.3 s late"


def record(path: Path, exchanges: int, reply_after_s: float, seed: int, stalls: int) -> Path:
    """Record a person who asks every nine seconds, and the robot's answers, on a computer that stalls."""
    make, numbers = Maker({}), np.random.default_rng(seed)
    whole = np.concatenate([chunk.samples[:, 0] for chunk in read_sound_file(SOUND)])
    from_s, until_s = SPOKEN_S
    spoken = whole[round(from_s * RATE_HZ) : round(until_s * RATE_HZ)]
    sound = np.zeros(round(exchanges * EVERY_S * RATE_HZ), np.float32)
    for number in range(exchanges):
        place = round((number * EVERY_S + 1) * RATE_HZ)
        sound[place : place + len(spoken)] = spoken
    messages: list[tuple[float, str, Any]] = []
    layout = make("std_msgs/msg/MultiArrayLayout", {"dim": [], "data_offset": 0})
    for place in range(0, len(sound), STEP):
        samples = int16(sound[place : place + STEP]).view(np.uint8)
        audio = make("std_msgs/msg/UInt8MultiArray", {"layout": layout, "data": samples})
        messages.append(((place + STEP) / RATE_HZ, "/audio", audio))
    for number in range(exchanges):
        say_s = number * EVERY_S + 1 + until_s - from_s + reply_after_s
        messages.append((say_s, "/say", make("std_msgs/msg/String", {"data": REPLY})))
    pauses = sorted(
        (at_s, at_s + numbers.uniform(0.3, 2.3)) for at_s in numbers.uniform(0, exchanges * EVERY_S, stalls)
    )

    def arrival_ns(at_s: float) -> int:
        for from_s, until_s in pauses:
            at_s = max(at_s, until_s) if from_s <= at_s else at_s
        return START_NS + s_to_ns(at_s)

    return write(path, make, [(arrival_ns(at_s), topic, message) for at_s, topic, message in messages])


def flags(bag: Path) -> tuple[set[str], str]:
    result = tactful("flags", bag, "--robot-topic", "/say", "--json")
    assert result.returncode == 0, result.stderr
    return {flag["cue_id"] for flag in json.loads(result.stdout)}, result.stderr


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (2, 3))])
def test_stalls_of_the_recording_computer_make_no_talk_over(tmp_path: Path, seed: int) -> None:
    cues, output = flags(record(tmp_path / "bag", 12, 1.2, seed, 35))
    assert not cues & TALK_OVER
    assert LATE in output


def test_talk_over_is_found_where_nothing_stalls(tmp_path: Path) -> None:
    cues, output = flags(record(tmp_path / "bag", 5, -1.5, 0, 0))
    assert cues & TALK_OVER
    assert LATE not in output
