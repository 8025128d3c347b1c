"""What a search of a study's folder or of a publication finds in files, and what it says of those it cannot read."""

import gzip
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from mcap.writer import CompressionType, Writer
from openpyxl import Workbook

from norm_monitor.session_log import text_search
from norm_monitor.session_log.text_search import Forbidden, TextSearch, search_folder
from study_desk.analysis.publish import Leak, find_leaks

SAID = "I don't “feel” über-well,\n\ttoday"
SEARCH = TextSearch(
    Forbidden(names={"Zebulon Quartermaine": "a name"}, pseudonyms={}, sentences=frozenset({" feel über well today "}))
)


def bag(compression: CompressionType, type_name: str = "std_msgs/msg/String") -> bytes:
    file = io.BytesIO()
    writer = Writer(file, compression=compression)
    writer.start()
    schema_id = writer.register_schema(type_name, "ros2msg", b"string data")
    channel_id = writer.register_channel("/said", "cdr", schema_id)
    data = b"\0\1\0\0" + len(SAID).to_bytes(4, "little") + SAID.encode() + b"\0"
    writer.add_message(channel_id, log_time=1, publish_time=1, data=data)
    writer.finish()
    return file.getvalue()


def zipped(data: bytes, times: int = 1) -> bytes:
    for _ in range(times):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("notes.txt", data)
        data = file.getvalue()
    return data


def workbook() -> bytes:
    file, book = io.BytesIO(), Workbook()
    book.active.append(["S1", SAID])
    book.save(file)
    return file.getvalue()


FORMS: dict[str, Callable[[], bytes]] = {
    "notes.txt": SAID.encode,
    "wide.txt": lambda: SAID.encode("utf-16"),
    "log.jsonl": lambda: json.dumps({"text": SAID}).encode(),
    "page.html": lambda: b"I don&#39;t <b>&ldquo;feel&rdquo;</b> &uuml;ber-well,<br>today",
    "far.txt": lambda: b"x " * (text_search.BLOCK_BYTES // 2 - 10) + SAID.encode(),
    "bag.mcap": lambda: bag(CompressionType.NONE),
    "lz4.mcap": lambda: bag(CompressionType.LZ4),
    "zstd.mcap": lambda: bag(CompressionType.ZSTD),
    "table.xlsx": workbook,
    "backup.zip": lambda: zipped(SAID.encode()),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_sentence_is_found_in_every_form(tmp_path: Path, name: str) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / name).write_bytes(FORMS[name]())
    (tmp_path / "other.txt").write_text("feel well today")
    result = search_folder(tmp_path, SEARCH)
    assert (result.found, result.unreadable) == ({f"deep/{name}": "has words that a participant said"}, {})
    assert result.searched == 2


def test_a_sentence_is_found_in_a_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "bag_0.db3") as database:
        database.execute("CREATE TABLE messages (id INTEGER, data BLOB)")
        database.execute("INSERT INTO messages VALUES (1, ?)", (b"\0" * 9000 + SAID.encode(),))
        database.execute("INSERT INTO messages VALUES (2, ?)", (b"by Zebulon",))
    database.close()
    found = search_folder(tmp_path, SEARCH).found
    assert found == {"bag_0.db3": "has words that a participant said and a part of a name"}


def test_a_name_is_found_in_the_name_of_a_file_and_kept_files_are_left_out(tmp_path: Path) -> None:
    for name in ("S1_Quartermaine.mp4", "keys.json"):
        (tmp_path / name).write_text("Zebulon Quartermaine")
    found = search_folder(tmp_path, SEARCH, frozenset({(tmp_path / "keys.json").resolve()})).found
    assert found == {"S1_Quartermaine.mp4": "has a part of a name"}


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("torn.mcap", bag(CompressionType.ZSTD)[:-40], "cannot be searched"),
        ("notes.gz", gzip.compress(SAID.encode()), "it is packed; unpack it, or delete it"),
        ("bag.mcap.zstd", zstandard.compress(bag(CompressionType.ZSTD)), "it is packed"),
        ("torn.zip", zipped(b"x")[:-20], "not a zip file"),
        ("packed.zip", zipped(b"x", 2), "it is packed"),
        ("torn.db3", b"SQLite format 3\0" + b"\7" * 200, "cannot be searched"),
    ],
    ids=["bag", "gzip", "zstd", "zip", "zips", "database"],
)
def test_what_cannot_be_searched_is_named(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert why in search_folder(tmp_path, SEARCH).unreadable[name]


def test_pictures_and_sound_of_a_bag_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "bag.mcap").write_bytes(bag(CompressionType.NONE, "sensor_msgs/msg/Image"))
    assert search_folder(tmp_path, SEARCH).found == {}


