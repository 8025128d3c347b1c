"""A query without a deadline waits until its sources have passed it; what has a deadline never waits."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from norm_core.records.episode import Episode, EpisodeEdge, Query
from norm_core.records.frame import Frame
from norm_core.records.speech import Utterance, make_silence_mark
from norm_core.runtime.time import NS_PER_S
from norm_core.streams.watermarks import MAX_HELD, HeldQueries

BOTH = ("frames", "utterances")


def query(at_s: float, deadline_ns: int | None = None) -> Query:
    at_ns = int(at_s * NS_PER_S)
    return Query(
        stamp_ns=at_ns,
        query_id=f"at {at_s}",
        episode_id="e",
        task="action",
        options=("a", "b"),
        deadline_ns=deadline_ns,
    )


def frame(at_s: float) -> Frame:
    return Frame(
        stamp_ns=int(at_s * NS_PER_S),
        source_topic="/camera",
        source_encoding="jpeg",
        source_width_px=4,
        source_height_px=4,
        payload_sha256="0" * 64,
        tile_width_px=4,
        tile_height_px=4,
        tile_jpeg=b"jpeg",
    )


def quiet(until_s: float) -> Utterance:
    return make_silence_mark(int(until_s * NS_PER_S), "/audio")


def held(sources: tuple[str, ...] = BOTH) -> HeldQueries:
    return HeldQueries(sources, NS_PER_S)


def test_nothing_waits_without_sources_or_with_a_deadline() -> None:
    assert held(()).add(query(4.5)) == [query(4.5)]
    assert held().add(query(4.5, deadline_ns=9)) == [query(4.5, deadline_ns=9)]


def test_a_time_that_begins_anew_and_an_episode_release_what_waits() -> None:
    queries, asked = held(), query(100.0)
    queries.add(frame(99.0))
    queries.add(asked)
    assert queries.add(frame(1.0)) == [asked]
    assert queries.add(query(3.0)) == []  # the words of the new time are not known yet
    ends = Episode(stamp_ns=5, episode_id="e", suite="s", state=EpisodeEdge.END, start_ns=1, end_ns=5)
    assert queries.add(ends) == [query(3.0)]


def test_no_more_wait_than_a_bound_and_the_oldest_goes_first() -> None:
    queries = held()
    given_up = list(itertools.chain.from_iterable(queries.add(query(float(place))) for place in range(MAX_HELD + 3)))
    assert given_up == [query(float(place)) for place in range(3)]
    assert len(queries) == MAX_HELD


@given(st.data())
def test_every_query_is_given_once_and_not_before_its_sources(data: st.DataObject) -> None:
    frames = [frame(float(s)) for s in range(8)]
    marks = [quiet(s / 2) for s in range(16)]
    asked = [query(at_s) for at_s in (0.5, 2.25, 5.0)]
    rest: list[list[Frame] | list[Utterance] | list[Query]] = [frames, marks, list(asked)]
    queries, answered = held(), []
    seen_ns = heard_ns = -1
    while any(rest):
        record = data.draw(st.sampled_from([lane for lane in rest if lane])).pop(0)
        seen_ns = record.stamp_ns + NS_PER_S if isinstance(record, Frame) else seen_ns
        heard_ns = record.start_ns if isinstance(record, Utterance) else heard_ns
        ready = queries.add(record)
        assert all(q.stamp_ns < min(seen_ns, heard_ns) for q in ready)
        answered += ready
    assert sorted(answered, key=lambda q: q.stamp_ns) == asked
