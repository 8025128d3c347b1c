"""`tactful soak`: faults against the running nodes, hours of talk, or minutes of all nodes."""

import importlib.util
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand

from norm_core.runtime.errors import TactfulError
from tactful_cli.console import err, out, print_json, print_table, titled_table
from tactful_cli.soak.faults import FAULTS, RECOVERY_LIMIT_S, STATUS_LIMIT_S, FaultResult, run_fault
from tactful_cli.soak.hours import LIMITS, SHORTEST_H, SHORTEST_MIN, SoakReport, run_hours, run_minutes
from tactful_cli.verb import AsJson, single

app = single()

AT_ONCE = 2  # most faults mostly wait
HELD = {True: "held", False: "did not hold", None: "was not run"}


class Extent(StrEnum):
    """How many of the faults to run."""

    QUICK = "quick"
    ALL = "all"


class FaultsAlone(TyperCommand):
    """A command whose option `--faults` means all of them where no value follows; Any stands for click's context."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give the option its value."""
        for place in range(len(args), 0, -1):
            if args[place - 1] == "--faults" and (place == len(args) or args[place].startswith("-")):
                args.insert(place, Extent.ALL)
        return super().parse_args(ctx, args)


@app.command(cls=FaultsAlone)
def soak(
    faults: Annotated[
        Extent | None, typer.Option(help="Which faults: quick takes two minutes, all (or no value) five.")
    ] = None,
    only: Annotated[str, typer.Option(metavar="NAMES", help="Some faults by name, with commas between.")] = "",
    hours: Annotated[float, typer.Option(min=0, max=1000, help="Simulated hours of talk, a minute or two each.")] = 0.0,
    minutes: Annotated[float, typer.Option(min=0, max=10000, help="Real minutes of all nodes, 30 pictures/s.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Try what hurts: scripted faults against the nodes of `up`, hours of talk, or minutes of all nodes.

    Each fault has nodes and a ROS domain of its own. It holds if no recorded event is lost, the status says so within
    2 s, all nodes work again within 5 s, and memory stays bounded. A fault that does not hold gives exit code 1.
    A fault that cannot be made here, such as a read-only disk without root, is not run.
    """
    if sum(map(bool, (faults, only.strip(" ,"), hours, minutes))) != 1:
        raise TactfulError(
            "soak: give --faults, --faults quick or --only NAMES; or give --hours H or --minutes M alone"
        )
    if not hours and importlib.util.find_spec("norm_nodes") is None:
        raise TactfulError("soak: the nodes are not installed; run it in a checkout, or source your workspace")
    if hours or minutes:
        unit, run, length, shortest = (
            ("hours", run_hours, hours, SHORTEST_H) if hours else ("minutes", run_minutes, minutes, SHORTEST_MIN)
        )
        if not length >= shortest:
            raise TactfulError(f"soak: --{unit}: growth is seen in {shortest:g} {unit} and more; give {shortest:g}")
        report = run(length, lambda sample: err.print(f"{sample.hours:.2f} h, {sample.memory_mb:.0f} MB"))
        print_json(report.model_dump()) if as_json else _print_hours(report)
        raise typer.Exit(bool(report.grows))
    results = _run(_chosen(faults, only))
    if as_json:
        print_json({"faults": [result.model_dump() for result in results]})
    else:
        _print_faults(results)
    raise typer.Exit(any(result.held is False for result in results))


def _chosen(faults: Extent | None, only: str) -> Sequence[str]:
    names = [name.strip() for name in only.split(",") if name.strip()]
    if unknown := [name for name in names if name not in FAULTS]:
        raise TactfulError(f"soak: --only: there is no fault {unknown[0]}; the faults are {', '.join(FAULTS)}")
    return names or [name for name, fault in FAULTS.items() if faults is Extent.ALL or fault.quick]


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
        f"{sum(result.held is True for result in results)} of {len(results)} held. Limits: nothing lost, status in "
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
