"""One session, any mode and pace: the same windows, prompts, flags and answers."""

import importlib.util
from pathlib import Path

import pytest

from norm_core.bags.writer import BagWriter
from norm_core.runtime.time import s_to_ns
from sim_replays.drivers.node_driver import FLAGS, TransportError, in_process, over_dds
from sim_replays.examples.demo_session import shift_record
from sim_replays.scenarios.generate import AUDIO
from sim_replays.scenarios.library import HERE, find, read
from tests.acceptance.conversation_bag import robot, user, write_talk
from tests.sensed_bag import write_sensed
from tests.session_parity import first_differing_output, items

pytestmark = pytest.mark.ros

LENGTH_S = 10.0
CUT_SHORT_S = 3.0  # while somebody speaks


@pytest.mark.parametrize(("name", "rate"), [("pharmacy_counter", 4.0), ("art_class", 20.0)])
def test_nodes_in_lockstep_and_at_a_pace_say_what_their_logic_says(
    tmp_path: Path, domain_id: int, name: str, rate: float
) -> None:
    bag = tmp_path / "bag"
    write_sensed(bag, read(find(name)), LENGTH_S)
    direct = list(in_process(bag))
    kinds = {item.split()[1] for item in items(direct)}
    assert kinds == {"window", "flag", "answer", "utterance"}
    for pace in (0.0, rate):
        live = list(over_dds(bag, pace, domain_id=domain_id))
        assert live[-1].message["lost"] == {}
        assert first_differing_output(direct, live) is None


def test_words_under_way_as_a_recording_ends_are_written_in_every_mode(tmp_path: Path, domain_id: int) -> None:
    whole = list(shift_record(HERE / "shipped/kiosk_directions", 0))
    bag, end_ns = tmp_path / "bag", whole[0][0] + s_to_ns(CUT_SHORT_S)
    with BagWriter(bag) as writer:
        for stamp_ns, topic, content in whole:
            if stamp_ns < end_ns and topic == AUDIO:
                writer.write_message(topic, content, stamp_ns)
    direct = list(in_process(bag))
    assert "Hello" in " ".join(one["text"] for one in items(direct).values() if "text" in one)
    for pace in (0.0, 4.0):
        assert first_differing_output(direct, list(over_dds(bag, pace, domain_id=domain_id))) is None


def test_the_last_turn_of_a_recording_is_read_in_every_mode(tmp_path: Path, domain_id: int) -> None:
    talk = [
        user(1, 4, "I'd like a coffee, please."),
        robot(5, 9, "Your blood test from Monday is positive, by the way."),
    ]
    bag = write_talk(tmp_path / "bag", talk, 9.5)
    direct = list(in_process(bag))
    assert "unsuitable_words" in {one.message["cue_id"] for one in direct if one.topic == FLAGS}
    for pace in (0.0, 4.0):
        assert first_differing_output(direct, list(over_dds(bag, pace, domain_id=domain_id))) is None


@pytest.mark.skipif(bool(importlib.util.find_spec("audio_common_msgs")), reason="audio_common_msgs is installed here")
def test_sound_of_a_type_that_is_not_installed_is_named(domain_id: int) -> None:
    with pytest.raises(TransportError, match=r"/audio cannot be played: .*install audio_common_msgs"):
        list(over_dds(HERE / "shipped/zoo_keeper", domain_id=domain_id))
