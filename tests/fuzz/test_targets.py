"""Each parser of foreign bytes refuses with a promised error what it cannot read, and what once crashed it."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, Target, cases_of

EACH = pytest.mark.parametrize("name", TARGETS)


@EACH
def test_what_once_crashed_it_is_read_or_refused(name: str) -> None:
    for data in (b"", *TARGETS[name].seeds, *(path.read_bytes() for path in cases_of(name))):
        TARGETS[name].run(data)


def changed(target: Target) -> st.SearchStrategy[bytes]:
    """Bytes, or what the parser reads with a part of it replaced."""
    return st.binary(max_size=200) | st.builds(
        lambda seed, at, length, new: seed[: at % (len(seed) + 1)] + new + seed[at % (len(seed) + 1) + length :],
        st.sampled_from(target.seeds), st.integers(0, 2000), st.integers(0, 20), st.binary(max_size=12),
    )  # fmt: skip


@EACH
def test_changed_bytes_are_read_or_refused(name: str) -> None:
    target = TARGETS[name]

    @settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(changed(target))
    def check(data: bytes) -> None:
        target.run(data)

    check()
