"""A run shared among processes gives what one process gives, and goes on where it was broken off."""

import multiprocessing
import os
import signal
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path
from threading import Event, Thread

import pytest

from norm_core.records.episode import Query
from sim_replays.items.item_bag import episodes, read_key
from sim_replays.items.run_config import RunConfig
from sim_replays.runs import shards
from sim_replays.runs.execute import run, selector_files
from sim_replays.runs.results.run_folder import ANSWERS, RAW, SCORE, Run, first_differing_question, open_run
from sim_replays.runs.shards import LOCAL, Block, RayShards, Shards, blocks, shares
from sim_replays.runs.transport import Dds, Direct, TimedAnswer, Transport, TransportError

FILES = selector_files("encoder")
ITEMS = 9


class Broken:
    """Ends after so many answers, as where somebody presses ctrl-C."""

    def __init__(self, inner: Transport, after: int) -> None:
        self._inner, self._after = inner, after

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[TimedAnswer]:
        for number, told in enumerate(self._inner.play(bag, wanted)):
            if number == self._after:
                raise KeyboardInterrupt
            yield told


def ran(out: Path, data: Path, transport: Transport, shards: str) -> Run:
    asking = RunConfig(suite="egogapbench", data=str(data), setting="others-given", limit=ITEMS)
    told: list[int] = []
    found = run(out, asking, FILES, transport, how="direct", progress=lambda done, _: told.append(done), shards=shards)
    assert told[-1] == ITEMS
    return found[0]


def queries_of(share: Sequence[Block]) -> list[str]:
    return list(chain(*(block.query_ids for block in share)))


@pytest.fixture
def alone(shared_data: Path, tmp_path: Path) -> Run:
    return ran(tmp_path / "alone", shared_data / "egogapbench", Direct(FILES), "1")


def test_three_shards_give_what_one_gives(alone: Run, shared_data: Path, tmp_path: Path) -> None:
    three = ran(tmp_path / "three", shared_data / "egogapbench", Shards(FILES, 3), "3")
    assert first_differing_question(alone, three) is None
    for name in (ANSWERS, SCORE):
        assert (three.folder / name).read_bytes() == (alone.folder / name).read_bytes()


def test_interrupted_shards_go_on_in_another_number(alone: Run, shared_data: Path, tmp_path: Path) -> None:
    out, data = tmp_path / "broken", shared_data / "egogapbench"
    with pytest.raises(KeyboardInterrupt):
        ran(out, data, Broken(Shards(FILES, 2), after=4), "2")
    assert len(open_run(out).told) == 4
    kept = (out / RAW).read_text(encoding="utf-8")
    again = ran(out, data, Direct(FILES), "1")
    assert (out / RAW).read_text(encoding="utf-8").startswith(kept)
    assert first_differing_question(alone, again) is None


def test_what_a_killed_shard_leaves_undone_is_asked_again(
    alone: Run, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, data, bag = tmp_path / "killed", shared_data / "egogapbench", tmp_path / "killed/bag"
    play = shards.play_share

    def play_or_die(share: Dds | Direct, bag: Path, parts: Sequence[Block]) -> Iterator[str]:
        if shares(bag, list(read_key(bag).orders), 2)[0] == parts:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from play(share, bag, parts)

    monkeypatch.setattr(shards, "play_share", play_or_die)
    monkeypatch.setattr(shards, "_context", lambda: multiprocessing.get_context("fork"))
    with pytest.raises(TransportError, match="1 of 2 shards failed: it ended with -9"):
        ran(out, data, Shards(FILES, 2), "2")
    monkeypatch.undo()
    kept = (out / RAW).read_text(encoding="utf-8")
    assert len(open_run(out).told) == ITEMS - len(queries_of(shares(bag, list(read_key(bag).orders), 2)[0]))
    again = ran(out, data, Shards(FILES, 2), "2")
    assert (out / RAW).read_text(encoding="utf-8").startswith(kept)
    assert first_differing_question(alone, again) is None


def test_actors_of_a_ray_cluster_give_what_one_process_gives(alone: Run, shared_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray, an extra, is not installed here")
    two = ran(tmp_path / "ray", shared_data / "egogapbench", RayShards(FILES, LOCAL, 2, "direct"), "ray 2")
    assert first_differing_question(alone, two) is None
    for name in (ANSWERS, SCORE):
        assert (two.folder / name).read_bytes() == (alone.folder / name).read_bytes()


def test_every_question_is_in_one_share_and_a_share_reads_its_own_episodes_alone(alone: Run) -> None:
    bag = alone.folder / "bag"
    queries = list(read_key(bag).orders)
    dealt = shares(bag, queries, 4)
    assert sorted(chain(*map(queries_of, dealt))) == sorted(queries)
    assert [len(share) for share in dealt] == [3, 2, 2, 2]
    assert list(map(queries_of, shares(bag, queries[:2], 4))) == [[queries[0]], [queries[1]]]
    assert queries_of(blocks(bag, queries, 8)[:1]) == queries[:8]
    for share in dealt:
        read = episodes(bag, [block.span_ns for block in share if block.span_ns])
        asked = [entry.query_id for episode in read for entry in episode if isinstance(entry, Query)]
        assert asked == queries_of(share)


def test_shards_beside_threads_begin_anew_and_give_the_same(alone: Run) -> None:
    bag, ended = alone.folder / "bag", Event()
    queries = list(read_key(bag).orders)
    other = Thread(target=ended.wait)
    other.start()  # whose locks a copy of this process would hold for ever
    try:
        told = {timed.answer.query_id: timed.answer for timed in Shards(FILES, 2).play(bag, queries)}
    finally:
        ended.set()
        other.join()
    assert {name: answer.chosen for name, answer in told.items()} == {
        name: timed.answer.chosen for name, timed in alone.told.items()
    }


def test_a_shard_that_cannot_begin_says_why(alone: Run) -> None:
    unknown = FILES.model_copy(update={"model": "no_such_model"})
    with pytest.raises(TransportError, match="no_such_model"):
        list(Shards(unknown, 2).play(alone.folder / "bag", list(read_key(alone.folder / "bag").orders)))
