"""Measure what is claimed about speed, each figure beside a peer or floor of the same run.

python -m benchmarks [--quick] [--json] [--only PARTS] [--out FOLDER]
"""

import argparse
import importlib
import os
import platform
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.runner import ROOT, Report, Step, print_figures, run_steps, write_results

MAX_QUICK_RUN_S = 290.0
MAX_WHOLE_RUN_S = 2700.0


@dataclass(frozen=True)
class Part:
    """A module of this folder; a part without a quick limit is left out of a quick run."""

    module: str
    max_quick_s: float | None
    max_whole_s: float


PARTS = (Part("window", 45, 180), Part("decision", 45, 120), Part("memory", None, 300))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts, write benchmark.json, and print the figures."""
    known_names = [part.module for part in PARTS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="run the parts that take five minutes, with fewer runs")
    parser.add_argument("--only", default="", help=f"names of parts, with commas: {', '.join(known_names)}")
    parser.add_argument("--out", type=Path, default=ROOT / "scratch/benchmark", help="folder of results")
    parser.add_argument("--json", action="store_true", help="print only JSON")
    options = parser.parse_args(arguments)
    chosen_names = set(filter(None, options.only.split(",")))
    if unknown_names := chosen_names - set(known_names):
        parser.error(f"--only: no part {', '.join(sorted(unknown_names))}; name some of {', '.join(known_names)}")
    steps = []
    for part in PARTS:
        is_chosen = part.module in chosen_names
        max_s = part.max_quick_s if options.quick and not is_chosen else part.max_whole_s
        if max_s and (is_chosen or not chosen_names):
            steps.append(Step(part.module, partial(_measure, module=part.module, quick=options.quick), max_s))
    machine = {
        "processor": _read_processor_name(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "kind": "quick" if options.quick else "whole",
    }
    with TemporaryDirectory() as folder:
        results = run_steps(steps, Path(folder), MAX_QUICK_RUN_S if options.quick else MAX_WHOLE_RUN_S)
    path = options.out / "benchmark.json"
    return print_figures(write_results(path, machine, results), path, as_json=options.json)


def _measure(report: Report, *, module: str, quick: bool) -> None:
    report.note(load_before=os.getloadavg()[0])
    importlib.import_module(f"benchmarks.{module}").run(report, quick=quick)
    report.note(load_after=os.getloadavg()[0])


def _read_processor_name() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, so that no step survives
    sys.exit(main())
