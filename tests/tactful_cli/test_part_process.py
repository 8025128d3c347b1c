"""Parts of the load in processes of their own: paced, halted, refused and lost."""

import os
import signal
from collections.abc import Sequence

import pytest

from norm_core.runtime.errors import TactfulError
from tactful_cli.calibrate.part_process import PartProcess, together


class CountedPart:
    """Takes a ms more at each job."""

    name = "counted"
    due_s: Sequence[float] = (0.0,)

    def __init__(self, cycle_s: float) -> None:
        if cycle_s <= 0:
            raise TactfulError("cycle_s: is not above 0")
        self.cycle_s, self._jobs = cycle_s, 0

    def once(self) -> float:
        self._jobs += 1
        return float(self._jobs)

    def process_id(self) -> int:
        return os.getpid()


def test_jobs_come_at_their_pace_until_halted() -> None:
    seldom, often = PartProcess(CountedPart, 3600.0), PartProcess(CountedPart, 0.001)
    try:
        assert (seldom.name, seldom.cycle_s, seldom.due_s) == ("counted", 3600.0, (0.0,))
        assert seldom.call("process_id") not in {os.getpid(), often.call("process_id")}
        seldom.pace()
        often.pace()
        first = seldom.halt().taken_ms
        assert first in {(), (1.0,)}  # the halt may come before the first job
        assert seldom.once() == len(first) + 1
        taken = often.halt().taken_ms
        assert taken == tuple(float(number) for number in range(1, len(taken) + 1))
        taken_ms, cores = together([often], 0.0)
        assert set(taken_ms) == {"counted"}
        assert cores >= 0
    finally:
        seldom.close()
        often.close()


def test_a_part_that_cannot_be_made_says_why() -> None:
    with pytest.raises(TactfulError, match="cycle_s: is not above 0"):
        PartProcess(CountedPart, 0.0)


def test_a_process_that_is_killed_is_stated() -> None:
    part = PartProcess(CountedPart, 1.0)
    os.kill(part.call("process_id"), signal.SIGKILL)
    with pytest.raises(TactfulError, match="counted: its process ended with code -9"):
        part.once()
    part.close()
