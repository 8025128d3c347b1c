"""One bag or session, any transport and pace: the same windows, prompts, flags, probabilities and answers."""

import importlib.util
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from norm_core.bags.writer import BagWriter
from norm_core.records.decision import OtherAgent, Viewpoint
from norm_core.records.episode import Answer, Episode, EpisodeEdge, Query
from norm_core.records.outcome import Outcome
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.encounters.demo_session import shift_bag
from norm_monitor.encounters.generate import AUDIO
from norm_monitor.encounters.library import HERE, find, read
from norm_monitor.replay.node_driver import FLAGS, TransportError, play_over_dds
from sim_replays.items.item_bag import EPISODES, FRAMES, QUERIES, START_NS, UTTERANCES
from sim_replays.runs.players import open_players
from sim_replays.runs.robot_config import AnswererConfig, JudgeAnswererConfig, make_selector_files
from tests.acceptance.conversation_bag import robot, user, write_talk
from tests.action_selector.test_models import jpeg
from tests.node_records import camera_frame
from tests.norm_core.engines.fake_server import describe_model, serving
from tests.sensed_bag import write_sensed
from tests.session_parity import first_differing_output, items
from tests.session_replay import replay_in_process

pytestmark = pytest.mark.ros

ITEMS = 5  # of two seconds each
COOK = OtherAgent(agent_id="p", role="cook", doing="stirring the soup")


def bag_of(path: Path, seed: int, task: str = "eas") -> Path:
    """Ten seconds with a frame a second, an utterance and a question in each item."""
    with BagWriter(path) as writer:
        for number in range(ITEMS):
            name, start_ns = f"{seed}-{number}", START_NS + 2 * number * NS_PER_S
            end_ns = start_ns + 2 * NS_PER_S - 10
            span: dict[str, Any] = {"start_ns": start_ns, "end_ns": end_ns}
            begin = EpisodeEdge.BEGIN
            edge = Episode(stamp_ns=start_ns, episode_id=name, state=begin, suite="test", **span)
            writer.write(EPISODES, edge, start_ns)
            for second in range(2):
                frame = camera_frame(start_ns + second * NS_PER_S + 1, jpeg(), 4, 4)
                writer.write(FRAMES, replace(frame, payload_sha256=f"{name}-{second}"), frame.stamp_ns)
            span, text = {"start_ns": start_ns + 2, "end_ns": start_ns + NS_PER_S}, f"Table {number} is free."
            utterance = Utterance(stamp_ns=start_ns + 2, utterance_id=name, speaker=Speaker.USER, text=text, **span)
            writer.write(UTTERANCES, utterance, start_ns + NS_PER_S + 2)
            options = ("Stir the soup.", f"Lay table {number}.", f"Count {seed + 2} guests.")
            place = Viewpoint(description=f"Table {number} is being laid for guests.")
            query = Query(stamp_ns=start_ns + NS_PER_S + 5, query_id=name, episode_id=name, task=task, options=options)
            query = replace(query, others_given=True, others=(COOK,), viewpoint_given=True, viewpoint=place)
            writer.write(QUERIES, query, query.stamp_ns)
            writer.write(EPISODES, replace(edge, stamp_ns=end_ns, state=EpisodeEdge.END), end_ns)
    return path


def answers(config: AnswererConfig, transport: str, bag: Path) -> list[Answer]:
    [player] = open_players(config, transport, hosts=1, seed=0)
    with closing(player):
        return sorted((answer.answer for answer in player.play(bag)), key=lambda answer: answer.query_id)


def test_a_model_is_asked_the_same_by_every_transport(tmp_path: Path, own_models: Path) -> None:
    bag = bag_of(tmp_path / "bag", 2)
    with serving() as server:
        describe_model(own_models, "eye", server.url)
        files = make_selector_files("eye")
        direct = answers(files, "direct", bag)
        asked = list(server.bodies)
        assert [answer.outcome for answer in direct] == [Outcome.ANSWERED] * ITEMS
        assert len({answer.provenance.prompt_digest for answer in direct} - {""}) == ITEMS
        server.bodies.clear()
        assert answers(files, "dds", bag) == direct
        assert server.bodies == asked


def test_the_judge_is_asked_the_same_by_every_transport(tmp_path: Path, own_models: Path) -> None:
    bag = bag_of(tmp_path / "bag", 3, "error2")
    with serving() as server:
        describe_model(own_models, "eye", server.url)
        config = JudgeAnswererConfig(model="eye")
        direct = answers(config, "direct", bag)
        bodies = list(server.bodies)
        assert bodies
        server.bodies.clear()
        assert answers(config, "dds", bag) == direct
        assert server.bodies == bodies


LENGTH_S = 10.0
CUT_SHORT_S = 3.0  # while somebody speaks


@pytest.mark.parametrize(("name", "rate"), [("pharmacy_counter", 4.0), ("art_class", 20.0)])
def test_nodes_in_lockstep_and_at_a_pace_say_what_their_logic_says(
    tmp_path: Path, domain_id: int, name: str, rate: float
) -> None:
    bag = tmp_path / "bag"
    write_sensed(bag, read(find(name)), LENGTH_S)
    direct = list(replay_in_process(bag))
    kinds = {item.split()[1] for item in items(direct)}
    assert kinds == {"window", "flag", "answer", "utterance"}
    for pace, in_lockstep in ((0.0, True), (rate, False), (rate, True)):
        live = list(play_over_dds(bag, pace, in_lockstep=in_lockstep, domain_id=domain_id))
        assert live[-1].message["lost"] == {}
        assert first_differing_output(direct, live) is None


def test_words_under_way_as_a_recording_ends_are_written_in_every_mode(tmp_path: Path, domain_id: int) -> None:
    whole = list(shift_bag(HERE / "shipped/kiosk_directions", 0))
    bag, end_ns = tmp_path / "bag", whole[0][0] + s_to_ns(CUT_SHORT_S)
    with BagWriter(bag) as writer:
        for stamp_ns, topic, content in whole:
            if stamp_ns < end_ns and topic == AUDIO:
                writer.write_message(topic, content, stamp_ns)
    direct = list(replay_in_process(bag))
    assert "Hello" in " ".join(item["text"] for item in items(direct).values() if "text" in item)
    for pace in (0.0, 4.0):
        assert first_differing_output(direct, list(play_over_dds(bag, pace, domain_id=domain_id))) is None


def test_the_last_turn_of_a_recording_is_read_in_every_mode(tmp_path: Path, domain_id: int) -> None:
    talk = [
        user(1, 4, "I'd like a coffee, please."),
        robot(5, 9, "Your blood test from Monday is positive, by the way."),
    ]
    bag = write_talk(tmp_path / "bag", talk, 9.5)
    direct = list(replay_in_process(bag))
    assert "unsuitable_words" in {output.message["cue_id"] for output in direct if output.topic == FLAGS}
    for pace in (0.0, 4.0):
        assert first_differing_output(direct, list(play_over_dds(bag, pace, domain_id=domain_id))) is None


@pytest.mark.skipif(bool(importlib.util.find_spec("audio_common_msgs")), reason="audio_common_msgs is installed here")
def test_sound_of_a_type_that_is_not_installed_is_named(domain_id: int) -> None:
    with pytest.raises(TransportError, match=r"/audio cannot be played: .*install audio_common_msgs"):
        list(play_over_dds(HERE / "shipped/zoo_keeper", domain_id=domain_id))
