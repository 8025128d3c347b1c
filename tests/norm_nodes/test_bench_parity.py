"""One bag, any transport and pace: the same window digests, probabilities and answers."""

from pathlib import Path

import pytest

from norm_core.bags.writer import BagWriter
from norm_core.records.decision import OtherAgent, Viewpoint
from norm_core.records.episode import Answer, Episode, EpisodeEdge, Query
from norm_core.records.frame import Frame
from norm_core.records.outcome import Outcome
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import NS_PER_S
from sim_replays.runs.execute import selector_files
from sim_replays.runs.items.item_bag import EPISODES, FRAMES, QUERIES, START_NS, UTTERANCES
from sim_replays.runs.transport import Dds, Direct, Transport
from tests.action_selector.test_models import jpeg
from tests.norm_core.engines.fake_server import describe_model, serving

pytestmark = pytest.mark.ros

ITEMS = 5  # of two seconds each


def bag_of(path: Path, seed: int) -> Path:
    """Ten seconds with a frame a second, an utterance and a question in each item."""
    with BagWriter(path) as writer:
        for number in range(ITEMS):
            name, start_ns = f"{seed}-{number}", START_NS + 2 * number * NS_PER_S
            end_ns = start_ns + 2 * NS_PER_S - 10
            edge = Episode(
                stamp_ns=start_ns,
                episode_id=name,
                state=EpisodeEdge.BEGIN,
                suite="test",
                start_ns=start_ns,
                end_ns=end_ns,
            )
            writer.write(EPISODES, edge, start_ns)
            for second in range(2):
                stamp_ns = start_ns + second * NS_PER_S + 1
                frame = Frame(
                    stamp_ns=stamp_ns,
                    source_topic="camera",
                    source_encoding="jpeg",
                    source_width_px=4,
                    source_height_px=4,
                    payload_sha256=f"{seed}{number}{second}",
                    tile_width_px=4,
                    tile_height_px=4,
                    tile_jpeg=jpeg(),
                )
                writer.write(FRAMES, frame, stamp_ns)
            said = Utterance(
                stamp_ns=start_ns + 2,
                utterance_id=name,
                speaker=Speaker.USER,
                text=f"Table {number} is free.",
                start_ns=start_ns + 2,
                end_ns=start_ns + NS_PER_S,
                source_topic="audio",
            )
            writer.write(UTTERANCES, said, start_ns + NS_PER_S + 2)
            query = Query(
                stamp_ns=start_ns + NS_PER_S + 5,
                query_id=name,
                episode_id=name,
                task="eas",
                options=("Stir the soup.", f"Lay table {number}.", f"Count {seed + 2} guests."),
                others_given=True,
                others=(OtherAgent(agent_id="p", role="cook", doing="stirring the soup"),),
                viewpoint_given=True,
                viewpoint=Viewpoint(description=f"Table {number} is being laid for guests."),
            )
            writer.write(QUERIES, query, query.stamp_ns)
            last = Episode(
                stamp_ns=end_ns,
                episode_id=name,
                state=EpisodeEdge.END,
                suite="test",
                start_ns=start_ns,
                end_ns=end_ns,
            )
            writer.write(EPISODES, last, end_ns)
    return path


def answers(transport: Transport, bag: Path, seed: int) -> list[Answer]:
    wanted = [f"{seed}-{number}" for number in range(ITEMS)]
    return sorted((told.answer for told in transport.play(bag, wanted)), key=lambda answer: answer.query_id)


def test_every_transport_and_pace_gives_the_same(tmp_path: Path, domain_id: int) -> None:
    bag, files, seed = bag_of(tmp_path / "bag", 1), selector_files("encoder"), 1
    direct = answers(Direct(files), bag, seed)
    assert [answer.outcome for answer in direct] == [Outcome.ANSWERED] * ITEMS
    assert len({answer.provenance.window_digest for answer in direct}) == ITEMS
    assert all(answer.probabilities[0] == 0.0 for answer in direct)
    for rate in (0.0, 20.0):
        assert answers(Dds(files, rate, domain_id), bag, seed) == direct


def test_a_model_is_asked_the_same_by_every_transport(
    tmp_path: Path, domain_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bag, seed = bag_of(tmp_path / "bag", 2), 2
    with serving() as server:
        describe_model(tmp_path, "eye", server.url)
        monkeypatch.setenv("TACTFUL_MODELS", str(tmp_path))
        files = selector_files("eye")
        direct = answers(Direct(files), bag, seed)
        asked = list(server.bodies)
        assert [answer.outcome for answer in direct] == [Outcome.ANSWERED] * ITEMS
        assert len({answer.provenance.prompt_digest for answer in direct} - {""}) == ITEMS
        for rate in (0.0, 20.0):
            server.bodies.clear()
            assert answers(Dds(files, rate, domain_id), bag, seed) == direct
            assert server.bodies == asked


def test_what_is_not_wanted_is_not_asked(tmp_path: Path, domain_id: int) -> None:
    bag = bag_of(tmp_path / "bag", 0)
    found = list(Dds(selector_files("encoder"), domain_id=domain_id).play(bag, ["0-3"]))
    assert [told.answer.query_id for told in found] == ["0-3"]
