"""What is whole in a damaged bag comes back, in order and unchanged; nothing else does."""

import shutil
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.writer import CompressionType
from rosbags.rosbag2 import CompressionMode, StoragePlugin

from norm_core.bags.reader import BagError, BagReader
from norm_core.bags.recovery.bag_recovery import recover_bag
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


def rewrite(bag: Path, change: Callable[[bytearray], bytearray]) -> None:
    file = storage_of(bag)
    file.write_bytes(change(bytearray(file.read_bytes())))


def storage_of(bag: Path) -> Path:
    return next(file for file in bag.iterdir() if file.suffix in (".mcap", ".db3"))


@pytest.mark.parametrize("kind", MAKERS)
def test_a_whole_bag_comes_back_whole(tmp_path: Path, kind: str) -> None:
    bag = MAKERS[kind](tmp_path / "bag")
    found = recover_bag(bag, tmp_path / "new")
    assert read(tmp_path / "new") == entries()
    assert (found.is_whole, found.messages, found.lost_by_topic) == (True, COUNT, {})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bag", "new"]


@pytest.mark.parametrize("kind", MAKERS)
@fast
@given(share=st.floats(0, 0.9999))
def test_a_cut_mcap_gives_the_beginning_of_it(tmp_path_factory: Any, kind: str, share: float) -> None:
    folder = tmp_path_factory.mktemp("cut")
    bag = MAKERS[kind](folder / "bag")
    (bag / "metadata.yaml").unlink(missing_ok=True)
    rewrite(bag, lambda data: data[: int(len(data) * share)])
    try:
        found = recover_bag(bag, folder / "new")
    except BagError:
        assert not (folder / "new").exists()
        assert share < 0.9
    else:
        back = read(folder / "new")
        assert back == entries()[: len(back)]
        assert found.messages == len(back)
        assert found.is_cut or len(back) == COUNT
    shutil.rmtree(folder)


