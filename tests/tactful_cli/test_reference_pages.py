"""Every generated page says what the code says now, and figures are those that pages share."""

import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from norm_core.runtime.errors import TactfulError
from tactful_cli.reference import figures
from tactful_cli.reference.__main__ import PAGES, ROS_PAGES, figure_files
from tactful_cli.reference.figures import fill, take_over

DOCS = Path(__file__).resolve().parents[2] / "docs"
CLAIMS_TO_SHIP = re.compile(r"\bships?\b|\bshipped reader\b|\bby default\b|\bdefault (?:reader|configuration)\b")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.ros if name in ROS_PAGES else ()) for name in PAGES]
)
def test_page_is_up_to_date(name: str) -> None:
    assert (DOCS / "reference" / name).read_text(encoding="utf-8") == PAGES[name](), (
        "run python -m tactful_cli.reference"
    )


def test_pages_and_plots_state_the_shared_figures() -> None:
    stale = [path.name for path, text in figure_files() if not path.exists() or path.read_text("utf-8") != text]
    assert stale == [], "run python -m tactful_cli.reference"


def test_a_marked_figure_is_replaced_by_the_shared_one() -> None:
    runs = {"temi": {"figures": {"f1": {"value": 32.4, "low": 26, "high": 37.6, "control": 14}}}}
    page = "- F1 <!--temi.f1-->{} {}, <!--temi.f1.control-->{} at random, and {} of these."
    assert fill(page.format("**31**", "[20, 30]", 13.0, 9), runs) == page.format("**32**", "[26, 38]", 14.0, 9)
    for unknown in ("<!--temi.recall-->3", "<!--scout.f1-->3", "<!--temi.f1--> high"):
        with pytest.raises(TactfulError, match="figure"):
            fill(unknown, runs)


def test_the_readme_states_no_figure_of_its_own() -> None:
    """Every number in a cell is a shared figure; a comment at the start of a line would hide the line."""
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert "<!--" in readme
    assert re.findall(r"\| \**[\d.]+.*", readme) == []
    pages = {path.name: path.read_text(encoding="utf-8") for path, _ in figure_files()}
    assert [name for name, text in pages.items() if re.search(r"^ {0,3}<!--\w", text, re.MULTILINE)] == []


def test_each_commit_that_is_named_is_in_the_history() -> None:
    """A commit that was rebased away cannot be checked out; a shallow clone has no history to ask."""
    if git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("no history here")
    named = {run["commit"]: name for name, run in figures.load()["runs"].items()}
    for page, text in figure_files():
        named |= dict.fromkeys(re.findall(r"commit\s+`([0-9a-f]{7,40})`", text), page.name)
    assert len(named) > 10
    history = git("rev-list", "HEAD").split()
    unknown = {commit: name for commit, name in named.items() if not any(full.startswith(commit) for full in history)}
    assert unknown == {}


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=DOCS, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def test_no_page_says_that_a_reader_ships_which_does_not() -> None:
    """A figure of a reader of before stands in no paragraph, item or row that says "ships" or "by default"."""
    shared = figures.load()
    shipped = shared["shipped_reader"]
    adapter = (DOCS.parent / "norm_core/models/reader_small.safetensors").read_bytes()
    assert hashlib.sha256(adapter).hexdigest() == shipped["sha256"], "figures.yaml names a reader of before"
    others = {name for name, run in shared["runs"].items() if run.get("reader", shipped["name"]) != shipped["name"]}
    assert "reader" in others
    assert [
        (page.name, statement)
        for page, text in figure_files()
        for statement in statements(text)
        if CLAIMS_TO_SHIP.search(statement) and others & set(re.findall(r"<!--(\w+)\.", statement))
    ] == []


def statements(text: str) -> Iterator[str]:
    """Yield paragraphs, list items, and rows with the head of their table and the paragraph before it."""
    for part in re.split(r"\n\n(?!\|)|\n(?=- )", text):
        before, _, table = part.partition("|")
        head, *rows = table.splitlines() or [""]
        yield from ("\n".join((before, head, row)) for row in rows or [""])


def test_a_new_run_replaces_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = {"value": 1, "low": 0, "high": 2, "control": 1, "key": "errors/f1", "control_key": "chance/error"}
    in_ends = {"value": 1, "low": 0, "high": 2, "key": "chance/error", "interval_key": "chance"}
    run = {
        "date": None,
        "within": "rows/part.language=en/level=keen",
        "figures": {"f1": figure, "by_chance": in_ends, "hand": {"value": 3}},
    }
    monkeypatch.setattr(figures, "FILE", tmp_path / "figures.yaml")
    figures.FILE.write_text(yaml.safe_dump({"runs": {"scripts": run}}), encoding="utf-8")
    rows = [
        {"part": {"language": language}, "level": level, "errors": {"f1": f1, "f1_interval": [f1 - 4, f1 + 4]},
         "chance": {"error": 12, "low": 11, "high": 13}}
        for language, level, f1 in (("zh", "keen", 62), ("en", "quiet", 29), ("en", "keen", 66))
    ]  # fmt: skip
    output = tmp_path / "run.json"
    output.write_text(json.dumps({"rows": rows}), encoding="utf-8")
    take_over("scripts", output)
    values = figures.load()["runs"]["scripts"]["figures"]
    assert values["f1"] == {**figure, "value": 66, "low": 62, "high": 70, "control": 12}
    assert values["by_chance"] == {**in_ends, "value": 12, "low": 11, "high": 13}
    assert values["hand"] == {"value": 3}
    assert re.search(r"f1: \{.*value: 66.0", figures.FILE.read_text(encoding="utf-8")), "a figure has one line"


@pytest.mark.parametrize(
    ("run_name", "output", "problem"),
    [
        ("sound", {"rows": []}, "sound: no such run"),
        ("scripts", {"rows": []}, "no single errors"),
        ("scripts", {"rows": [{"errors": {"f1": 1}}, {"errors": {"f1": 2}}]}, "errors/f1: no single errors"),
        ("scripts", [], "no single rows"),
    ],
)
def test_an_output_that_lacks_a_figure_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_name: str, output: object, problem: str
) -> None:
    monkeypatch.setattr(figures, "FILE", tmp_path / "figures.yaml")
    run = {"date": None, "figures": {"f1": {"value": 1, "key": "rows/errors/f1"}}}
    figures.FILE.write_text(yaml.safe_dump({"runs": {"scripts": run}}), encoding="utf-8")
    before = figures.FILE.read_text(encoding="utf-8")
    (tmp_path / "run.json").write_text(json.dumps(output), encoding="utf-8")
    with pytest.raises(TactfulError, match=problem):
        take_over(run_name, tmp_path / "run.json")
    assert figures.FILE.read_text(encoding="utf-8") == before
