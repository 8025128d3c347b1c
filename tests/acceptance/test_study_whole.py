"""A whole study through its commands: three coders in rotating pairs, two conditions, withdrawal and expiry."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_study_coding import study

CODERS = ("C-1", "C-2", "C-3")
SECONDS = 60
# By session: its condition, and where each of its two coders heard an error of engagement, in seconds.
CODINGS: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "S1": ("quiet", {"C-1": (5, 20, 41), "C-2": (5, 20, 44)}),
    "S2": ("chatty", {"C-2": (10, 30), "C-3": (11, 30, 50)}),
    "S3": ("quiet", {"C-3": (7, 27), "C-1": (7, 27)}),
    "S4": ("chatty", {"C-1": (), "C-2": (15,)}),
    "S5": ("quiet", {"C-2": (3, 33, 53), "C-3": (3, 35, 53)}),
    "S6": ("chatty", {"C-3": (), "C-1": ()}),
}
LASTS_S = 2


def eaf(path: Path, starts_s: tuple[int, ...]) -> Path:
    """Write what ELAN would save, in its order of elements."""
    slots, annotations = "", ""
    for number, start_s in enumerate(starts_s):
        slots += f'<TIME_SLOT TIME_SLOT_ID="ts{2 * number}" TIME_VALUE="{start_s * 1000}"/>'
        slots += f'<TIME_SLOT TIME_SLOT_ID="ts{2 * number + 1}" TIME_VALUE="{(start_s + LASTS_S) * 1000}"/>'
        annotations += (
            f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a{number}" TIME_SLOT_REF1="ts{2 * number}" '
            f'TIME_SLOT_REF2="ts{2 * number + 1}"><ANNOTATION_VALUE>x</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION>'
            "</ANNOTATION>"
        )
    path.write_text(
        '<?xml version="1.0" encoding="UTF-8"?><ANNOTATION_DOCUMENT AUTHOR="" DATE="2026-11-23T00:00:00+00:00" '
        'FORMAT="3.0" VERSION="3.0"><HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/>'
        f"<TIME_ORDER>{slots}</TIME_ORDER>"
        f'<TIER LINGUISTIC_TYPE_REF="t" TIER_ID="error engagement">{annotations}</TIER>'
        '<LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="t" TIME_ALIGNABLE="true"/></ANNOTATION_DOCUMENT>'
    )
    return path


def table(path: Path, starts_s: tuple[int, ...]) -> Path:
    rows = "".join(f"{start_s},{start_s + LASTS_S},Error,Engagement,minor\n" for start_s in starts_s)
    path.write_text("start_s,end_s,polarity,attribute,severity\n" + rows)
    return path


@pytest.fixture(scope="module")
def coded_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "library-2026"
    coders = [part for coder in CODERS for part in ("--coder", coder)]
    study("init", folder, "--condition", "quiet", "--condition", "chatty", *coders)
    study("participant", folder, "P-7K3MX", "--clips")
    plan = (folder / "study.yaml").read_text()
    sessions = "".join(
        f"  {name}: {{condition: {condition}, coders: [{', '.join(codings)}]}}\n"
        for name, (condition, codings) in CODINGS.items()
    )
    (folder / "study.yaml").write_text(plan.replace("sessions: {}\n", f"sessions:\n{sessions}"))
    for number, (name, (condition, codings)) in enumerate(CODINGS.items()):
        log = session_log(folder.parent / name, name, condition)
        study("add", folder, log)
        for coder, starts_s in codings.items():
            write, ending = (eaf, "eaf") if number % 2 else (table, "csv")
            study(
                "import", folder / "sessions" / name, write(folder.parent / f"x.{ending}", starts_s), "--coder", coder
            )
    return folder


def session_log(path: Path, name: str, condition: str) -> Path:
    study("example", path, "--session", name, "--condition", condition, "--minutes", "1", "--flags", "3")
    return path


@pytest.fixture
def own_study(coded_study: Path, tmp_path: Path) -> Path:
    """A copy to write on, in another place."""
    return shutil.copytree(coded_study, tmp_path / "moved")


def rows(folder: Path) -> list[dict[str, Any]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(study("agreement", folder, "--json", "--resamples", "20"))
    return found["rows"]


@pytest.fixture(scope="module")
def all_rows(coded_study: Path) -> list[dict[str, Any]]:
    return rows(coded_study)


def marks(name: str, coder: str) -> list[float]:
    starts_s = CODINGS[name][1].get(coder)
    if starts_s is None:
        return [float("nan")] * SECONDS
    touched = {start_s + more for start_s in starts_s for more in range(LASTS_S)}
    return [float(second in touched) for second in range(SECONDS)]


@pytest.mark.parametrize("condition", ["", "quiet", "chatty"])
def test_alpha_of_rotating_pairs_is_that_of_a_library(all_rows: list[dict[str, Any]], condition: str) -> None:
    package = pytest.importorskip("krippendorff", reason="krippendorff is not installed (it is in the test group)")
    chosen = [name for name, (of_session, _) in CODINGS.items() if condition in ("", of_session)]
    data = [[mark for name in chosen for mark in marks(name, coder)] for coder in CODERS]
    (row,) = [
        row
        for row in all_rows
        if (row["measure"], row["attribute"], row["condition"])
        == ("frame-level Krippendorff's alpha, any two coders", "engagement", condition)
    ]
    assert row["coders"] == list(CODERS)
    assert row["estimate"]["value"] == pytest.approx(package.alpha(data, level_of_measurement="nominal"), abs=1e-9)
    assert row["units"] == SECONDS * len(chosen)


def test_a_complete_study_owes_nothing_and_says_so(coded_study: Path) -> None:
    found = json.loads(study("status", coded_study, "--json"))
    assert found["complete"] is True
    assert {s["name"]: set(s["coded_by"]) for s in found["sessions"]} == {
        name: set(codings) for name, (_, codings) in CODINGS.items()
    }


def test_the_methods_paragraph_names_pairs_and_conditions(coded_study: Path) -> None:
    text = study("agreement", coded_study, "--methods", "--resamples", "20", "--seed", "3")
    assert "C-1 and C-2 2 (2.0 min); C-1 and C-3 2 (2.0 min); C-2 and C-3 2 (2.0 min)" in text
    assert "sessions by condition: chatty: 3, quiet: 3" in text
    assert "(seed 3)" in text


def test_a_withdrawal_of_words_reaches_every_log_and_export(
    own_study: Path, all_rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    inside, outside = own_study / "exports/S1.csv", tmp_path / "S1.csv"
    for file in (inside, outside):
        study("export", own_study / "sessions/S1", "--form", "csv", "-o", file)
    told = study("withdraw", own_study, "P-7K3MX", "--words", code=1)
    assert f"{outside}: is not reached from here; erase it yourself" in told
    outside.unlink()
    done = json.loads(study("withdraw", own_study, "P-7K3MX", "--words", "--json"))
    assert done["entries"].keys() == CODINGS.keys()
    assert not any(done["outputs"].values())
    assert not inside.exists()
    assert (
        "looking for a book about whales"
        not in "".join(path.read_text() for path in own_study.rglob("*.jsonl")).lower()
    )
    assert rows(own_study) == all_rows  # no label and no flag is lost
    assert json.loads(study("status", own_study, "--json"))["sessions"][0]["participants"] == {"P-7K3MX": ["clips"]}


def test_erasing_a_participant_empties_every_session(own_study: Path) -> None:
    study("withdraw", own_study, "P-7K3MX", "--everything")
    status = json.loads(study("status", own_study, "--stored", "--json"))
    assert not {"utterance", "flag", "label"} & {item["kind"] for item in status["stored"]}
    assert {session["log"] for session in status["sessions"]} == {"emptied"}


def test_sessions_expire_after_the_days_of_the_study(own_study: Path) -> None:
    assert set(json.loads(study("withdraw", own_study, "--expired", "--json")).values()) == {0}
    plan = (own_study / "study.yaml").read_text()
    (own_study / "study.yaml").write_text(plan.replace("retention_days: 0", "retention_days: 1"))
    assert "its 1 day of retention ended" in study("status", own_study, code=1)
    counts = json.loads(study("withdraw", own_study, "--expired", "--json"))
    assert len(counts) == len(CODINGS)
    assert min(counts.values()) > 0


def test_who_is_unknown_to_the_study_is_refused(own_study: Path, tmp_path: Path) -> None:
    codings = table(tmp_path / "x.csv", (5,))
    refused = study("import", own_study / "sessions/S1", codings, "--coder", "C-9", code=2)
    assert "unknown coder C-9; study.yaml has C-1, C-2, C-3" in refused
    refused = study("withdraw", own_study, "P-9", "--words", code=2)
    assert "unknown participant P-9; study.yaml has P-7K3MX" in refused
    log = session_log(tmp_path / "S9", "S9", "loud")
    assert "unknown condition loud" in study("add", own_study, log, code=2)


def test_a_broken_study_file_is_told_with_its_line(own_study: Path) -> None:
    (own_study / "study.yaml").write_text("study: a\nsessions: {\n")
    for verb in ("status", "agreement", "verify"):
        assert "study.yaml, line 3" in study(verb, own_study, code=2)
