"""What is whole in a damaged bag comes back up to the damage, in order and unchanged; nothing else does."""

import shutil
import sqlite3
import struct
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.writer import CompressionType
from mcap.writer import Writer as McapWriter
from rosbags.rosbag2 import CompressionMode

from norm_core.bags.bag_recovery import recover_bag
from norm_core.bags.reader import BagError, BagReader
from norm_core.bags.topic import BagTopic
from norm_core.bags.writer import BagWriter
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

MAKERS: dict[str, Callable[[Path], Path]] = {
    "rosbags": write_rosbags,
    "rosbags-zstd": lambda path: write_rosbags(path, mode=CompressionMode.STORAGE),
    "message-zstd": lambda path: write_rosbags(path, mode=CompressionMode.MESSAGE),
    "chunks": write_mcap,
    "chunks-zstd": lambda path: write_mcap(path, CompressionType.ZSTD),
    "chunks-lz4": lambda path: write_mcap(path, CompressionType.LZ4),
    "unchunked": lambda path: write_mcap(path, chunked=False),
}
fast = settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=12)


def storage_of(bag: Path) -> Path:
    return next(file for file in bag.iterdir() if file.suffix in (".mcap", ".db3"))


@pytest.mark.parametrize("kind", MAKERS)
def test_a_whole_bag_comes_back_whole(tmp_path: Path, kind: str) -> None:
    bag = MAKERS[kind](tmp_path / "bag")
    report = recover_bag(bag, tmp_path / "new")
    assert read(tmp_path / "new") == entries()
    assert (report.is_whole, report.messages, report.lost_by_topic) == (True, COUNT, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bag", "new"]


@pytest.mark.parametrize("kind", MAKERS)
@fast
@given(share=st.floats(0, 0.9999), damage=st.binary(max_size=40))
def test_a_cut_or_changed_file_gives_the_beginning_of_it(
    tmp_path_factory: Any, kind: str, share: float, damage: bytes
) -> None:
    """Flipped bytes are noticed where chunks have checksums; elsewhere the file is only cut."""
    folder = tmp_path_factory.mktemp("damaged")
    bag = MAKERS[kind](folder / "bag")
    (bag / "metadata.yaml").unlink(missing_ok=True)
    file = storage_of(bag)
    data = file.read_bytes()
    start = int(len(data) * share)
    changed = data[:start] + (damage + data[start + len(damage) :] if damage and kind.startswith("chunks") else b"")
    file.write_bytes(changed)
    try:
        report = recover_bag(bag, folder / "new")
    except BagError:
        assert not (folder / "new").exists()
    else:
        messages = read(folder / "new")
        assert messages == entries()[: len(messages)]
        assert report.messages == len(messages)
        assert report.is_cut or len(messages) == COUNT
    assert file.read_bytes() == changed
    shutil.rmtree(folder)


def test_flipped_bytes_in_the_middle_leave_the_chunks_before_them_and_are_counted(tmp_path: Path) -> None:
    bag = write_rosbags(tmp_path / "bag")
    (bag / "bag.mcap").unlink()
    shutil.move(storage_of(write_mcap(tmp_path / "chunks")), bag / "bag.mcap")
    file = storage_of(bag)
    data = bytearray(file.read_bytes())
    data[data.index(b"20 xxxx") + 5] ^= 1
    file.write_bytes(data)
    report = recover_bag(bag, tmp_path / "new")
    messages = read(tmp_path / "new")
    assert 10 < len(messages) <= 20
    assert messages == entries()[: len(messages)]
    assert report.lost_by_topic == Counter(topic for topic, _, _ in entries()[len(messages) :])
    assert report.is_cut
    assert "checksum" in report.stops[0]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_recorder_killed_at_any_moment_loses_less_than_two_seconds(tmp_path: Path, compressed: bool) -> None:
    writer = BagWriter(tmp_path / "bag", compressed)
    topic = BagTopic(topic="/a", type_name=STRING, definition="string data\n")
    for number in range(120):  # ten messages a second; each third second is silent
        now_ns = number * 100_000_000
        if number // 10 % 3 != 2:
            writer.write_copied(topic, cdr(f"{number} " + "x" * (number % 7 * 50_000)), now_ns)
        writer.flush_if_due(now_ns)
        if number and number % 9 == 0:
            killed = shutil.copytree(tmp_path / "bag", tmp_path / f"killed_{number}")  # what a kill leaves
            report = recover_bag(killed, tmp_path / f"new_{number}")
            written = [n for n in range(number + 1) if n // 10 % 3 != 2]
            assert report.messages >= sum(n * 100_000_000 <= now_ns - 1_000_000_000 for n in written)
            assert report.is_cut
            assert len(read(tmp_path / f"new_{number}")) == report.messages
    writer.close()
    assert len(read(tmp_path / "bag")) == 80


def test_a_packed_file_that_was_cut_gives_its_beginning(tmp_path: Path) -> None:
    bag = write_mcap(tmp_path / "bag")
    file = storage_of(bag)
    data, packer = file.read_bytes(), zstandard.ZstdCompressor().compressobj()
    pieces = [
        packer.compress(data[at : at + 1000]) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        for at in range(0, len(data), 1000)
    ]
    file.unlink()
    file.with_name("bag_0.mcap.zstd").write_bytes(b"".join(pieces[: len(pieces) // 2]))
    report = recover_bag(bag, tmp_path / "new")
    messages = read(tmp_path / "new")
    assert 0 < len(messages) < COUNT
    assert messages == entries()[: len(messages)]
    assert report.is_cut


def test_a_damaged_database_is_for_sqlites_own_tool(tmp_path: Path) -> None:
    bag = write_before_iron(tmp_path / "bag")
    with pytest.raises(BagError, match=r"only MCAP files .* sqlite3 bag_0\.db3 \.recover \| sqlite3 NEW\.db3"):
        recover_bag(bag, tmp_path / "new")


def test_a_database_whose_writer_died_names_how_its_log_is_merged(tmp_path: Path) -> None:
    bag = write_before_iron(tmp_path / "bag", messages=entries(4))
    live = sqlite3.connect(storage_of(bag))
    live.execute("PRAGMA journal_mode=WAL")
    live.execute("PRAGMA wal_autocheckpoint=0")
    topic, stamp_ns, data = entries(5)[4]
    live.execute("INSERT INTO messages(topic_id, timestamp, data) VALUES(1, ?, ?)", (stamp_ns, data))
    live.commit()
    dead = shutil.copytree(bag, tmp_path / "dead")
    live.close()
    with pytest.raises(BagError, match=r"bag_0\.db3-wal was merged.*sqlite3 bag_0\.db3 \.tables"):
        BagReader(dead)
    with closing(sqlite3.connect(storage_of(dead))) as database:
        database.execute("SELECT name FROM sqlite_master").fetchall()  # as `.tables` does
    assert read(dead) == [*entries(4), (topic, stamp_ns, data)]


def _with_topics(file: IO[bytes]) -> None:
    writer = McapWriter(file, compression=CompressionType.ZSTD)
    writer.start(profile="ros2")
    schema = writer.register_schema(STRING, "ros2msg", b"string data\n")
    for number in range(5_000):
        channel = writer.register_channel(f"/{number}", "cdr", schema)
    writer.add_message(channel, log_time=1, publish_time=1, data=cdr("hi"))
    writer.finish()


def _with_empty_records(file: IO[bytes]) -> None:
    writer = McapWriter(file)
    writer.start(profile="ros2")
    content = struct.pack("<BQ", 0xFF, 0) * 1_000_000
    packed = zstandard.compress(content)
    head = struct.pack("<QQQII4sQ", 0, 0, len(content), 0, 4, b"zstd", len(packed))
    file.write(struct.pack("<BQ", 6, len(head) + len(packed)) + head + packed)


def _with_a_huge_length(file: IO[bytes]) -> None:
    file.write(b"\x89MCAP0\r\n" + struct.pack("<BQ", 6, 60) + struct.pack("<QQQIIQ", 0, 0, 1 << 40, 0, 0, 1 << 60))


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (_with_topics, "more than 4096 topics"),
        (_with_empty_records, "more records than a recorder"),
        (_with_a_huge_length, "the file ends there"),
        (lambda file: None, "the file ends there"),
        (lambda file: file.write(b"no bag at all"), "read up to byte 0 of 13"),
        (lambda file: file.write(b"\x89MCAP0\r\n"), "the file ends there"),
    ],
)
def test_hostile_sizes_or_nothing_readable_are_an_error(
    tmp_path: Path, write: Callable[[IO[bytes]], object], why: str
) -> None:
    (tmp_path / "bag").mkdir()
    with (tmp_path / "bag/a.mcap").open("wb") as file:
        write(file)
    with pytest.raises(BagError, match=f"nothing in it can be recovered: .*{why}"):
        recover_bag(tmp_path / "bag", tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["bag"]
