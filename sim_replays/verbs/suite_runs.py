"""`tactful bench run` and `bench score`: a suite by inspect_ai beside its control, and figures of its logs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import ExtraMissingError, format_install_command
from sim_replays.items.target import SuiteError, read_predictions
from sim_replays.suites.report import make_report, report_to_plain
from sim_replays.suites.suite import find_suite
from sim_replays.verbs.comparison import show_differences, show_report
from tactful_cli.console import err, print_json, show


def read_task_arguments(data: Path, pairs: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of a task; NAME=VALUE is read as inspect_ai does."""
    arguments: dict[str, Any] = {"data": str(data)}
    for pair in pairs:
        name, equals_sign, value = pair.partition("=")
        if not equals_sign:
            raise TactfulError(f"-T {pair}: has no value; write NAME=VALUE, as in -T setting=blind")
        arguments[name] = yaml.safe_load(value)
    return arguments


def run(
    suite: str, arguments: Mapping[str, Any], *, engine: str, model: str, dds: bool, hosts: int, limit: int, out: Path
) -> tuple[Path, Path]:
    """Run the robot, or a model alone, and its control on the same items, and return both logs."""
    inspect_ai = import_inspect()
    from sim_replays.evals.controls import control  # noqa: PLC0415  only where inspect_ai is
    from sim_replays.evals.registry import make_suite_task  # noqa: PLC0415
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
            make_suite_task(suite, **arguments),
            solver=solver,
            model=model if name == "model" else "none",
            limit=limit or None,
            log_dir=str(out),
            display="plain" if err.is_terminal else "none",
            score_display=False,
        )
        if log.status != "success":
            reason = log.error.message if log.error else log.status
            raise SuiteError(f"{suite}: the run of the {name} failed: {reason}; see {log.location}")
        logs.append(Path(log.location))
    return logs[0], logs[1]


def score(logs: Sequence[Path], control: Path | None, as_json: bool) -> None:
    """Print the figures of logs, beside those of a control; two logs are also compared question by question."""
    import_inspect()
    from sim_replays.evals.logs import compare_runs, list_model_changes, make_run_report, read_run  # noqa: PLC0415

    runs = [read_run(path) for path in logs]
    control_run = read_run(control) if control else None
    reports = [make_run_report(run, control_run) for run in runs]
    differences = compare_runs(*runs) if len(runs) == 2 else []
    changes = list_model_changes(*runs) if len(runs) == 2 else []
    if as_json:
        fields = [{"run": run.name, **report_to_plain(report)} for run, (_, report) in zip(runs, reports, strict=True)]
        print_json({"runs": fields, "tasks": to_plain(differences), "notes": changes} if differences else fields[0])
        return
    control_name = control_run.name if control_run else ""
    for scored_run, (suite, report) in zip(runs, reports, strict=True):
        show_report(suite, report, answered_by=scored_run.name, control=control_name, variant=scored_run.asking)
    if differences:
        show_differences(runs[0].name, runs[1].name, differences)
    for change in changes:
        show(f"note: {change}")


def score_predictions(path: Path, suite: str, data: Path, as_json: bool) -> None:
    """Print the figures of a file of predictions."""
    loaded = find_suite(suite)
    targets = loaded.read_targets(data, "default")
    show_report(loaded, make_report(loaded, targets, read_predictions(path, targets)), as_json)


def import_inspect() -> Any:
    """Import inspect_ai. Raises ExtraMissingError where it is not installed."""
    try:
        import inspect_ai  # noqa: PLC0415
    except ImportError as error:
        raise ExtraMissingError(f"bench: inspect-ai is missing; run {format_install_command('bench')}") from error
    return inspect_ai
