"""Coders' work through the command line: what a coder found, and that a coder found nothing."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from norm_core.runtime.time import ReplayClock
from norm_monitor.session_log.schema import Participant
from norm_monitor.session_log.writer import StudyLog
from study_desk.study.erase import erase, plan_erasure
from tests.acceptance.coded_study import read_labels, study
from tests.study_session import START_NS, info, write_log

HEADER = "polarity,attribute,start_s,end_s\n"


def write_coding(path: Path, *starts_s: int) -> Path:
    path.write_text(HEADER + "".join(f"error,engagement,{start_s},{start_s + 1}\n" for start_s in starts_s))
    return path


def session(path: Path, name: str) -> Path:
    write_log(path, session=name, length_s=60, flags=0)
    return path


def measure_event_f1(*logs: Path) -> dict[tuple[str, ...], float | None]:
    """Over all kinds, within 1 s, by pair of coders."""
    rows = compare(*logs)["rows"]
    return {
        tuple(row["coders"]): row["estimate"]["value"]
        for row in rows
        if (row["measure"], row["tolerance_s"], row["attribute"]) == ("event F1", 1.0, "all")
    }


def compare(*logs: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(study("agreement", *logs, "--json", "--resamples", "5"))
    return result


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Ana and Bo agree on two errors in the first session; Ana alone marks three in the second."""
    folder = tmp_path_factory.mktemp("sessions")
    first, second = session(folder / "s1", "S1"), session(folder / "s2", "S2")
    for coder in ("Ana", "Bo"):
        study("import", first, write_coding(folder / "agreed.csv", 10, 20), "--coder", coder)
    study("import", second, write_coding(folder / "alone.csv", 10, 20, 30), "--coder", "Ana")
    return first, second


@pytest.fixture
def pair(logs: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """Copies to write on."""
    first, second = (shutil.copytree(log, tmp_path / log.name) for log in logs)
    return first, second


def test_agreement_names_uncoded_sessions(pair: tuple[Path, Path]) -> None:
    assert measure_event_f1(*pair)["Ana", "Bo"] == 1.0
    remarks = " ".join(compare(*pair)["remarks"])
    assert "Bo: no coding of session S2" in remarks
    assert "study import LOG --coder Bo --complete" in remarks


@pytest.mark.parametrize("way", ["a table with its header alone", "no file", "an ELAN file without annotations"])
def test_an_empty_coding_counts(pair: tuple[Path, Path], tmp_path: Path, way: str) -> None:
    """Two hits and three misses: F1 is 2 * 2 / (2 * 2 + 3)."""
    file: list[str | Path] = [write_coding(tmp_path / "nothing.csv")]
    if way == "no file":
        file = ["--complete"]
    elif way == "an ELAN file without annotations":
        file = [tmp_path / "nothing.eaf"]
        Path(file[0]).write_text('<ANNOTATION_DOCUMENT><TIER TIER_ID="error engagement"/></ANNOTATION_DOCUMENT>')
    assert study("import", pair[1], *file, "--coder", "Bo").startswith("coding by Bo complete: 0 labels\n")
    assert measure_event_f1(*pair)["Ana", "Bo"] == pytest.approx(4 / 7)
    assert "no coding" not in " ".join(compare(*pair)["remarks"])
    assert study("import", pair[1], *file, "--coder", "Bo").startswith("nothing new\n")
    checked = json.loads(study("status", pair[1], "--json"))
    assert (checked["sound"], checked["sealed"]) == (True, True)
    assert read_labels(pair[1], "Bo") == []


def test_an_erased_coding_does_not_count_as_empty(logs: tuple[Path, Path], tmp_path: Path) -> None:
    """A label that names a participant goes with the participant; its coder is not left as one who found nothing."""
    people = (Participant(pseudonym="P-1", person_ids=("p1",)), Participant(pseudonym="P-2", person_ids=("p2",)))
    second = tmp_path / "two"
    with StudyLog.begin(second, info("S3", participants=people), ReplayClock(START_NS)) as log:
        log.close(sealed=True)
    study("import", second, write_coding(tmp_path / "a.csv", 10, 20, 30), "--coder", "Ana")
    (tmp_path / "b.csv").write_text("polarity,attribute,start_s,end_s,comment\nerror,engagement,10,11,P-1 left\n")
    study("import", second, tmp_path / "b.csv", "--coder", "Bo", "--complete")
    assert measure_event_f1(logs[0], second)["Ana", "Bo"] == pytest.approx(6 / 8)
    erase(second, plan_erasure(second, "P-1"), ReplayClock(START_NS))
    assert json.loads(study("status", second, "--json"))["sound"]
    assert measure_event_f1(logs[0], second)["Ana", "Bo"] == 1.0
    assert "Bo: no coding of session S3" in " ".join(compare(logs[0], second)["remarks"])


def test_an_empty_form_needs_a_coder(pair: tuple[Path, Path], tmp_path: Path) -> None:
    empty = write_coding(tmp_path / "nothing.csv")
    assert "the coding names no coder; give --coder" in study("import", pair[1], empty, code=2)
    assert "has a coding by Ana already" in study("import", pair[1], empty, "--coder", "Ana", code=2)
    assert "give a FILE, or --complete" in study("import", pair[1], "--coder", "Bo", code=2)
