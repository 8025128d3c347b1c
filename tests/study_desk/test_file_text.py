"""What a search of a study's folder finds in files, and what it says of those it cannot read."""

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
from norm_monitor.session_log.text_search import TextSearch, WordRuns, search_folder

SAID = "I don't “feel” über-well,\n\ttoday"
SEARCH = TextSearch(["Zebulon Quartermaine"], WordRuns([("feel", "über", "well", "today")]))


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


NAMES = TextSearch(("An", "Anna", "Dr. Zebulon Rose", "Bo Li", "Zoë O'Neil", "王芳"), WordRuns())


@pytest.mark.parametrize(
    ("line", "problems"),
    [
        ("thanks, ANNA!", ["a name"]),
        ("感谢王芳的帮助", ["a name"]),
        ("ZEBULON was here", ["a part of a name"]),
        ("an analysis of bananas", []),
        ("Rose petals of a rose, and a li of 500 m. Dr. No", []),
    ],
)
def test_names_are_found_as_whole_words_and_common_words_are_no_names(line: str, problems: list[str]) -> None:
    assert list(NAMES.find(line)) == problems
