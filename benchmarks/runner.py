"""Run steps in processes of their own, each with a time limit; write their figures as JSON, a history and a page."""

import html
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
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[1]
EGOGAPBENCH = Path(os.environ.get("TACTFUL_SHARED") or ROOT.parent / "shared", "data/egogapbench")
FELL_BY = 0.2
COMPARED_RUNS = 5
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
    better: Literal["less", "more"] = "less"

    @classmethod
    def of_runs(
        cls, name: str, unit: str, values: Sequence[float], against: str, ratios: Sequence[float], **more: Any
    ) -> "Figure":
        """Return the medians of several runs, and the range of their ratios."""
        low, ratio, high = (round(part(ratios), 3) for part in (min, statistics.median, max))
        value = round(statistics.median(values), 4)
        return cls(name=name, value=value, unit=unit, against=against, ratio=ratio, low=low, high=high, **more)


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
    """Write NAME.json, a line of history.jsonl and NAME.html; return the content, with what got worse by a fifth."""
    out.mkdir(parents=True, exist_ok=True)
    figures = [figure for step in steps.values() for figure in step["figures"]]
    history = out / "history.jsonl"
    lines = [json.loads(line) for line in history.read_text("utf-8").splitlines()] if history.is_file() else []
    earlier = [line for line in lines if (line["name"], line["machine"]) == (name, machine)]
    ended = {step: {key: value for key, value in result.items() if key != "figures"} for step, result in steps.items()}
    content = {
        "name": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "figures": figures,
        "worse": worse(figures, earlier),
        "steps": ended,
    }
    line = {key: content[key] for key in ("name", "date", "machine", "figures")}
    with history.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    (out / f"{name}.json").write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")
    (out / f"{name}.html").write_text(page(content, [*earlier, line]), encoding="utf-8")
    return content


def worse(figures: Sequence[dict[str, Any]], earlier: Sequence[dict[str, Any]]) -> list[str]:
    """Say which ratios are worse by a fifth than the median of the last runs on the same machine that have them."""
    lines = []
    for figure in figures:
        same = [old["ratio"] for line in earlier for old in line["figures"] if old["name"] == figure["name"]]
        known = [ratio for ratio in same if ratio][-COMPARED_RUNS:]
        before, now = statistics.median(known) if known else None, figure["ratio"]
        if before and now and (now / before if figure["better"] == "more" else before / now) <= 1 - FELL_BY:
            lines.append(f"{figure['name']}: {now:g} times {figure['against']}, and {before:g} before")
    return lines


def show(content: dict[str, Any], out: Path, *, as_json: bool) -> int:
    """Print the figures and what got worse; return 1 if a step failed or timed out, 130 if one was interrupted."""
    if as_json:
        print(json.dumps(content, default=str))
    else:
        for figure in content["figures"]:
            against = f"{figure['ratio']:g} times {figure['against']}" if figure["ratio"] is not None else ""
            between = f" ({figure['low']:g} to {figure['high']:g})" if figure["low"] is not None else ""
            print(f"{figure['name']:40} {figure['value']:>10g} {figure['unit']:14} {against}{between}")
    for line in content["worse"]:
        print(f"worse by a fifth: {line}", file=sys.stderr)
    print(f"{out / content['name']}.json, .html and history.jsonl are written", file=sys.stderr)
    outcomes = {step["outcome"] for step in content["steps"].values()}
    return 130 if INTERRUPTED in outcomes else int(bool(outcomes & {"failed", "timed out"}))


def page(content: dict[str, Any], lines: Sequence[dict[str, Any]]) -> str:
    """Draw the figures with their course over the runs, and how each step ended, as one HTML page."""
    rows = []
    for figure in content["figures"]:
        course = [f["ratio"] or f["value"] for line in lines for f in line["figures"] if f["name"] == figure["name"]]
        ratio = "" if figure["ratio"] is None else f"{figure['ratio']:g} times {figure['against']}"
        between = "" if figure["low"] is None else f"{figure['low']:g} to {figure['high']:g}"
        cells = (figure["name"], f"{figure['value']:g} {figure['unit']}", ratio, between)
        rows.append("".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + f"<td>{_curve(course)}</td>")
    ended = [
        f"<td>{html.escape(name)}</td><td>{step['outcome']}</td><td>{step['seconds']} s</td>"
        f"<td>{html.escape(step['reason'] or json.dumps(step['facts'], default=str))}</td>"
        for name, step in content["steps"].items()
    ]
    figures = _table(("figure", "value", "against a peer of the same run", "range", "over the runs here"), rows)
    steps = _table(("step", "outcome", "time", "facts"), ended)
    items = "".join(f"<li>{html.escape(line)}</li>" for line in content["worse"])
    fallen = f"<p>Worse by a fifth than before:</p><ul>{items}</ul>" if items else ""
    about = html.escape(", ".join(f"{key}: {value}" for key, value in content["machine"].items()))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Tactful: {content["name"]}</title>'
        "<style>body{font:15px sans-serif;margin:2em}td,th{padding:.2em 1em .2em 0;text-align:left;"
        "vertical-align:top;max-width:40em;overflow-wrap:anywhere}</style>"
        f"<h1>Tactful: {content['name']}</h1><p>{content['date']}. {about}.</p>{fallen}{figures}"
        f"<h2>Steps</h2>{steps}</html>\n"
    )


def _table(names: Sequence[str], rows: Sequence[str]) -> str:
    heads = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><tr>{heads}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _curve(values: Sequence[float]) -> str:
    """Draw the values from zero to their maximum, the oldest on the left."""
    top, last = max(map(abs, values)) or 1.0, max(len(values) - 1, 1)
    points = " ".join(f"{120 * at / last:.1f},{26 - 24 * value / top:.1f}" for at, value in enumerate(values))
    return (
        f'<svg width="124" height="28" role="img" aria-label="{", ".join(f"{value:g}" for value in values)}">'
        f'<polyline points="{points}" fill="none" stroke="#226" stroke-width="2"/>'
        f'<circle cx="{points.split()[-1].split(",")[0]}" cy="{points.split(",")[-1]}" r="2.5" fill="#226"/></svg>'
    )
