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
    """What a step needs is not here; the message says what."""


@dataclass(frozen=True)
class Figure:
    """A value, beside a named peer or floor of the same run; `low` and `high` are the ratio's range over runs."""

    name: str
    value: float
    unit: str
    against: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of_runs(cls, name: str, unit: str, values: Sequence[float], against: str, ratios: Sequence[float]) -> "Figure":
        """Return the medians of several runs, and the range of their ratios."""
        low, ratio, high = (round(part(ratios), 3) for part in (min, statistics.median, max))
        value = round(statistics.median(values), 4)
        return cls(name=name, value=value, unit=unit, against=against, ratio=ratio, low=low, high=high)


class Report:
    """A step's figures and facts, on disk as soon as they are known, so that a step that is ended keeps them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content: dict[str, Any] = {"figures": [], "facts": {}}

    def add(self, *figures: Figure) -> None:
        """Add figures."""
        self._content["figures"] += map(asdict, figures)
        self._write()

    def note(self, **facts: Any) -> None:
        """Add what is no figure."""
        self._content["facts"] |= facts
        self._write()

    def end(self, outcome: str, reason: str = "") -> None:
        """State how the step ended."""
        self._content |= {"outcome": outcome, "reason": reason}
        self._write()

    def _write(self) -> None:
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self._content, default=str), encoding="utf-8")
        part.replace(self._path)


@dataclass(frozen=True)
class Step:
    """A part of a benchmark; it starts only if `least_s` are left of all the time there is."""

    name: str
    run: Callable[[Report], None]
    limit_s: float
    least_s: float = 0.0


def run_steps(steps: Iterable[Step], folder: Path, budget_s: float) -> dict[str, Any]:
    """Run each step within its limit and the budget; return by name how it ended, its seconds, figures and facts."""
    until_s = time.monotonic() + budget_s
    ended: dict[str, Any] = {}
    for step in steps:
        started_s = time.monotonic()
        left_s = until_s - started_s
        if left_s <= step.least_s:
            result: dict[str, Any] = {"outcome": "skipped", "reason": f"{max(left_s, 0):.0f} s were left"}
        else:
            result = _run(step, folder, min(step.limit_s, left_s))
        ended[step.name] = {"figures": [], "facts": {}} | result | {"seconds": round(time.monotonic() - started_s, 1)}
        reason = f": {result['reason']}" if result["reason"] else ""
        print(f"{step.name}: {result['outcome']}, {ended[step.name]['seconds']} s{reason}", file=sys.stderr, flush=True)
        if result["outcome"] == INTERRUPTED:
            break
    return ended


def _run(step: Step, folder: Path, limit_s: float) -> dict[str, Any]:
    path = folder / f"{step.name}.step"
    path.unlink(missing_ok=True)
    process = multiprocessing.get_context("fork").Process(target=_work, args=(step, path, folder / "steps.log"))
    process.start()
    stopped = {}
    try:
        process.join(limit_s)
        if process.is_alive():
            stopped = {"outcome": "timed out", "reason": f"not done in {limit_s:.0f} s"}
    except KeyboardInterrupt:  # which does not reach the step
        stopped = {"outcome": INTERRUPTED, "reason": "what ran before it is kept"}
    with suppress(ProcessLookupError):  # with all that the step started and left
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.kill()
    process.join()
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {"outcome": "failed", "reason": f"its process ended with code {process.exitcode}"} | content | stopped


def _work(step: Step, path: Path, log: Path) -> None:
    os.setsid()
    with log.open("a", encoding="utf-8") as written:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(written.fileno(), stream.fileno())
    print(f"== {step.name}", flush=True)
    report = Report(path)
    try:
        step.run(report)
    except SkippedError as error:
        report.end("skipped", str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001  a step tells its own fault
        traceback.print_exc()
        report.end("failed", f"{type(error).__name__}: {error}"[:500])
    else:
        report.end("ok")


def publish(name: str, machine: dict[str, Any], steps: dict[str, Any], out: Path) -> dict[str, Any]:
    """Write NAME.json, and return its content."""
    out.mkdir(parents=True, exist_ok=True)
    content = {
        "name": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "figures": [figure for step in steps.values() for figure in step["figures"]],
        "steps": {
            step: {key: value for key, value in result.items() if key != "figures"} for step, result in steps.items()
        },
    }
    (out / f"{name}.json").write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")
    return content


def show(content: dict[str, Any], out: Path, *, as_json: bool) -> int:
    """Print the figures; return 1 if a step failed or timed out, 130 if one was interrupted."""
    if as_json:
        print(json.dumps(content, default=str))
    else:
        for figure in content["figures"]:
            against = f"{figure['ratio']:g} times {figure['against']}" if figure["ratio"] is not None else ""
            between = f" ({figure['low']:g} to {figure['high']:g})" if figure["low"] is not None else ""
            print(f"{figure['name']:40} {figure['value']:>10g} {figure['unit']:14} {against}{between}")
    print(f"{out / content['name']}.json is written", file=sys.stderr)
    outcomes = {step["outcome"] for step in content["steps"].values()}
    return 130 if INTERRUPTED in outcomes else int(bool(outcomes & {"failed", "timed out"}))
