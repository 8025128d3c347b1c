"""Prediction files for tests."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sim_replays.items.target import Target, read_predictions
from sim_replays.suites.report import Report, make_report
from sim_replays.suites.suite import Suite


def written(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def scored(suite: Suite, targets: list[Target], folder: Path, lines: Iterable[dict[str, Any]]) -> Report:
    """The report on the lines, by way of a file."""
    return make_report(suite, targets, read_predictions(written(folder / "answers.jsonl", lines), targets))


def right(targets: list[Target]) -> list[dict[str, Any]]:
    """A line for every question, all right."""
    return [
        {
            "id": target.id,
            "task": target.task,
            "answer": list(target.right) if target.several else target.right[0] if target.right else "text",
            "outcome": "answered",
        }
        for target in targets
    ]
