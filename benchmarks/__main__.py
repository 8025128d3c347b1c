"""Measure what is claimed about speed, each figure beside a peer or floor of the same run.

python -m benchmarks [--quick] [--json] [--only PARTS] [--out FOLDER]; for models on a GPU: python -m benchmarks.gpu.
"""

import argparse
import importlib
import os
import platform
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.runner import ROOT, Report, Step, publish, run_steps, show

# Part, module and function, and the most seconds of a quick and of a whole run; without a quick one, it is left out.
PARTS = (
    ("window", "monitor.speed", "run", 45, 180),
    ("decision", "selector.speed", "run", 45, 120),
    ("memory", "nodes.memory", "run", 0, 300),
)
QUICK_S, WHOLE_S = 290.0, 2700.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts, write benchmark.json, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the parts that fit into five minutes, with fewer runs")
    parser.add_argument("--only", default="", help=f"some of {', '.join(name for name, *_ in PARTS)}, with commas")
    parser.add_argument("--out", type=Path, default=ROOT / "scratch/benchmark", help="folder of results")
    parser.add_argument("--json", action="store_true", help="print only JSON")
    options = parser.parse_args(arguments)
    only = set(filter(None, options.only.split(",")))
    if unknown := only - {name for name, *_ in PARTS}:
        parser.error(f"--only: no part {', '.join(sorted(unknown))}; name some of {', '.join(p[0] for p in PARTS)}")
    steps = []
    for name, module, function, quick_s, whole_s in PARTS:
        limit_s = quick_s if options.quick and name not in only else whole_s
        if limit_s and (not only or name in only):
            steps.append(Step(name, partial(_measure, module=module, function=function, quick=options.quick), limit_s))
    machine = {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "kind": "quick" if options.quick else "whole",
    }
    with TemporaryDirectory() as folder:
        ended = run_steps(steps, Path(folder), QUICK_S if options.quick else WHOLE_S)
    return show(publish("benchmark", machine, ended, options.out), options.out, as_json=options.json)


def _measure(report: Report, *, module: str, function: str, quick: bool) -> None:
    report.note(load_before=os.getloadavg()[0])
    getattr(importlib.import_module(f"benchmarks.{module}"), function)(report, quick=quick)
    report.note(load_after=os.getloadavg()[0])


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, so that no step survives
    sys.exit(main())