@pytest.mark.parametrize("kind", ["chunks", "chunks-zstd", "chunks-lz4"])
@fast
@given(share=st.floats(0, 0.9999), damage=st.binary(min_size=1, max_size=40), keeps_end=st.booleans())
def test_damage_in_a_file_with_checksums_never_makes_a_message_up(
    tmp_path_factory: Any, kind: str, share: float, damage: bytes, keeps_end: bool
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    bag = MAKERS[kind](folder / "bag")
    file = storage_of(bag)
    data = bytearray(file.read_bytes()[: None if keeps_end else -40])
    start = int(len(data) * share)
    data[start : start + len(damage)] = damage
    file.write_bytes(data)
    try:
        recover_bag(bag, folder / "new")
    except BagError:
        return
    order = {entry: index for index, entry in enumerate(entries())}
    places = [order[entry] for entry in read(folder / "new")]
    assert places == sorted(set(places))
    shutil.rmtree(folder)


def test_a_chunk_with_a_wrong_checksum_is_left_out_and_counted_by_topic(tmp_path: Path) -> None:
    bag = write_mcap(tmp_path / "bag")
    file = storage_of(bag)
    data = bytearray(file.read_bytes())
    at = data.index(b"20 xxxx")
    data[at + 5] ^= 1
    file.write_bytes(data)
    found = recover_bag(bag, tmp_path / "new")
    back = read(tmp_path / "new")
    missing = [entry for entry in entries() if entry not in back]
    assert 0 < len(missing) < COUNT / 2
    by_topic = {topic: sum(t == topic for t, _, _ in missing) for topic in {t for t, _, _ in missing}}
    assert found.lost_by_topic == by_topic
    assert (found.chunks_damaged, found.is_cut, found.lost_known_from) == (1, False, "the counts in the files")
    assert "checksum" in found.holes[0].why
    (gap,) = found.lost_times
    assert (gap.after_ns, gap.before_ns) == (missing[0][1] - 100_000_000, missing[-1][1] + 100_000_000)


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
            found = recover_bag(killed, tmp_path / f"new_{number}")
            written = [n for n in range(number + 1) if n // 10 % 3 != 2]
            assert found.messages >= sum(n * 100_000_000 <= now_ns - 1_000_000_000 for n in written)
            assert found.is_cut
            assert len(read(tmp_path / f"new_{number}")) == found.messages
    writer.close()
    assert len(read(tmp_path / "bag")) == 80


def test_a_bad_length_in_the_middle_is_passed_over_to_the_next_chunk(tmp_path: Path) -> None:
    bag = write_mcap(tmp_path / "bag", CompressionType.LZ4)
    file = storage_of(bag)
    data = bytearray(file.read_bytes())
    second = data.index(b"\x03\0\0\0lz4", data.index(b"\x03\0\0\0lz4") + 1) - 37
    assert data[second] == 6
    data[second + 1 : second + 9] = struct.pack("<Q", 1 << 50)
    for end in (None, -37):  # by the index, then by the looks of a chunk
        file.write_bytes(data[:end])
        found = recover_bag(bag, tmp_path / f"new{end}")
        back = read(tmp_path / f"new{end}")
        assert back[-1] == entries()[-1]
        assert COUNT / 2 < len(back) < COUNT
        assert found.hole_count >= 1


def test_a_bag_within_a_bag_is_not_taken_for_more_messages(tmp_path: Path) -> None:
    """A cut chunk's rest may look like chunks of its own."""
    inner = storage_of(write_mcap(tmp_path / "inner")).read_bytes()
    outer = [*entries(4), ("/a", 2_000_000_000, b"\0\1\0\0" + inner * 2)]
    bag = write_rosbags(tmp_path / "bag", messages=outer)
    (bag / "metadata.yaml").unlink()
    file = storage_of(bag)
    file.write_bytes(file.read_bytes()[: len(inner) + 9_000])
    recover_bag(bag, tmp_path / "new")
    assert read(tmp_path / "new") == outer[:4]


@pytest.mark.parametrize("maker", [write_before_iron, lambda path: write_rosbags(path, StoragePlugin.SQLITE3)])
@fast
@given(share=st.floats(0, 0.9999))
def test_a_cut_sqlite3_file_gives_some_of_its_messages_and_no_other(
    tmp_path_factory: Any, maker: Any, share: float
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    bag = maker(folder / "bag")
    (bag / "metadata.yaml").unlink(missing_ok=True)
    rewrite(bag, lambda data: data[: int(len(data) * share)])
    try:
        found = recover_bag(bag, folder / "new")
    except BagError:
        return
    order = {entry: index for index, entry in enumerate(entries())}
    places = [order[entry] for entry in read(folder / "new")]
    assert places == sorted(set(places))
    assert not found.is_whole
    shutil.rmtree(folder)


def test_rows_that_cannot_be_read_are_stepped_over(tmp_path: Path) -> None:
    bag = write_before_iron(tmp_path / "bag", messages=entries(400))
    file = storage_of(bag)
    data = bytearray(file.read_bytes())
    pages = len(data) // 4096
    for page in (pages // 3, pages // 2):
        data[page * 4096 : page * 4096 + 4096] = b"\xff" * 4096
    file.write_bytes(data)
    found = recover_bag(bag, tmp_path / "new")
    back = read(tmp_path / "new")
    assert 380 < len(back) < 400
    assert back == [entry for entry in entries(400) if entry in back]
    assert 400 - len(back) == found.lost_by_topic["(unknown)"]


def test_a_database_whose_writer_died_has_its_log_merged(tmp_path: Path) -> None:
    bag = write_before_iron(tmp_path / "bag", messages=entries(4))
    live = sqlite3.connect(storage_of(bag))
    live.execute("PRAGMA journal_mode=WAL")
    live.execute("PRAGMA wal_autocheckpoint=0")
    topic, stamp_ns, data = entries(5)[4]
    live.execute("INSERT INTO messages(topic_id, timestamp, data) VALUES(1, ?, ?)", (stamp_ns, data))
    live.commit()
    dead = tmp_path / "dead"
    shutil.copytree(bag, dead)
    live.close()
    with pytest.raises(BagError, match=r"bag_0\.db3-wal was merged.*tactful bag recover"):
        BagReader(dead)
    recover_bag(dead, tmp_path / "new")
    assert read(tmp_path / "new") == [*entries(4), (topic, stamp_ns, data)]
    assert sorted(p.name for p in dead.iterdir()) == ["bag_0.db3", "bag_0.db3-shm", "bag_0.db3-wal"]


@pytest.mark.parametrize("content", [b"", b"no bag at all", b"\x89MCAP0\r\n"])
def test_a_file_without_a_message_leaves_no_bag(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bag").mkdir()
    (tmp_path / "bag/a.mcap").write_bytes(content)
    with pytest.raises(BagError, match="nothing in it can be recovered"):
        recover_bag(tmp_path / "bag", tmp_path / "new")
    assert [p.name for p in tmp_path.iterdir()] == ["bag"]
