"""A robot is killed while it says that it speaks, and comes back: live, and from the bag that was recorded then."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.flag import FlagState, SocialFlag
from norm_core.records.messages import from_message
from sim_replays.drivers.node_process import NodeProcess
from tests.command_line import tactful
from tests.observer import Observer

pytestmark = pytest.mark.ros

WORDS, VOICE = "/bellhop/voice/say", "/bellhop/voice/active"
EYES = "/bellhop/eyes/front"
HEARD, PERSON_SPEAKS = "/bellhop/asr/heard", "/bellhop/asr/voice_active"
QUESTIONS = ("Where can I park my car?", "Where is the nearest pharmacy, please?")
# Speaks until it is killed, or answers no question. It states both voices and sends a picture ten times a second.
ROBOT = """
import sys, time
import rclpy
from sensor_msgs.msg import Image
from std_msgs.msg import Bool, String

rclpy.init()
node = rclpy.create_node("bellhop_base")
topics = dict(words=String, voice=Bool, heard=String, person=Bool, eyes=Image)
picture = Image(width=64, height=48, encoding="rgb8", step=192, data=bytes(9216))
to = {key: node.create_publisher(type_, name, 10) for (key, type_), name in zip(topics.items(), sys.argv[2:])}
while not all(publisher.get_subscription_count() >= 2 for publisher in to.values()):  # ears and the recorder
    time.sleep(0.1)
state = dict(voice=False, person=False)

def pass_time(seconds):
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        for key, value in state.items():
            to[key].publish(Bool(data=value))
        picture.header.stamp = node.get_clock().now().to_msg()
        to["eyes"].publish(picture)
        time.sleep(0.1)

def person(seconds, text):
    state["person"] = True
    pass_time(seconds)
    state["person"] = False
    pass_time(0.3)
    to["heard"].publish(String(data=text))

pass_time(2)
if sys.argv[1] == "speaks":
    person(2, "Hello there, good morning.")
    to["words"].publish(String(data="Let me tell you a long story about this old hotel and its many guests."))
    state["voice"] = True
    pass_time(10)
    print("told", flush=True)
else:
    for question in sys.argv[7:]:
        person(2, question)
        pass_time(14)
pass_time(600)
"""


@contextmanager
def robot(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The robot's process, which SIGKILL ends: the graph then learns of its end after 20 s."""
    command = [sys.executable, "-c", ROBOT, arguments[0], WORDS, VOICE, HEARD, PERSON_SPEAKS, EYES, *arguments[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_questions_after_it_comes_back_are_flagged_live_and_from_the_bag(
    domain_id: int, observer: Observer, tmp_path: Path
) -> None:

    flags = observer.records(SocialFlag, "flags")
    parameters: dict[str, Any] = {
        "camera": {"topic": EYES, "transport": "raw"},
        "monitor": {"fusion": {"sensitivity": "keen"}},
        "ears": {
            "words_from": "topic",
            "words_topic": HEARD,
            "words_type": "std_msgs/msg/String",
            "is_speaking_topic": PERSON_SPEAKS,
            "robot_speech_topic": WORDS,
            "robot_speaking_topic": VOICE,
        },
        "bag_recorder": {"bag": str(tmp_path / "bag")},
    }

    def live() -> list[tuple[str, float]]:
        newest = {one.event_id: one for one in (from_message(SocialFlag, message) for message in flags)}
        there = [one for one in newest.values() if one.state is not FlagState.WITHDRAWN]
        return sorted(((one.cue_id, one.onset_ns / 1e9) for one in there), key=lambda pair: pair[1])

    def unanswered() -> int:
        return [cue_id for cue_id, _ in live()].count("no_response")

    with NodeProcess(["camera", "ears", "monitor", "bag_recorder"], parameters, domain_id):
        observer.meet("monitor")
        with robot("speaks") as process:
            assert process.stdout
            observer.until(lambda: observer.node.count_publishers(VOICE), "the robot")
            assert process.stdout.readline() == "told\n"
        observer.until(lambda: not observer.node.count_publishers(VOICE), "the end of the robot's lease")
        with robot("ignores", *QUESTIONS):
            observer.until(lambda: unanswered() == len(QUESTIONS), "a flag of each question")
    options = ["--robot-topic", WORDS, "--robot-topic", VOICE, "--words-topic", HEARD, "--words-topic", PERSON_SPEAKS]
    replayed = tactful("flags", tmp_path / "bag", *options, "--sensitivity", "keen", "--json").stdout
    found = sorted(((one["cue_id"], one["onset_ns"] / 1e9) for one in json.loads(replayed)), key=lambda pair: pair[1])
    assert [cue_id for cue_id, _ in found] == [cue_id for cue_id, _ in live()]
    assert [onset_s for _, onset_s in found] == pytest.approx([onset_s for _, onset_s in live()], abs=0.5)
