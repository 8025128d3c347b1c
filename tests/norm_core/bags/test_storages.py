"""Bags of every storage are read alike; what is odd about one is told, and what is lost is an error."""

import os
import random
import shutil
import sqlite3
import struct
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from mcap.writer import CompressionType
from mcap.writer import Writer as McapWriter
from rosbags.rosbag2 import CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from norm_core.bags.reader import BagError, BagReader
from norm_core.bags.types import make, typestore
from tests.norm_core.bags.bag_files import (
    COUNT,
    STRING,
    cdr,
    entries,
    read,
    write_before_iron,
    write_mcap,
    write_rosbags,
)

KINDS: dict[str, Callable[[Path], Path]] = {
    "mcap": write_rosbags,
    "mcap, messages compressed": lambda path: write_rosbags(path, mode=CompressionMode.MESSAGE),
    "mcap, files compressed": lambda path: write_rosbags(path, mode=CompressionMode.FILE),
    "mcap of others": lambda path: write_mcap(path, CompressionType.LZ4),
    "sqlite3": lambda path: write_rosbags(path, StoragePlugin.SQLITE3),
    "sqlite3, messages compressed": lambda path: write_rosbags(path, StoragePlugin.SQLITE3, CompressionMode.MESSAGE),
    "sqlite3, files compressed": lambda path: write_rosbags(path, StoragePlugin.SQLITE3, CompressionMode.FILE),
    "sqlite3 before Iron": write_before_iron,
}


