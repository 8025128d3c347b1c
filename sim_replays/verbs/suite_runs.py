"""`tactful bench run` and `bench score`: a suite by inspect_ai beside its control, and figures of its logs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import format_install_command
from sim_replays.items.target import SuiteError, read_predictions
from sim_replays.suites.report import report
from sim_replays.suites.report import to_plain as report_plain
from sim_replays.suites.suite import suite_called
from sim_replays.verbs.comparison import show_differences, show_report
from tactful_cli.console import err, print_json


def task_arguments(data: Path, named: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of a task; NAME=VALUE is read as inspect_ai reads it."""
    arguments: dict[str, Any] = {"data": str(data)}
    for argument in named:
        name, is_named, value = argument.partition("=")
        if not is_named:
            raise TactfulError(f"-T {argument}: is no NAME=VALUE; write it as -T setting=blind")
        arguments[name] = yaml.safe_load(value)
    return arguments


def run(
    suite: str, arguments: Mapping[str, Any], *, engine: str, model: str, dds: bool, hosts: int, limit: int, out: Path
) -> tuple[Path, Path]:
    """Run the robot, or a model alone, and its control on the same items. Returns both logs."""
    inspect_ai = import_inspect()
    from sim_replays.evals.controls import control  # noqa: PLC0415  only where inspect_ai is
    from sim_replays.evals.registry import suite_task  # noqa: PLC0415
    from sim_replays.evals.robot import robot  # noqa: PLC0415

    transport = "dds" if dds else "direct"
    solvers = {
        "robot": robot(engine=engine, transport=transport, hosts=hosts),
        "control": robot(engine=engine, selector="random", hosts=hosts),
    }
    if model:
        solvers = {"model": None, "control": control()}
    logs = []
    for name, solver in solvers.items():
        err.print(f"{suite}: {name}", soft_wrap=True)
        [log] = inspect_ai.eval(
            suite_task(suite, **arguments),
            solver=solver,
            model=model if name == "model" else "none",
            limit=limit or None,
            log_dir=str(out),
            display="plain" if err.is_terminal else "none",
            score_display=False,
        )
        if log.status != "success":
            reason = log.error.message if log.error else log.status
            raise SuiteError(f"{suite}: the {name} failed: {reason}; see {log.location}")
        logs.append(Path(log.location))
    return logs[0], logs[1]


def score(logs: Sequence[Path], control: Path | None, as_json: bool) -> None:
    """Print the figures of one log, beside its control; two logs are compared question by question too."""
    import_inspect()
    from sim_replays.evals.logs import compare, report_of, scored_run  # noqa: PLC0415

    runs = [scored_run(path) for path in logs]
    beside = scored_run(control) if control else None
    reports = [report_of(run, beside) for run in runs]
    differences = compare(*runs) if len(runs) == 2 else []
    if as_json:
        plain = [{"run": run.name, **report_plain(scored)} for run, (_, scored) in zip(runs, reports, strict=True)]
        print_json({"runs": plain, "tasks": to_plain(differences)} if differences else plain[0])
        return
    for run_of, (suite, scored) in zip(runs, reports, strict=True):
        name = beside.name if beside else ""
        show_report(suite, scored, answered_by=run_of.name, control=name, variant=run_of.asking)
    if differences:
        show_differences(runs[0].name, runs[1].name, differences)


def score_predictions(path: Path, suite: str, data: Path, as_json: bool) -> None:
    """Score predictions of a plain file."""
    chosen = suite_called(suite)
    targets = chosen.read(data, "default")
    show_report(chosen, report(chosen, targets, read_predictions(path, targets)), as_json)


def import_inspect() -> Any:
    """Import inspect_ai. Raises TactfulError where the extra is missing."""
    try:
        import inspect_ai  # noqa: PLC0415
    except ImportError as error:
        raise TactfulError(f"bench: inspect-ai is missing; run {format_install_command('bench')}") from error
    return inspect_ai
