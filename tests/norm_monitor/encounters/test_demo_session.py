"""The demo's session: of stock messages, in the order of its stamps, with its labels beside it."""

from itertools import pairwise

import pytest

from norm_core.bags.reader import BagReader
from norm_core.records.flag import Polarity
from norm_core.runtime.time import NS_PER_S
from norm_monitor.encounters.demo_session import DemoSession, write_demo_session
from norm_monitor.encounters.library import read_truth
from norm_monitor.senses.microphone.audio_message import decode
from norm_monitor.senses.microphone.pcm import PcmFormat

STOCK = ("std_msgs/", "sensor_msgs/", "norm_interfaces/", "norm_bench_interfaces/")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> DemoSession:
    return write_demo_session(tmp_path_factory.mktemp("demo") / "session")


def test_the_demo_session_needs_no_audio_driver(session: DemoSession) -> None:
    with BagReader(session.bag) as bag:
        assert all(topic.type_name.startswith(STOCK) for topic in bag.topics)
        sounds = [decode(bag.decode(message), PcmFormat()) for message in bag.messages(["/audio"])]
    joins = [
        (sound.stamp_ns or 0) + len(sound.samples) * NS_PER_S // sound.rate_hz - (two.stamp_ns or 0)
        for sound, two in pairwise(sounds)
    ]
    assert max(map(abs, joins)) <= NS_PER_S // 16_000 * 2
    assert all(sound.stamp_ns for sound in sounds)


def test_labels_have_both_polarities_and_several_attributes(session: DemoSession) -> None:
    assert read_truth(session.bag) == session.truth
    events = session.truth.events
    assert {event.polarity for event in events} == set(Polarity)
    assert len({attribute for event in events for attribute in event.attributes}) >= 4
    assert all(session.truth.start_ns <= event.onset_ns < session.truth.end_ns for event in events)
    choices = [scene.choice for scene in session.scenes]
    assert len(choices) == 2
    assert all(0 <= choice.right < len(choice.query.options) for choice in choices)
    assert (session.truth.end_ns - session.truth.start_ns) / NS_PER_S <= 150
