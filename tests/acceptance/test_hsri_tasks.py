"""`tactful bench hsri-tasks`: the coded sessions of a study become the questions of HSRI's eight tasks."""

import json
from collections import Counter
from pathlib import Path

import pytest

from norm_core.records.flag import Attribute
from sim_replays.suites.hsri_segments import TASKS, draw_questions, read
from tests.acceptance.coded_study import study
from tests.command_line import tactful
from tests.study_session import write_log


@pytest.fixture
def coded_study(tmp_path: Path) -> Path:
    """A study of one session, with twelve errors and twelve competences; the first error lacks WHY => BETTER."""
    folder, log = tmp_path / "library-2026", tmp_path / "S1"
    study("init", folder, "--condition", "apology", "--coder", "C-1")
    study("participant", folder, "P-7K3MX")
    write_log(log, session="S1", length_s=600, flags=0)
    study("add", folder, log)
    lines = ["polarity,attribute,start_s,end_s,comment"]
    for number in range(24):
        kind, attribute = ("error", "competence")[number % 2], list(Attribute)[number % 7].value
        comment = f"It was wrong {number}. => Say {number} instead." if kind == "error" and number else ""
        lines.append(f"{kind},{attribute},{25 * number},{25 * number + 12},{comment}")
    (tmp_path / "c.csv").write_text("\n".join(lines))
    study("import", folder / "sessions/S1", tmp_path / "c.csv", "--coder", "C-1")
    return folder


def test_a_coded_study_becomes_the_eight_tasks(coded_study: Path, tmp_path: Path) -> None:
    out = tmp_path / "tasks"
    ended = tactful("bench", "hsri-tasks", coded_study, "--out", out)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("left out") == 1
    assert "S1-0 is an error without WHY => BETTER" in ended.stderr
    assert all(f"{task}: " in ended.stdout for task in TASKS)
    segments = [json.loads(line) for line in (out / "segments.jsonl").open()]
    assert Counter(segment["kind"] for segment in segments)["error"] == 11
    attributes_by_rationale = {segment.get("rationale", ""): segment.get("attributes") for segment in segments}
    for question in draw_questions(read(out)):
        if question.task == "rationale":
            [right_index] = question.right
            attributes = [attributes_by_rationale[option] for option in question.options]
            right = attributes.pop(right_index)
            assert right not in attributes
    uncoded = [segment["transcript"] for segment in segments if segment["kind"] == "none"]
    assert max(after["start_s"] - before["end_s"] for before, after in uncoded) < 12  # over no coded segment
    again = tactful("bench", "hsri-tasks", coded_study, "--out", out)
    assert (again.returncode, "exists already" in again.stderr) == (2, True), again.stderr


def test_words_without_consent_become_no_task(coded_study: Path, tmp_path: Path) -> None:
    tactful("study", "withdraw", coded_study, "P-7K3MX", "--words")
    refused = tactful("bench", "hsri-tasks", coded_study, "--out", tmp_path / "tasks")
    assert (refused.returncode, "S1 has no consent" in refused.stderr) == (2, True), refused.stderr
    assert not (tmp_path / "tasks").exists()
