"""What the check of a dataset finds, and what it lets pass."""

from pathlib import Path

import pytest

from study_desk.privacy.redact import NamesToRemove
from study_desk.privacy.text_search import Forbidden, TextSearch
from study_desk.publication.dataset import PublicationKey, PublishError
from study_desk.publication.publish import Leak, check_publication, find_leaks
from study_desk.study.study_folder import init_study

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
    return list(find_leaks([(file, f"fine\n{line}\n".encode())], FORBIDDEN, lambda name: False))


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
    assert [leak.problem[:10] for leak in find_leaks([(file, data)], FORBIDDEN, lambda name: False)] == ["is no text"]
    assert find_leaks([(file, data)], FORBIDDEN, lambda name: True) == ()


def test_a_check_alone_speaks_of_no_writing(tmp_path: Path) -> None:
    study = init_study(tmp_path / "study", "kiosk", [], ["C-1"])
    (tmp_path / "out").mkdir()
    (tmp_path / "out/README.md").write_text("coded by C-1\n")
    with pytest.raises(PublishError, match="out: not to be shared: the check has 1 hit:"):
        check_publication(study, tmp_path / "out", PublicationKey(tmp_path / "key.json"), NamesToRemove())
