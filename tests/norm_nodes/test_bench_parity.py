"""One bag, any transport and pace: the same window digests, probabilities and answers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from norm_core.bags.writer import BagWriter
from norm_core.records.decision import OtherAgent, Viewpoint
from norm_core.records.episode import Answer, Episode, EpisodeEdge, Query
from norm_core.records.outcome import Outcome
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import NS_PER_S
from sim_replays.runs.execute import selector_files
from sim_replays.runs.items.item_bag import EPISODES, FRAMES, QUERIES, START_NS, UTTERANCES
from sim_replays.runs.transport import Dds, Direct, Transport
from tests.action_selector.test_models import jpeg
from tests.node_records import camera_frame
from tests.norm_core.engines.fake_server import describe_model, serving

pytestmark = pytest.mark.ros

ITEMS = 5  # of two seconds each
COOK = OtherAgent(agent_id="p", role="cook", doing="stirring the soup")


def bag_of(path: Path, seed: int) -> Path:
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
            said = Utterance(stamp_ns=start_ns + 2, utterance_id=name, speaker=Speaker.USER, text=text, **span)
            writer.write(UTTERANCES, said, start_ns + NS_PER_S + 2)
            options = ("Stir the soup.", f"Lay table {number}.", f"Count {seed + 2} guests.")
            place = Viewpoint(description=f"Table {number} is being laid for guests.")
            query = Query(stamp_ns=start_ns + NS_PER_S + 5, query_id=name, episode_id=name, task="eas", options=options)
            query = replace(query, others_given=True, others=(COOK,), viewpoint_given=True, viewpoint=place)
            writer.write(QUERIES, query, query.stamp_ns)
            writer.write(EPISODES, replace(edge, stamp_ns=end_ns, state=EpisodeEdge.END), end_ns)
    return path


def answers(transport: Transport, bag: Path, seed: int) -> list[Answer]:
    wanted = [f"{seed}-{number}" for number in range(ITEMS)]
    return sorted((told.answer for told in transport.play(bag, wanted)), key=lambda answer: answer.query_id)


def test_a_model_is_asked_the_same_by_every_transport(tmp_path: Path, own_models: Path, domain_id: int) -> None:
    bag, seed = bag_of(tmp_path / "bag", 2), 2
    with serving() as server:
        describe_model(own_models, "eye", server.url)
        files = selector_files("eye")
        direct = answers(Direct(files), bag, seed)
        asked = list(server.bodies)
        assert [answer.outcome for answer in direct] == [Outcome.ANSWERED] * ITEMS
        assert len({answer.provenance.prompt_digest for answer in direct} - {""}) == ITEMS
        server.bodies.clear()
        assert answers(Dds(files, domain_id), bag, seed) == direct
        assert server.bodies == asked


def test_what_is_not_wanted_is_not_asked(tmp_path: Path, domain_id: int) -> None:
    bag = bag_of(tmp_path / "bag", 0)
    found = list(Dds(selector_files("encoder"), domain_id=domain_id).play(bag, ["0-3"]))
    assert [told.answer.query_id for told in found] == ["0-3"]
