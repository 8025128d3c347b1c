"""What a search of a study's folder or of a publication finds in files, and what it says of those it cannot read."""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from norm_monitor.session_log import text_search
from norm_monitor.session_log.text_search import ForbiddenContent, TextSearch, search_folder
from study_desk.analysis.publish import Leak, find_leaks

SAID = "I don't “feel” über-well,\n\ttoday"
SEARCH = TextSearch(
    ForbiddenContent(
        names={"Zebulon Quartermaine": "a name"}, pseudonyms={}, sentences=frozenset({" feel über well today "})
    )
)


def make_tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tape:
        tape.addfile(tarfile.TarInfo("S1/notes.txt"))
    return file.getvalue()


def make_zip(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("notes.txt", data)
    return file.getvalue()


FORMS: dict[str, Callable[[], bytes]] = {
    "notes.txt": SAID.encode,
    "wide.txt": lambda: SAID.encode("utf-16"),
    "log.jsonl": lambda: json.dumps({"text": SAID}).encode(),
    "page.html": lambda: b"I don&#39;t <b>&ldquo;feel&rdquo;</b> &uuml;ber-well,<br>today",
    "far.txt": lambda: b"x " * (text_search.BLOCK_BYTES // 2 - 10) + SAID.encode(),
    "backup.zip": lambda: make_zip(SAID.encode()),
}


@pytest.mark.parametrize("name", FORMS)
def test_search_finds_a_sentence_in_each_file_type(tmp_path: Path, name: str) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / name).write_bytes(FORMS[name]())
    (tmp_path / "other.txt").write_text("feel well today")
    result = search_folder(tmp_path, SEARCH)
    assert (result.hits, result.searched) == ({f"deep/{name}": "has words that a participant said"}, 2)


PACKED = {
    "a.tar": make_tar(),
    "a.zip": make_zip(make_zip(b"x")),
    "a.gz": gzip.compress(b""),
    "a.zst": zstandard.compress(b""),
    "a.mcap": b"\x89MCAP0\r\n",
    "a.db3": b"SQLite format 3\0",
}


@pytest.mark.parametrize("name", PACKED)
def test_search_names_files_that_it_cannot_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(PACKED[name])
    assert search_folder(tmp_path, SEARCH).hits[name] == "cannot be searched: it is a bag or an archive"


def test_search_reads_file_names_and_skips_files_left_out(tmp_path: Path) -> None:
    for name in ("S1_Quartermaine.mp4", "keys.json"):
        (tmp_path / name).write_text("Zebulon Quartermaine")
    hits = search_folder(tmp_path, SEARCH, frozenset({(tmp_path / "keys.json").resolve()})).hits
    assert hits == {"S1_Quartermaine.mp4": "has a part of a name"}


FORBIDDEN = TextSearch(
    ForbiddenContent(
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


def find_line_leaks(line: str, file: str = "README.md") -> list[Leak]:
    return list(find_leaks(file, f"fine\n{line}\n".encode(), FORBIDDEN))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("thanks, ANNA!", "a name"),
        ("感谢王芳的帮助", "a name"),
        ("ZEBULON was here", "a part of a name"),
        ("P-7K3MX left", "a pseudonym"),
        ('"I lost my keys, again."', "words that a participant said"),
        ("on 2026-03-04", "a date: 2026-03-04"),
        ("on 4.3.2026", "a date: 4.3.2026"),
        ("in March 2026", "a date: March 2026"),
        ("at 14:05:59", "a time of day: 14:05"),
        ("20260304_140559", "a time stamp: 20260304_140559"),
        ("1767225600", "a time stamp: 1767225600"),
        ("/home/ana/x", "the path of a user: /home/ana"),
        (r"C:\Users\ana", r"the path of a user: C:\Users\ana"),
    ],
)
def test_a_leak_names_file_and_line(line: str, problem: str) -> None:
    assert Leak(file="README.md", line=2, problem=f"has {problem}") in find_line_leaks(line)


@pytest.mark.parametrize(
    "line",
    [
        "an analysis of bananas by p-7k3mx-like labels",
        "kiosk-2026, version 1.10.0, 10.1000/182",
        "12.5\t0.300\terror_engagement\t1234567.25\t0.812345",
        "You may decide in 3 ways, at a ratio of 1:10",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  sub-7K3M/sub-7K3M_sessions.tsv",
        "Rose petals of a rose, and a li of 500 m. Dr. No",
    ],
)
def test_harmless_lines_are_no_leaks(line: str) -> None:
    assert find_line_leaks(line) == []


def test_names_of_files_are_checked() -> None:
    assert find_line_leaks("", "sub-1/Anna_1.tsv") == [
        Leak(file="sub-1/Anna_1.tsv", line=None, problem="its name has a name")
    ]
    assert find_line_leaks("", "2026-03-04/x.tsv")[0].problem == "its name has a date: 2026-03-04"


@pytest.mark.parametrize(("file", "data"), [("a.png", b"text"), ("a.tsv", b"\x89PNG\0"), ("a.txt", b"\xff\xfe\xff")])
def test_media_are_recognised_by_name_or_content(file: str, data: bytes) -> None:
    assert [leak.problem[:11] for leak in find_leaks(file, data, FORBIDDEN)] == ["is not text"]
    assert [*find_leaks(file, data, FORBIDDEN, may_be_media=True)] == []
