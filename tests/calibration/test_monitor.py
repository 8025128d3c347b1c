"""`python -m calibration.monitor` on a few encounters: it prints its figures, and logs them with a reason."""

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner, Result

from calibration import monitor
from calibration.leave_one_writer_out import EncounterSource, shipped_sources
from norm_core.runtime.errors import TactfulError
from norm_monitor.encounters.library import SPLITS
from tactful_cli.reference.figures import load, look_up

app = typer.Typer()
app.command()(monitor.measure)


def calibrate(*options: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, options)])


def few_sources(splits: object, *, by_sound: bool) -> list[EncounterSource]:
    """Return three encounters of each of three writers."""
    by_writer: dict[str, list[EncounterSource]] = {}
    for source in shipped_sources(["many_hands"], by_sound=by_sound):
        by_writer.setdefault(source.writer, []).append(source)
    return [source for own in list(by_writer.values())[:3] for source in own[:3]]


@pytest.mark.skipif("many_hands" not in SPLITS, reason="the encounters by many hands are not here")
def test_the_figures_are_printed_and_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "shipped_sources", few_sources)
    monkeypatch.setattr(monitor, "LOG", tmp_path / "looks.csv")
    result = calibrate("--why", "a trial", "--jobs", "1")
    assert result.exit_code == 0, result.stderr
    assert "9 encounters by 3 writers" in result.stderr
    run = load()["runs"]["scripts"]
    printed = look_up(json.loads(result.stdout), run["within"])
    keys = [figure[key] for figure in run["figures"].values() for key in ("key", "control_key") if key in figure]
    assert keys
    assert all(isinstance(look_up(printed, key), float) for key in keys), "the shared figures are looked up there"
    with (tmp_path / "looks.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(row["source"], row["why"]) for row in rows} == {("script", "a trial")}
    assert "rows were added to looks.csv" in result.stderr


def test_an_evaluation_needs_a_reason() -> None:
    error = calibrate().exception
    assert isinstance(error, TactfulError)
    assert "--why: each evaluation on the shipped encounters is logged" in str(error)


def test_a_reader_that_was_taught_every_writer_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened = SimpleNamespace(manifest=SimpleNamespace(size="small"))
    monkeypatch.setattr(monitor, "TalkReader", SimpleNamespace(open=lambda *_, **__: opened))
    monkeypatch.setattr(monitor, "find_readers_by_writer", lambda _: {})
    error = calibrate("--why", "a trial", "--reader", tmp_path).exception
    assert isinstance(error, TactfulError)
    assert "--reader: no reader was taught without a writer; teach one" in str(error)
