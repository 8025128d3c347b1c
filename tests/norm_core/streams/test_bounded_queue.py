"""A queue stays within its length and accounts for every entry."""

from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.streams.bounded_queue import BoundedQueue, OverflowPolicy
from tests.patience import PATIENCE_S


@given(st.lists(st.one_of(st.integers(0, 99), st.none())), st.integers(1, 4), st.sampled_from(OverflowPolicy))
def test_queue_counts_every_loss(steps: list[int | None], capacity: int, policy: OverflowPolicy) -> None:
    """A number is put, a None is a get; whatever went in is out, inside or counted as dropped."""
    queue: BoundedQueue[int] = BoundedQueue("q", capacity, policy)
    taken = 0
    for step in steps:
        if step is None:
            taken += queue.get(timeout_s=0) is not None
        else:
            queue.put(step)
        status = queue.status()
        assert status.depth <= capacity
        assert status.received == taken + status.depth + status.dropped


@pytest.mark.parametrize(("policy", "entries"), [(OverflowPolicy.LATEST_WINS, [2, 3]), (OverflowPolicy.REFUSE, [1, 2])])
def test_the_latest_wins_or_is_refused(policy: OverflowPolicy, entries: list[int]) -> None:
    queue: BoundedQueue[int] = BoundedQueue("q", 2, policy)
    assert [queue.put(n) for n in (1, 2, 3)] == [True, True, False]
    assert [queue.get(0), queue.get(0), queue.get(0)] == [*entries, None]


@pytest.mark.parametrize("policy", OverflowPolicy)
def test_a_full_queue_keeps_orders_in_their_place(policy: OverflowPolicy) -> None:
    queue: BoundedQueue[str] = BoundedQueue("q", 2, policy)
    queue.put("a")
    queue.put("b")
    assert queue.put_order("forget") is True
    queue.put("c")
    queue.put("d")
    queue.put("e")
    assert queue.put_order("end") is True
    taken = [queue.get(0) for _ in range(4)]
    data = ["d", "e"] if policy is OverflowPolicy.LATEST_WINS else ["a", "b"]
    assert sorted(filter(None, taken)) == sorted([*data, "forget", "end"])
    assert taken.index("forget") == (0 if policy is OverflowPolicy.LATEST_WINS else 2)
    assert taken[-1] == "end"
    assert queue.status().dropped == 3
    queue.close()
    assert queue.put_order("late") is False


def test_withdrawn_entry_frees_its_place() -> None:
    queue: BoundedQueue[str] = BoundedQueue("q", 2, OverflowPolicy.REFUSE)
    assert [queue.put(entry) for entry in "abc"] == [True, True, False]
    assert queue.withdraw("a")
    assert not queue.withdraw("c")
    assert queue.put("d")
    assert [queue.get(0), queue.get(0), queue.get(0)] == ["b", "d", None]


def test_closing_queue_wakes_consumers_and_keeps_entries() -> None:
    queue: BoundedQueue[int] = BoundedQueue("q", 2)
    got: list[int | None] = []
    waiter = Thread(target=lambda: got.append(queue.get(timeout_s=PATIENCE_S)))
    waiter.start()
    queue.close()
    waiter.join(timeout=PATIENCE_S)
    assert got == [None]
    assert queue.put(1) is False
    assert queue.is_drained()


def test_it_is_idle_once_its_taker_asks_for_more() -> None:
    queue: BoundedQueue[int] = BoundedQueue("q", 2)
    assert queue.is_idle()
    queue.put(1)
    assert not queue.is_idle()
    assert queue.get(0) == 1
    assert not queue.is_idle()
    assert queue.get(0) is None
    assert queue.is_idle()
