"""The system still says what it said: a difference is shown item by item."""

from pathlib import Path
from typing import Any

import pytest

from norm_core.runtime.time import NS_PER_S
from norm_monitor.encounters.demo_session import write_demo_session
from norm_monitor.encounters.library import TrueEvent
from tactful_cli.demo import TOLERANCE_S
from tests.goldens import collect, compare

pytestmark = [pytest.mark.timeout(900)]


@pytest.mark.thorough
@pytest.mark.parametrize("source", collect.IN_TESTS)
def test_the_system_says_what_it_said_of_all(source: str) -> None:
    lines = list(compare.differences(compare.read(source, compare.renames()), collect.SOURCES[source]()))
    assert not lines, _shown(source, lines)


@pytest.mark.parametrize("source", collect.SOURCES)
def test_the_system_says_what_it_said(source: str) -> None:
    golden = compare.read(source, compare.renames())
    if source in collect.IN_TESTS:
        collected, names = collect.IN_TESTS[source]
        golden = {key: item for key, item in golden.items() if key.split()[0] in names}
        found = collected(names)
    else:
        found = collect.SOURCES[source]()
    assert golden
    lines = list(compare.differences(golden, found))
    assert not lines, _shown(source, lines)


def test_the_selector_answers_as_it_answered(shared_data: Path) -> None:
    golden = compare.read("egogapbench", compare.renames())
    lines = list(compare.differences(golden, collect.egogapbench(shared_data)))
    assert not lines, _shown("egogapbench", lines)


def test_the_demo_misses_what_the_start_page_says(tmp_path: Path) -> None:
    demo, bags = (
        [flag for flag in compare.read(name).values() if "polarity" in flag] for name in ("demo", "shipped_bags")
    )
    late = "“Hello, can you tell me where the old bridge is?” the robot was silent for 4.1 s"
    assert [sum(late in flag["rationale"] for flag in flags) for flags in (demo, bags)] == [0, 1]
    events = write_demo_session(tmp_path / "session").truth.events
    standing = [flag for flag in demo if not flag["rationale"].startswith("Withdrawn")]
    assert sum(not any(_flags(flag, event) for event in events) for flag in standing) == 2
    missed = [event for event in events if not any(_flags(flag, event) for flag in standing)]
    assert [event.rationale for event in missed] == [
        "Answers a plain question late and with a price that nobody asked for."
    ]
    page = (collect.ROOT / "docs/start.md").read_text(encoding="utf-8")
    flagged = f"without the talk reader, {len(events) - 1} of {len(events)} and two flags that nobody marked"
    assert flagged in " ".join(page.split())


def _flags(flag: dict[str, Any], event: TrueEvent) -> bool:
    is_alike = flag["polarity"] == event.polarity and not set(event.attributes).isdisjoint(flag["attributes"])
    return is_alike and abs(flag["onset_ns"] - event.onset_ns) <= TOLERANCE_S * NS_PER_S


def test_a_difference_is_found_and_named() -> None:
    golden = {"a": {"probability": 0.5, "text": "no"}, "b": {}, "c": [1.0, 2]}
    found = {"a": {"probability": 0.501, "text": "yes"}, "c": [1.1, 2], "d": 4}
    assert list(compare.differences(golden, found)) == [
        'a.text: "no" became "yes"',
        "b: gone; it was {}",
        "c[0]: 1.0 became 1.1",
        "d: new; it is 4",
    ]


def test_a_flag_at_its_threshold_may_come_and_go() -> None:
    flag = {"probability": 0.651, "threshold": 0.65}
    with pytest.warns(UserWarning, match="a: came or went within"):
        assert not list(compare.differences({"a": flag}, {}))
    assert list(compare.differences({}, {"a": {**flag, "probability": 0.66}}))


def _shown(source: str, lines: list[str]) -> str:
    head = f"{len(lines)} differences in {source}; see them all: python -m tests.goldens compare {source}"
    return "\n".join([head, *lines[:20]])
