"""The log of looks: each time the figure of record was measured, and what it was."""

import csv
from collections.abc import Mapping
from pathlib import Path

from norm_core.runtime.data_files import shipped_file

LOG = shipped_file("calibration", "looks.csv")
COLUMNS = (
    "date", "commit", "source", "material", "language", "sensitivity", "encounters",
    "errors_f1", "errors_low", "errors_high", "competences_f1", "competences_low", "competences_high",
    "false_errors_per_hour", "expected_calibration_error", "why",
)  # fmt: skip


def add_looks(rows: list[Mapping[str, object]], path: Path = LOG) -> None:
    """Add rows to the log, which nothing removes; the first row names the columns."""
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def looks(path: Path = LOG) -> list[dict[str, str]]:
    """Return every row of the log."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
