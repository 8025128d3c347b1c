"""What `soak` makes of samples, and what its robot sends on Tactful's own topics."""

import pytest

from tactful_cli.soak.faults import FAULTS
from tactful_cli.soak.hours import SoakSample, growth_of


def sample(hours: float, memory_mb: float) -> SoakSample:
    return SoakSample(hours=hours, memory_mb=memory_mb, handles=9, threads=2, latency_ms=0.0, flags=0)


def test_growth_is_the_slope_in_percent_of_the_first_sample() -> None:
    samples = tuple(sample(hours, 200 + 4 * hours) for hours in range(5))
    assert growth_of(samples, "memory_mb") == pytest.approx(2.0)
    assert growth_of(samples, "handles") == 0.0
    assert growth_of(samples[:1], "memory_mb") == 0.0


def test_each_fault_has_a_name_of_its_own_and_the_quick_ones_are_of_every_kind() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)
    quick = {fault.name.partition("_")[0] for fault in FAULTS if fault.is_quick}
    assert {"kill", "stop", "camera", "microphone", "stamps", "clock", "disk", "second", "foreign"} <= quick
