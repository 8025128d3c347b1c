"""The Python reference page agrees with the packages."""

from pathlib import Path

from tactful_cli.python_page import page

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/python.md"


def test_the_page_is_up_to_date() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "run ./tactful api"


def test_an_entry_gives_signature_docstring_and_fields() -> None:
    made = page()
    assert "Monitor(config: MonitorConfig, table: ThresholdTable, meaning: Meaning, clock: Clock)" in made
    assert "| `keep_hz` | `float` | `1.0` | frames per second of stamp time |" in made
    assert "| `deadline_ns` | `int \\| None` | `None` | None means no deadline, as in a lockstep replay |" in made
