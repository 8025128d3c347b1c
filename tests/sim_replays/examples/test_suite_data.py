"""Folders made of encounters: in the layout, with what coders marked, and asked from end to end."""

import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sim_replays.examples import suite_data
from sim_replays.scenarios.library import encounters
from sim_replays.suites import hsri, videonorms
from sim_replays.suites.target import SuiteError
from tactful_cli.bench.group import app


def test_segments_are_what_is_marked_and_what_is_not(tmp_path: Path) -> None:
    count = suite_data.write("hsri", tmp_path / "made")
    segments = hsri.read(tmp_path / "made")
    of_kind = Counter(segment.kind.value for segment in segments)
    chosen = encounters(suite_data.SPLIT)[: suite_data.ENCOUNTERS]
    marked = Counter(event.polarity.value for encounter in chosen for event in encounter.events)
    assert count == len(segments)
    assert {kind: of_kind[kind] for kind in marked} == dict(marked)
    assert of_kind["none"] > 10
    events = {text for one in segments if one.kind.value != "none" for text in [one.rationale] if text}
    assert len(events) == sum(marked.values())
    assert all(
        {line.speaker for line in one.transcript} == {"agent", "user"} for one in segments if one.kind.value == "none"
    )


def test_norms_are_kept_or_broken_by_what_the_robot_said(tmp_path: Path) -> None:
    suite_data.write("videonorms", tmp_path / "made")
    found = videonorms.read(tmp_path / "made")
    assert {one.label.value for one in found} == {"adherence", "violation"}
    assert all(said in one.transcript for one in found for said in one.verbal)


def test_what_is_there_is_kept_and_a_public_suite_is_not_made_up(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SuiteError, match="holds something"):
        suite_data.write("hsri", tmp_path)
    with pytest.raises(SuiteError, match="cannot be made"):
        suite_data.write("hsri", tmp_path / "notes.txt/made")
    with pytest.raises(SuiteError, match="hsri, videonorms; egonormia is public"):
        suite_data.write("egonormia", tmp_path / "made")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(("suite", "column"), [("hsri", "error3_accuracy"), ("videonorms", "macro_f1")])
def test_an_example_is_asked_and_scored(tmp_path: Path, suite: str, column: str) -> None:
    data = str(tmp_path / "made")
    assert CliRunner().invoke(app, ["example", suite, data]).exit_code == 0
    asked = ["run", suite, "--data", data, "--setting", "text", "--out", str(tmp_path / "run"), "--limit", "4"]
    shown = CliRunner().invoke(app, [*asked, "--transport", "direct", "--json"], catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    assert column in json.loads(shown.stdout)