FORBIDDEN = TextSearch(
    Forbidden(
        names={
            "An": "a name",
            "Anna": "a name",
            "Dr. Zebulon Rose": "a name",
            "Bo Li": "a name",
            "Zoë O'Neil": "a name",
            "王芳": "a name",
        },
        pseudonyms={"P-7K3MX": "a pseudonym"},
        sentences=frozenset({" i lost my keys again "}),
    )
)


def leaks(line: str, file: str = "README.md") -> list[Leak]:
    return list(find_leaks(file, f"fine\n{line}\n".encode(), FORBIDDEN))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("thanks, ANNA!", "a name"),
        ("by An.", "a name"),
        ("by Zoë O'Neil", "a name"),
        ("感谢王芳的帮助", "a name"),
        ("ZEBULON was here", "a part of a name"),
        ("by O'Neil", "a part of a name"),
        ("Rose, come", "a part of a name"),
        ("Li came", "a part of a name"),
        ("P-7K3MX left", "a pseudonym"),
        ('"I lost my keys, again."', "words that a participant said"),
        ("on 2026-03-04", "a date: 2026-03-04"),
        ("on 4.3.2026", "a date: 4.3.2026"),
        ("on 03/04/2026", "a date: 03/04/2026"),
        ("on 3 March", "a date: 3 March"),
        ("in March 2026", "a date: March 2026"),
        ("at 14:05:59", "a time of day: 14:05"),
        ("20260304_140559", "a time stamp: 20260304_140559"),
        ("1767225600", "a time stamp: 1767225600"),
        ("1767225600123", "a time stamp: 1767225600123"),
        ("/home/ana/x", "the path of a user: /home/ana"),
        (r"C:\Users\ana", r"the path of a user: C:\Users\ana"),
    ],
)
def test_a_hit_has_its_file_and_line(line: str, problem: str) -> None:
    assert Leak(file="README.md", line=2, problem=f"has {problem}") in leaks(line)


@pytest.mark.parametrize(
    "line",
    [
        "an analysis of bananas by p-7k3mx-like labels",
        "kiosk-2026, version 1.10.0, 10.1000/182",
        "12.5\t0.300\terror_engagement\t1234567.25\t0.812345",
        "You may decide in 3 ways, at a ratio of 1:10",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  sub-7K3M/sub-7K3M_sessions.tsv",
        "1767225600abc",
        "Rose petals of a rose, and a li of 500 m. Dr. No",
    ],
)
def test_what_is_no_hit_passes(line: str) -> None:
    assert leaks(line) == []


def test_names_of_files_are_checked_too() -> None:
    assert leaks("", "sub-1/Anna_1.tsv") == [Leak(file="sub-1/Anna_1.tsv", line=None, problem="its name has a name")]
    assert leaks("", "2026-03-04/x.tsv")[0].problem == "its name has a date: 2026-03-04"


@pytest.mark.parametrize(("file", "data"), [("a.png", b"text"), ("a.tsv", b"\x89PNG\0"), ("a.txt", b"\xff\xfe\xff")])
def test_media_are_known_by_name_or_content(file: str, data: bytes) -> None:
    assert [leak.problem[:11] for leak in find_leaks(file, data, FORBIDDEN)] == ["is not text"]
    assert [*find_leaks(file, data, FORBIDDEN, may_be_media=True)] == []
