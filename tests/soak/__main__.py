"""Try what hurts: python -m tests.soak (--faults quick|all | --only NAMES | --hours H | --minutes M) [--json].

Each fault has nodes of `up`, a ROS domain and a robot of its own. It holds if no recorded event is lost, the status
says so within 2 s, all nodes work again within 5 s, and memory stays bounded. The exit
code is 1 if a fault does not hold or something grows.
"""

import argparse
import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from rich.markup import escape

from norm_core.runtime.errors import TactfulError
from tactful_cli.console import err, out, print_json, print_table, titled_table
from tests.soak.faults import FAULTS, RECOVERY_LIMIT_S, STATUS_LIMIT_S, FaultResult, run_fault
from tests.soak.hours import LIMITS, SHORTEST_H, SHORTEST_MIN, SoakReport, run_hours, run_minutes

AT_ONCE = 2  # most faults mostly wait
HELD = {True: "held", False: "did not hold"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments name, print the result, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=(__doc__ or "").partition("\n\n")[2])
    extent = parser.add_mutually_exclusive_group(required=True)
    extent.add_argument("--faults", choices=["quick", "all"], help="quick takes two minutes, all five")
    extent.add_argument("--only", type=_fault_names, metavar="NAMES", help="faults by name, with commas between")
    extent.add_argument("--hours", type=float, help=f"simulated hours of talk, {SHORTEST_H:g} at least")
    extent.add_argument("--minutes", type=float, help=f"real minutes of all nodes, {SHORTEST_MIN:g} at least")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    for length, shortest in ((options.hours, SHORTEST_H), (options.minutes, SHORTEST_MIN)):
        if length is not None and not length >= shortest:
            parser.error(f"growth shows from {shortest:g} on; give {shortest:g} or more")
    if options.faults or options.only:
        chosen = options.only or [name for name, fault in FAULTS.items() if options.faults == "all" or fault.quick]
        results = _run(chosen)
        if options.json:
            print_json({"faults": [result.model_dump() for result in results]})
        else:
            _print_faults(results)
        return int(not all(result.held for result in results))
    run, length = (run_minutes, options.minutes) if options.hours is None else (run_hours, options.hours)
    report = run(length, lambda sample: err.print(f"{sample.hours:.2f} h, {sample.memory_mb:.0f} MB"))
    print_json(report.model_dump()) if options.json else _print_hours(report)
    return int(bool(report.grows))


def _fault_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in FAULTS] or ([] if names else ["of no name"]):
        raise argparse.ArgumentTypeError(f"there is no fault {unknown[0]}; the faults are {', '.join(FAULTS)}")
    return names


def _run(names: Sequence[str]) -> list[FaultResult]:
    """Run faults, some at once, each in a process whose environment names its ROS domain; keep their order."""
    results: dict[str, FaultResult] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            for done in as_completed([pool.submit(_run_apart, name) for name in names]):
                result = done.result()
                results[result.name] = result
                err.print(f"{len(results)} of {len(names)}: {result.name} {HELD[result.held]}")
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C, no other fault begins
    return [results[name] for name in names]


def _run_apart(name: str) -> FaultResult:
    """Run a fault in a process of its own, whose end takes no other fault with it."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(run_fault, name).result()
        except BrokenProcessPool:
            return FaultResult(name=name, held=False, why="the process that ran it was killed; run it again alone")


def _print_faults(results: Sequence[FaultResult]) -> None:
    table = titled_table("Faults", "fault", "result", "why", numbers=("lost", "status s", "recovery s", "grew MB"))
    for result in results:
        times = ["-" if value is None else f"{value:.1f}" for value in (result.status_s, result.recovery_s)]
        table.add_row(
            result.name, HELD[result.held], escape(result.why), str(result.lost), *times, f"{result.memory_mb:.0f}"
        )
    print_table(table)
    out.print(
        f"{sum(result.held for result in results)} of {len(results)} held. Limits: nothing lost, status in "
        f"{STATUS_LIMIT_S:.0f} s, recovery in {RECOVERY_LIMIT_S:.0f} s"
    )


def _print_hours(report: SoakReport) -> None:
    table = titled_table("Talk", numbers=("hours", "memory MB", "handles", "threads", "latency ms", "flags"))
    for sample in report.samples:
        table.add_row(*(f"{value:g}" for value in sample.model_dump(exclude={"memory_by_process"}).values()))
    print_table(table)
    last = report.samples[-1].memory_by_process
    for nodes, first_mb in report.samples[0].memory_by_process.items():
        out.print(f"{nodes}: {first_mb:.0f} MB at first, {last.get(nodes, 0):.0f} MB at the end")
    for name, percent in report.growth_percent_an_hour.items():
        out.print(f"{name}: {percent:+.2f} % an hour after the warm-up; limit {LIMITS[name]:g} %")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TactfulError as error:
        sys.exit(f"soak: {error}")
