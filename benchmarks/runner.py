"""Run steps in processes of their own, each with a time limit; write their figures as JSON, and print a table."""

import json
import multiprocessing
import os
import signal
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EGOGAPBENCH = Path(os.environ.get("TACTFUL_SHARED") or ROOT.parent / "shared", "data/egogapbench")
INTERRUPTED = "interrupted"


class SkippedError(Exception):
    """A requirement of a step is missing; the message names it."""


@dataclass(frozen=True)
class Figure:
    """A value beside a named peer or floor of the same run; `low` and `high` bound the ratio over all runs."""

    name: str
    value: float
    unit: str
    against: str
    ratio: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of_runs(cls, name: str, unit: str, values: Sequence[float], against: str, ratios: Sequence[float]) -> "Figure":
        """Return the medians of several runs, and the range of their ratios."""
        low, ratio, high = (round(measure(ratios), 3) for measure in (min, statistics.median, max))
        value = round(statistics.median(values), 4)
        return cls(name=name, value=value, unit=unit, against=against, ratio=ratio, low=low, high=high)


class Report:
    """The figures and facts of a step; each is written to disk at once, so that a stopped step keeps them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content: dict[str, Any] = {"figures": [], "facts": {}}

    def add(self, *figures: Figure) -> None:
        """Add figures."""
        self._content["figures"] += map(asdict, figures)
        self._write()

    def note(self, **facts: Any) -> None:
        """Add facts beside the figures."""
        self._content["facts"] |= facts
        self._write()

    def end(self, outcome: str, reason: str = "") -> None:
        """Write how the step ended."""
        self._content |= {"outcome": outcome, "reason": reason}
        self._write()

    def _write(self) -> None:
        temporary_path = self._path.with_suffix(".part")
        temporary_path.write_text(json.dumps(self._content, default=str), encoding="utf-8")
        temporary_path.replace(self._path)


@dataclass(frozen=True)
class Step:
    """A part of the benchmark with its time limit."""

    name: str
    run: Callable[[Report], None]
    max_s: float


def run_steps(steps: Iterable[Step], folder: Path, budget_s: float) -> dict[str, Any]:
    """Run each step within its limit and the budget; return outcome, seconds, figures and facts by step."""
    end_s = time.monotonic() + budget_s
    results: dict[str, Any] = {}
    for step in steps:
        started_s = time.monotonic()
        remaining_s = end_s - started_s
        if remaining_s <= 0:
            result: dict[str, Any] = {"outcome": "skipped", "reason": "no time was left"}
        else:
            result = _run_in_process(step, folder, min(step.max_s, remaining_s))
        spent_s = round(time.monotonic() - started_s, 1)
        results[step.name] = {"figures": [], "facts": {}} | result | {"seconds": spent_s}
        reason = f": {result['reason']}" if result["reason"] else ""
        print(f"{step.name}: {result['outcome']}, {spent_s} s{reason}", file=sys.stderr, flush=True)
        if result["outcome"] == INTERRUPTED:
            break
    return results


def _run_in_process(step: Step, folder: Path, max_s: float) -> dict[str, Any]:
    path = folder / f"{step.name}.step"
    process = multiprocessing.get_context("fork").Process(target=_run_step, args=(step, path, folder / "steps.log"))
    process.start()
    stop = {}
    try:
        process.join(max_s)
        if process.is_alive():
            stop = {"outcome": "timed out", "reason": f"not done in {max_s:.0f} s"}
    except KeyboardInterrupt:  # The step, in a session of its own, does not get the signal.
        stop = {"outcome": INTERRUPTED, "reason": "the figures so far are kept"}
    with suppress(ProcessLookupError):  # The group holds all processes that the step started.
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.kill()
    process.join()
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {"outcome": "failed", "reason": f"its process ended with code {process.exitcode}"} | content | stop


def _run_step(step: Step, path: Path, log_path: Path) -> None:
    os.setsid()
    with log_path.open("a", encoding="utf-8") as log:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(log.fileno(), stream.fileno())
    print(f"== {step.name}", flush=True)
    report = Report(path)
    try:
        step.run(report)
    except SkippedError as error:
        report.end("skipped", str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001  a step may raise anything, and the next one runs
        traceback.print_exc()
        report.end("failed", f"{type(error).__name__}: {error}"[:500])
    else:
        report.end("ok")


def write_results(path: Path, machine: dict[str, Any], results: dict[str, Any]) -> dict[str, Any]:
    """Write the results as JSON, and return the content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "name": path.stem,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "figures": [figure for result in results.values() for figure in result["figures"]],
        "steps": {
            name: {key: value for key, value in result.items() if key != "figures"} for name, result in results.items()
        },
    }
    path.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")
    return content


def print_figures(content: dict[str, Any], path: Path, *, as_json: bool) -> int:
    """Print the figures; return 1 if a step failed or timed out, 130 if one was interrupted."""
    if as_json:
        print(json.dumps(content, default=str))
    else:
        for figure in content["figures"]:
            bounds = f" ({figure['low']:g} to {figure['high']:g})" if figure["low"] is not None else ""
            print(
                f"{figure['name']:40} {figure['value']:>10g} {figure['unit']:14} "
                f"{figure['ratio']:g} times {figure['against']}{bounds}"
            )
    print(f"{path} is written", file=sys.stderr)
    outcomes = {step["outcome"] for step in content["steps"].values()}
    return 130 if INTERRUPTED in outcomes else int(bool(outcomes & {"failed", "timed out"}))
