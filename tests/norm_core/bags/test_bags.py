"""Bags are written and read without ROS, and a broken one says so."""

import re
import resource
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.exceptions import McapError
from mcap.records import Message
from mcap.stream_reader import StreamReader

from norm_core.bags.reader import BagError, BagReader
from norm_core.bags.types import make
from norm_core.bags.writer import BagWriteError, BagWriter
from norm_core.records.messages import RECORDS
from tests.records import records


@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], deadline=None, max_examples=25
)
@given(st.lists(st.tuples(st.one_of(*(records(cls) for cls in RECORDS.values())), st.integers(0, 2**62)), max_size=6))
def test_records_come_back_in_the_order_of_time(tmp_path_factory: Any, entries: list[tuple[Any, int]]) -> None:
    path = tmp_path_factory.mktemp("bags") / "bag"
    with BagWriter(path) as bag:
        for record, stamp_ns in entries:
            bag.write(f"/{type(record).__name__}", record, stamp_ns)
    with BagReader(path) as reader:
        read = [(reader.decode(m), m.stamp_ns) for m in reader.messages()]
        assert reader.message_count == len(entries)
        assert reader.bounds_ns == ((min(s for _, s in entries), max(s for _, s in entries)) if entries else None)
    assert [stamp for _, stamp in read] == sorted(stamp for _, stamp in entries)
    assert sorted(map(repr, read)) == sorted(map(repr, entries))


def test_an_existing_folder_is_never_overwritten(tmp_path: Path) -> None:
    with pytest.raises(BagWriteError, match="exists already"):
        BagWriter(tmp_path)


def test_an_unknown_type_is_refused_by_name(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as bag, pytest.raises(BagWriteError, match="zoo_msgs/msg/Unicorn"):
        bag.write_serialized("/zoo", "zoo_msgs/msg/Unicorn", b"", 0)


def test_reader_refuses_what_is_not_a_bag(tmp_path: Path) -> None:
    with pytest.raises(BagError, match="no such folder"):
        BagReader(tmp_path / "none")
    with pytest.raises(BagError, match=r"has no metadata\.yaml"):
        BagReader(tmp_path)
    (tmp_path / "metadata.yaml").write_text("nonsense: [")
    with pytest.raises(BagError, match="cannot be opened as a bag"):
        BagReader(tmp_path)


@pytest.mark.parametrize(
    ("metadata", "fault"),
    [
        ("[" * 100_000, r"metadata\.yaml, line 1, column 50: is nested more than 50 deep"),
        ("a: &a [x]\nrosbag2_bagfile_information: [*a, *a]", r"metadata\.yaml, line 2, column 31: the alias \*a"),
        ("rosbag2_bagfile_information: 2026-01-01", "rosbag2_bagfile_information: .* not '2026-01-01'"),
    ],
    ids=["deep", "alias", "date"],
)
def test_hostile_metadata_is_noted_and_messages_are_read(small_bag: Path, metadata: str, fault: str) -> None:
    (small_bag / "metadata.yaml").write_text(metadata)
    with BagReader(small_bag) as reader:
        assert re.search(fault, reader.notes[0])
        assert list(reader.messages())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(where=st.floats(0, 0.999), damage=st.binary(min_size=8, max_size=8))
def test_damage_anywhere_is_an_error_or_leaves_every_message_readable(
    tmp_path_factory: Any, where: float, damage: bytes
) -> None:
    bag = write_small(tmp_path_factory.mktemp("bags") / "bag")
    storage = next(bag.glob("*.mcap"))
    data = bytearray(storage.read_bytes())
    start = int(len(data) * where)
    data[start : start + 8] = damage
    storage.write_bytes(data)
    try:
        with BagReader(bag) as reader:
            result = str(len(list(reader.messages())))
    except BagError as error:
        result = str(error)
    assert result == "50" or result.startswith(str(bag))


def test_a_disk_that_fills_up_is_an_error_and_keeps_what_was_written(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk; the kernel answers the write with an error all the same."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    text = make("std_msgs/msg/String", {"data": "x" * 100_000})
    bag = BagWriter(tmp_path / "bag")

    def fill_disk() -> None:
        for stamp_ns in range(100):
            bag.write_message("/a", text, stamp_ns)

    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, limit[1]))
    try:
        with pytest.raises(BagWriteError, match=r"writing failed after \d+ messages"):
            fill_disk()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert sum(path.stat().st_size for path in (tmp_path / "bag").iterdir()) > 1_000_000


@pytest.fixture
def small_bag(tmp_path: Path) -> Path:
    return write_small(tmp_path / "bag")


def write_small(path: Path) -> Path:
    with BagWriter(path) as bag:
        for stamp_ns in range(50):
            bag.write_message("/a", make("std_msgs/msg/String", {"data": "x" * 100}), stamp_ns)
    return path


@pytest.mark.parametrize("compressed", [False, True])
def test_flushing_leaves_whole_messages_of_a_killed_recorder(tmp_path: Path, compressed: bool) -> None:
    writer = BagWriter(tmp_path / "bag", compressed)
    for index in range(20):  # five messages a second
        now_ns = index * 200_000_000
        writer.write_message("/words", make("std_msgs/msg/String", {"data": str(index)}), now_ns)
        writer.flush_if_due(now_ns)
    stamps_ns: list[int] = []
    with (tmp_path / "bag/bag.mcap").open("rb") as file, suppress(McapError):
        for entry in StreamReader(file).records:
            stamps_ns += [entry.log_time] if isinstance(entry, Message) else []
    writer.close()
    assert stamps_ns == [index * 200_000_000 for index in range(16)]
