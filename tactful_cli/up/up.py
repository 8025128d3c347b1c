"""`tactful up`: start every node of a profile and keep it running, or write a profile from the published topics."""

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from norm_core.files.atomic_file import write_atomic
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from norm_monitor.judge.deployment_context import DeploymentContext
from tactful_cli.console import complain, err, out, print_json, print_table
from tactful_cli.up.access import TOOLS, enclave_environment, policy_of
from tactful_cli.up.input_check import (
    CheckedInput,
    InputVerdict,
    check_inputs,
)
from tactful_cli.up.profile import (
    Profile,
    Survey,
    effective_parameters,
    load,
    shipped,
    survey_topics,
)
from tactful_cli.up.run import run
from tactful_cli.up.topic_choice import build_profile, choose_parts, format_profile, list_unused
from tactful_cli.verb_options import make_app

app = make_app()

EXIT_NOT_WELL = 1
EXIT_BAD_INPUT = 2
UNSPECIFIED_CONTEXT = (
    "deployment_context: is unspecified, so no model infers emotions from pictures; home, public or health permits it. "
    "Without a judge that sees pictures, flags do not depend on it."
)


@app.command()
def up(  # noqa: PLR0917
    profile: Annotated[
        str,
        typer.Argument(
            metavar="[PROFILE]", help="Name or file of a profile; without one, list those that are shipped."
        ),
    ] = "",
    namespace: Annotated[
        str,
        typer.Option(help="Namespace of the robot's nodes and topics, for several robots in one ROS domain."),
    ] = "",
    check: Annotated[
        bool, typer.Option("--check", help="Start nothing; check the topics that the profile reads.")
    ] = False,
    init: Annotated[
        bool, typer.Option("--init", help="Write the file PROFILE from the topics that are published now.")
    ] = False,
    policy: Annotated[
        bool,
        typer.Option(
            "--policy",
            help="Only print the access that these nodes need, as an SROS2 policy. For that, they are configured for a "
            "moment on a domain of their own.",
        ),
    ] = False,
    context: Annotated[
        DeploymentContext, typer.Option(help="With --init: where the robot works.")
    ] = DeploymentContext.UNSPECIFIED,
    as_json: Annotated[bool, typer.Option("--json", help="With --check: print only JSON.")] = False,
    apart: Annotated[bool, typer.Option("--apart", help="Run each node in its own process.")] = False,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Log of all nodes; default: tactful-up.log among ROS's logs.")
    ] = None,
) -> None:
    """Start all nodes of a profile and keep them running, until Ctrl-C."""
    if check + init + policy > 1:
        raise TactfulError("up: --check, --init and --policy exclude each other; give one of them")
    if not profile:
        table = Table("profile", "what for")
        for name, about in shipped().items():
            table.add_row(name, escape(about))
        print_table(table)
        complain("up: name a profile, or the file of one")
        raise typer.Exit(EXIT_BAD_INPUT)
    if importlib.util.find_spec("norm_nodes") is None:
        raise TactfulError("up: the nodes are not installed; run it in a checkout, or source your workspace")
    if init:
        if code := _init(Path(profile), context):
            raise typer.Exit(code)
        return
    loaded = replace(load(profile, namespace), is_apart=apart)
    # The processes that survey the graph need it before the nodes run.
    os.environ |= enclave_environment(loaded.node_namespace, TOOLS)
    if policy:
        print(policy_of(loaded), end="")
        _warn_about_security()
        return
    if check:
        if not as_json:
            err.print("Looking at the topics for some seconds.")
        code = _check(loaded, survey_topics(), as_json=as_json)
    else:
        code = run(loaded, log)
    if code:
        raise typer.Exit(code)


def _warn_about_security() -> None:
    """Warn if a policy is not enforced, and say why."""
    if importlib.util.find_spec("sros2") is None:
        apt = f"ros-{os.environ.get('ROS_DISTRO', 'jazzy')}-sros2"
        complain(f"policy: not enforced: sros2 is not installed; install it with apt install {apt}")
    elif os.environ.get("ROS_SECURITY_ENABLE") != "true" or os.environ.get("ROS_SECURITY_STRATEGY") != "Enforce":
        complain("policy: not enforced: set ROS_SECURITY_ENABLE=true and ROS_SECURITY_STRATEGY=Enforce")


def _check(profile: Profile, survey: Survey, *, as_json: bool = False) -> int:
    """Print the state of each input. Return 2 for a bad profile, 1 for an input that cannot be read."""
    effective = effective_parameters(profile)
    for problem in effective.problems:
        complain(f"{profile.source}: {problem}")
    if effective.problems:
        return EXIT_BAD_INPUT
    checked = check_inputs(effective, survey, profile.node_namespace)
    faults = sum(row.is_fault for row in checked)
    # Without these models the nodes start nevertheless, and do less.
    absent_models = profile.model_problems()
    for problem in absent_models:
        complain(f"{profile.source}: {problem}")
    for warning in effective.warnings:
        complain(f"{profile.source}: {warning}")
    if as_json:
        print_json([asdict(row) for row in checked])
    else:
        _print_inputs(profile, checked, faults)
    return EXIT_BAD_INPUT if absent_models else EXIT_NOT_WELL if faults or effective.warnings else 0


def _print_inputs(profile: Profile, checked: Sequence[CheckedInput], faults: int) -> None:
    """Print a table of the inputs, and how many cannot be read."""
    table = Table("node", "brings", "topic", "", "found")
    colours = {
        InputVerdict.OK: "green",
        InputVerdict.QUIET: "yellow",
        InputVerdict.MISSING: "yellow",
        InputVerdict.WRONG: "bold red",
    }
    for row in checked:
        remedy = f"\n[bold]fix:[/] {escape(row.remedy)}" if row.remedy else ""
        verdict = f"[{colours[row.verdict]}]{row.verdict}[/]"
        table.add_row(row.input.node, row.input.brings, row.input.topic, verdict, escape(row.found) + remedy)
    if checked:
        print_table(table)
    summary = f"all {len(checked)} inputs can be read" if checked else "its nodes do not read a topic of the robot"
    if faults:
        summary = f"{count_of(faults, 'input')} of {len(checked)} cannot be read"
    out.print(f"{profile.source}: {summary}")


def _init(path: Path, context: DeploymentContext) -> int:
    """Write a profile and check it. Return the exit code of the check."""
    if path.suffix not in {".yaml", ".yml"}:
        raise TactfulError(f"up: {path}: name the file to write, such as my_robot.yaml")
    if path.exists():
        raise TactfulError(f"{path}: exists already; name another file, or remove it")
    err.print("Looking at the topics for some seconds.")
    survey = survey_topics()
    choices = choose_parts(survey, context)
    write_atomic(path, format_profile(build_profile(choices, survey), choices, survey))
    code = _check(load(str(path)), survey)
    if others := list_unused(choices, survey):
        out.print(f"{count_of(len(others), 'topic')} not used, listed at the end of {path}")
    if choices.context is DeploymentContext.UNSPECIFIED:
        out.print(UNSPECIFIED_CONTEXT)
    step = "fix what the table names in it or on the robot, and run --check on it" if code else "read it"
    out.print(f"{path} is written: {step}; then run {PROGRAM} up {path}")
    return code
