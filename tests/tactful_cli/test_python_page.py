"""The Python reference page agrees with the packages."""

from tactful_cli.reference.python import page


def test_an_entry_gives_signature_docstring_and_fields() -> None:
    made = page()
    assert "Monitor(config: MonitorConfig, table: ThresholdTable, meaning: Meaning, clock: Clock, " in made
    assert "| `keep_hz` | `float` | `1.0` | frames per second of stamp time; " in made
    assert "| `deadline_ns` | `int \\| None` | `None` | None means no deadline, as in a lockstep replay |" in made
