"""A cut holds its stretch, its topics, and what was latched before it."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from norm_core.bags.bag_cut import cut_bag, parse_time_ns
from norm_core.bags.reader import BagError, BagReader
from tests.norm_core.bags.bag_files import cdr, entries, read, write_before_iron, write_rosbags

START_NS = entries()[0][1]
fast = settings(deadline=None, max_examples=20)


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [
        ("0", 1_700_000_000_000_000_000),
        ("12.5", 1_700_000_012_500_000_000),
        ("0.000000001", 1_700_000_000_000_000_001),
        ("1700000001.000000003", 1_700_000_001_000_000_003),
        ("1700000001000000003", 1_700_000_001_000_000_003),
    ],
)
def test_a_time_is_seconds_or_a_stamp_by_its_size(text: str, expected_ns: int) -> None:
    assert parse_time_ns(text, 1_700_000_000_000_000_000) == expected_ns


@fast
@given(first=st.integers(0, 38), length=st.integers(1, 39))
def test_a_cut_is_the_messages_from_one_time_up_to_another(
    tmp_path_factory: pytest.TempPathFactory, first: int, length: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    bag = write_rosbags(folder / "bag")
    report = cut_bag(bag, folder / "new", str(first / 10), str((first + length) / 10))
    assert read(folder / "new") == entries()[first : first + length]
    assert report.messages == len(entries()[first : first + length])


def test_topics_are_chosen_and_the_others_told(tmp_path: Path) -> None:
    bag = write_before_iron(tmp_path / "bag")
    report = cut_bag(bag, tmp_path / "new", "1", topics=["/b"])
    assert read(tmp_path / "new") == [e for e in entries()[10:] if e[0] == "/b"]
    assert report.dropped_topics == ("/a",)
    with pytest.raises(BagError, match=r"has no topic /c; it has /a, /b"):
        cut_bag(bag, tmp_path / "other", "1", topics=["/c"])


def test_what_was_latched_before_the_cut_stands_at_its_beginning(tmp_path: Path) -> None:
    texts = ["/map one", "/map two", "/a x", "/tf_static arm", "/tf_static leg", "/tf_static arm", "/mode on", "/a y"]
    messages = [(text.split()[0], START_NS + i * 10**9, cdr(text)) for i, text in enumerate(texts)]
    bag = write_rosbags(tmp_path / "bag", messages=messages, latched=("/map",))
    report = cut_bag(bag, tmp_path / "new", "7")
    at_ns = START_NS + 7 * 10**9
    assert read(tmp_path / "new") == [
        ("/map", at_ns, cdr("/map two")),
        ("/tf_static", at_ns, cdr("/tf_static leg")),
        ("/tf_static", at_ns, cdr("/tf_static arm")),
        ("/a", at_ns, cdr("/a y")),
    ]
    assert report.latched == {"/map": 1, "/tf_static": 2}
    with BagReader(tmp_path / "new") as reader:
        assert [t.topic for t in reader.topics if t.latched_depth] == ["/map"]


@pytest.mark.parametrize(("begin", "end"), [("2", "1"), ("9", ""), ("0", "0"), ("1700000000", "")])
def test_a_stretch_that_is_not_in_the_bag_is_refused(tmp_path: Path, begin: str, end: str) -> None:
    bag = write_rosbags(tmp_path / "bag")
    with pytest.raises(BagError, match=r"cannot be cut.* lasts 3\.900 s from 1000000000 ns: choose two times in it"):
        cut_bag(bag, tmp_path / "new", begin, end)
    assert [p.name for p in tmp_path.iterdir()] == ["bag"]