@pytest.mark.parametrize("without_metadata", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_storage_gives_the_same_messages(tmp_path: Path, kind: str, without_metadata: bool) -> None:
    bag = KINDS[kind](tmp_path / "bag")
    if without_metadata:
        (bag / "metadata.yaml").unlink(missing_ok=True)
    with BagReader(bag) as reader:
        messages = list(reader.messages())
        assert [(m.topic, m.stamp_ns, m.data) for m in messages] == entries()
        assert {t.topic: t.message_count for t in reader.topics} == {"/a": COUNT - COUNT // 4, "/b": COUNT // 4}
        assert reader.bounds_ns == (entries()[0][1], entries()[-1][1])
        assert reader.decode(messages[1]).data == "1 " + "x" * 37
        assert list(reader.messages(["/b"], messages[3].stamp_ns, messages[7].stamp_ns)) == [messages[3]]


def split(folder: Path, names: list[str]) -> Path:
    """A bag of several files, its messages dealt out to them in turn of their length."""
    folder.mkdir()
    share = COUNT // len(names)
    for index, name in enumerate(names):
        part = write_rosbags(folder / name, StoragePlugin.SQLITE3, messages=entries()[index * share :][:share])
        shutil.move(part / f"{name}.db3", folder / f"{name}.db3x")
        shutil.rmtree(part)
        (folder / f"{name}.db3x").rename(folder / f"{name}.db3")
    return folder


def test_files_without_a_metadata_yaml_are_read_by_number(tmp_path: Path) -> None:
    bag = split(tmp_path / "bag", [f"session_{number}" for number in (0, 1, 2, 10)])
    with BagReader(bag) as reader:
        assert [m.stamp_ns for m in reader.messages()] == [stamp for _, stamp, _ in entries()]
        assert reader.notes == ("has no metadata.yaml",)


def test_a_renamed_file_is_found_and_a_missing_one_missed(tmp_path: Path) -> None:
    bag = write_rosbags(tmp_path / "bag")
    (bag / "bag.mcap").rename(bag / "renamed.mcap")
    with BagReader(bag) as reader:
        assert reader.message_count == COUNT
        assert any("does not list renamed.mcap" in note for note in reader.notes)
    shutil.copy(write_rosbags(tmp_path / "other", messages=entries(4)) / "other.mcap", bag / "renamed.mcap")
    with pytest.raises(BagError, match=r"promises 40 messages.*files hold 4.*mcap recover"):
        BagReader(bag)


def test_an_old_bag_without_definitions_is_decoded(tmp_path: Path) -> None:
    """sensor_msgs/msg/Range has had one field more since Iron."""
    humble = get_typestore(Stores.ROS2_HUMBLE)
    name = "sensor_msgs/msg/Range"
    header = make(
        "std_msgs/msg/Header",
        {"stamp": make("builtin_interfaces/msg/Time", {"sec": 1, "nanosec": 2})} | {"frame_id": "a"},
    )
    values = {"radiation_type": 0, "field_of_view": 0.5, "min_range": 0.0, "max_range": 4.0, "range": 2.5}
    data = bytes(humble.serialize_cdr(humble.types[name](header=header, **values), name))
    bag = write_before_iron(tmp_path / "bag", name, [("/sonar", 1, data)])
    with BagReader(bag) as reader:
        (message,) = reader.messages()
        assert reader.decode(message).range == 2.5


def zoo(path: Path, definition: str, values: dict[str, Any]) -> Path:
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg(definition, "zoo_msgs/msg/Animal"))
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connection = writer.add_connection("/zoo", "zoo_msgs/msg/Animal", typestore=store)
        animal = store.types["zoo_msgs/msg/Animal"](**values)
        writer.write(connection, 1, store.serialize_cdr(animal, "zoo_msgs/msg/Animal"))
    return path


def test_two_bags_may_mean_different_things_by_one_type(tmp_path: Path) -> None:
    first = zoo(tmp_path / "first", "string name\n", {"name": "gnu"})
    second = zoo(tmp_path / "second", "int32 legs\nstring name\n", {"legs": 4, "name": "gnu"})
    with BagReader(first) as reader, BagReader(second) as other:
        assert [reader.decode(m).name for m in reader.messages()] == ["gnu"]
        assert [(a.legs, a.name) for a in map(other.decode, other.messages())] == [(4, "gnu")]


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    bag = write_rosbags(tmp_path / "bag")
    with BagReader(bag) as reader:
        messages = reader.messages()
        next(messages)
        status = (bag / "bag.mcap").stat()
        os.utime(bag / "bag.mcap", ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        with pytest.raises(BagError, match=r"changed while it was being read: wait until"):
            list(messages)


@pytest.mark.parametrize("qos", ["[" * 100_000, "- &a [x]\n- [*a, *a]", "- history: [1]", "a: 2026-01-01", "\0"])
def test_qos_that_cannot_be_read_is_none(tmp_path: Path, qos: str) -> None:
    with (tmp_path / "bag_0.mcap").open("wb") as file:
        writer = McapWriter(file)
        writer.start(profile="ros2")
        schema = writer.register_schema(STRING, "ros2msg", b"string data\n")
        channel = writer.register_channel("/a", "cdr", schema, {"offered_qos_profiles": qos})
        writer.add_message(channel, log_time=1, publish_time=1, data=cdr("hi"))
        writer.finish()
    with BagReader(tmp_path) as reader:
        assert [topic.qos for topic in reader.topics] == [()]
        assert len(list(reader.messages())) == 1


def test_a_clock_that_went_back_is_read_by_stamps(tmp_path: Path) -> None:
    messages = [("/a", stamp, cdr(str(stamp))) for stamp in (50, 60, 10, 20)]
    assert [s for _, s, _ in read(write_rosbags(tmp_path / "bag", messages=messages))] == [10, 20, 50, 60]


@pytest.mark.parametrize("storage", [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_reading_holds_a_small_part_of_a_bag_at_a_time(tmp_path: Path, storage: StoragePlugin) -> None:
    """Of 24 MB; what Python holds is counted, which is where a whole file would be."""
    size = 100_000
    data = bytes(typestore().serialize_cdr(make(STRING, {"data": "x" * size}), STRING))
    bag = write_rosbags(tmp_path / "bag", storage, messages=[("/a", stamp, data) for stamp in range(240)])
    tracemalloc.start()
    try:
        with BagReader(bag) as reader:
            read_bytes = sum(len(message.data) for message in reader.messages())
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read_bytes > 240 * size
    assert peak_bytes < 10_000_000


def mcap(chunk: bytes, summary: bytes = b"") -> bytes:
    """An MCAP file with a chunk, and without checksums."""
    magic = b"\x89MCAP0\r\n"
    header = struct.pack("<BQI4sI", 1, 12, 4, b"ros2", 0)
    data = magic + header + chunk + struct.pack("<BQI", 0x0F, 4, 0)
    return data + summary + struct.pack("<BQQQI", 2, 20, len(data) if summary else 0, 0, 0) + magic


def chunk_of(records: bytes) -> bytes:
    packed = zstandard.compress(records)
    body = struct.pack("<QQQII4sQ", 1, 1, len(records), 0, 4, b"zstd", len(packed)) + packed
    return struct.pack("<BQ", 6, len(body)) + body


def test_a_chunk_of_empty_records_is_refused(tmp_path: Path) -> None:
    """A megabyte of zeros is 100,000 records without content, and compresses to a few bytes."""
    (tmp_path / "bag.mcap").write_bytes(mcap(chunk_of(bytes(1 << 20))))
    with pytest.raises(BagError, match="unpacks to more records than a recorder packs"):
        BagReader(tmp_path / "bag.mcap")


def test_an_index_that_states_one_chunk_many_times_is_refused(tmp_path: Path) -> None:
    chunk = chunk_of(random.Random(0).randbytes(2000))
    index = struct.pack("<QQQQIQI4sQQ", 1, 1, 33, len(chunk), 0, 0, 4, b"zstd", len(chunk) - 61, 2000)
    summary = 50 * (struct.pack("<BQ", 8, len(index)) + index)
    (tmp_path / "bag.mcap").write_bytes(mcap(chunk, summary))
    with pytest.raises(BagError, match="states more chunks than the file has room for"):
        BagReader(tmp_path / "bag.mcap")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("UPDATE messages SET data = 'text' WHERE id = 1", "holds str in place of bytes"),
        ("UPDATE messages SET data = NULL", "holds NoneType in place of bytes"),
        ("UPDATE topics SET name = x'ff'", "which is not a text"),
        ("UPDATE messages SET timestamp = 'text'", "nothing that ROS 2 writes"),
    ],
)
def test_a_value_of_a_wrong_type_is_named(tmp_path: Path, change: str, fault: str) -> None:
    """SQLite stores any type in any column."""
    file = write_before_iron(tmp_path / "bag", messages=[("/t0", 1, cdr("hello"))]) / "bag_0.db3"
    with closing(sqlite3.connect(file)) as database, database:
        database.executescript(
            "ALTER TABLE messages RENAME TO old; CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id, timestamp, "
            f"data); INSERT INTO messages SELECT * FROM old; DROP TABLE old; {change}"
        )
    with pytest.raises(BagError, match=fault):
        read(file)


def test_a_database_with_an_unmerged_log_names_how_to_merge_it(tmp_path: Path) -> None:
    bag = write_before_iron(tmp_path / "bag", messages=entries(4))
    live = sqlite3.connect(_database_of(bag))
    live.execute("PRAGMA journal_mode=WAL")
    live.execute("PRAGMA wal_autocheckpoint=0")
    topic, stamp_ns, data = entries(5)[4]
    live.execute("INSERT INTO messages(topic_id, timestamp, data) VALUES(1, ?, ?)", (stamp_ns, data))
    live.commit()
    dead = shutil.copytree(bag, tmp_path / "dead")
    live.close()
    with pytest.raises(BagError, match=r"bag_0\.db3-wal was merged.*sqlite3 bag_0\.db3 \.tables"):
        BagReader(dead)
    with closing(sqlite3.connect(_database_of(dead))) as database:
        database.execute("SELECT name FROM sqlite_master").fetchall()  # as `.tables` does
    assert read(dead) == [*entries(4), (topic, stamp_ns, data)]


def _database_of(bag: Path) -> Path:
    return next(bag.glob("*.db3"))
