"""`tactful up`: start every node of a profile, and keep it running."""

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.config import ConfigError
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from norm_monitor.judge.deployment_context import DeploymentContext
from norm_monitor.senses.sensor_offsets import SensorOffsets, listed
from tactful_cli.console import complain, err, out, print_json, print_table
from tactful_cli.up.access import policy_of
from tactful_cli.up.init import chosen_parts, profile_of, profile_text, unused
from tactful_cli.up.input_check import ROBOT_PARAMETERS, CheckedInput, InputVerdict, check_inputs, inputs_of
from tactful_cli.up.profile import Profile, load, shipped
from tactful_cli.up.ros_tools import EffectiveParameters, Survey, effective_parameters, survey_topics
from tactful_cli.up.run import run
from tactful_cli.verb import single


def offset_problems(effective: EffectiveParameters, node_namespace: str) -> list[str]:
    """Say which named offsets cannot be loaded, or were measured on other topics."""
    inputs = inputs_of(effective.parameters, node_namespace)
    named = {node: str(parameters.get("sensor_offsets", "")) for node, parameters in effective.parameters.items()}
    problems = []
    try:
        for each in inputs:
            if each.node == "camera":
                SensorOffsets.camera_ns(named["camera"], each.topic)
    except ConfigError as error:
        problems.append(f"sensor_offsets of camera: {error}")
    try:
        SensorOffsets.robot_speech_ns(
            named.get("ears", ""), listed(each.topic for each in inputs if each.parameter in ROBOT_PARAMETERS)
        )
    except ConfigError as error:
        problems.append(f"sensor_offsets of ears: {error}")
    return problems


app = single()

EXIT_NOT_WELL, EXIT_BAD_INPUT = 1, 2
UNSPECIFIED_CONTEXT = (
    "deployment_context: is unspecified, so no model infers emotions from pictures; home, public or health permits it. "
    "Without a judge that sees pictures, flags do not depend on it."
)


@app.command()
def up(  # noqa: PLR0917
    profile: Annotated[
        str, typer.Argument(metavar="[PROFILE]", help="A shipped profile, or the file of one; none: list them.")
    ] = "",
    namespace: Annotated[
        str,
        typer.Option(help="Namespace of the robot, where several share a ROS domain: its nodes and topics lie in it."),
    ] = "",
    check: Annotated[
        bool, typer.Option("--check", help="Start nothing; say which topics bring what the profile reads.")
    ] = False,
    init: Annotated[
        bool, typer.Option("--init", help="Write the file PROFILE from the topics that are published now.")
    ] = False,
    policy: Annotated[
        bool, typer.Option("--policy", help="Start nothing; print the least access of these nodes as SROS2 policy.")
    ] = False,
    context: Annotated[
        DeploymentContext, typer.Option(help="With --init: where the robot works.")
    ] = DeploymentContext.UNSPECIFIED,
    as_json: Annotated[bool, typer.Option("--json", help="With --check: print only JSON.")] = False,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Log of all nodes; default: tactful-up.log among ROS's logs.")
    ] = None,
) -> None:
    """Start all nodes of a profile and keep them running, until Ctrl-C."""
    if check + init + policy > 1:
        raise TactfulError("up: --check, --init and --policy exclude each other; give one of them")
    if not profile:
        _list_profiles()
        complain("up: name a profile, or the file of one")
        raise typer.Exit(EXIT_BAD_INPUT)
    if importlib.util.find_spec("norm_nodes") is None:
        raise TactfulError("up: the nodes are not installed; run it in a checkout, or source your workspace")
    if init:
        if code := _init(Path(profile), context):
            raise typer.Exit(code)
        return
    loaded = load(profile, namespace)
    if policy:
        print(policy_of(loaded), end="")
        _complain_of_security()
        return
    if check:
        if not as_json:
            err.print("Looking at the topics for some seconds.")
        code = _check(loaded, survey_topics(), as_json=as_json)
    else:
        code = run(loaded, log)
    if code:
        raise typer.Exit(code)


def _complain_of_security() -> None:
    """Say why a policy is not enforced, if it is not."""
    if importlib.util.find_spec("sros2") is None:
        complain("policy: not enforced: sros2 is not installed; install it with apt install ros-jazzy-sros2")
    elif os.environ.get("ROS_SECURITY_ENABLE") != "true" or os.environ.get("ROS_SECURITY_STRATEGY") != "Enforce":
        complain("policy: not enforced: set ROS_SECURITY_ENABLE=true and ROS_SECURITY_STRATEGY=Enforce")


def _list_profiles() -> None:
    table = Table("profile", "what for")
    for name, about in shipped().items():
        table.add_row(name, escape(about))
    print_table(table)


def _check(profile: Profile, survey: Survey, *, as_json: bool = False) -> int:
    """Print which topics bring what; return 2 for a bad profile, 1 for an input that cannot be read."""
    effective = effective_parameters(profile)
    for problem in effective.problems:
        complain(f"{profile.source}: {problem}")
    if effective.problems:
        return EXIT_BAD_INPUT
    checked = check_inputs(effective, survey, profile.node_namespace)
    faults = sum(each.is_fault for each in checked)
    absent_models = profile.model_problems()  # with these the nodes start all the same, with less
    unusable = [*absent_models, *offset_problems(effective, profile.node_namespace)]
    for problem in unusable:
        complain(f"{profile.source}: {problem}")
    for warning in effective.warnings:
        complain(f"{profile.source}: {warning}")
    if as_json:
        print_json([asdict(each) for each in checked])
    else:
        _print_inputs(profile, checked, faults)
    return EXIT_BAD_INPUT if unusable else EXIT_NOT_WELL if faults or effective.warnings else 0


def _print_inputs(profile: Profile, checked: Sequence[CheckedInput], faults: int) -> None:
    table = Table("node", "brings", "topic", "", "found")
    colours = {
        InputVerdict.OK: "green",
        InputVerdict.QUIET: "yellow",
        InputVerdict.MISSING: "yellow",
        InputVerdict.WRONG: "bold red",
    }
    for each in checked:
        remedy = f"\n[bold]mend:[/] {escape(each.remedy)}" if each.remedy else ""
        verdict = f"[{colours[each.verdict]}]{each.verdict}[/]"
        table.add_row(each.input.node, each.input.brings, each.input.topic, verdict, escape(each.found) + remedy)
    if checked:
        print_table(table)
    well = f"all {len(checked)} inputs can be read" if checked else "its nodes read no topic of the robot"
    how = f"{count_of(faults, 'input')} of {len(checked)} not well" if faults else well
    out.print(f"{profile.source}: {how}")


def _init(path: Path, context: DeploymentContext) -> int:
    """Write a profile, and check it; return what the check does."""
    if path.suffix not in {".yaml", ".yml"}:
        raise TactfulError(f"up: {path}: name the file to write, such as my_robot.yaml")
    if path.exists():
        raise TactfulError(f"{path}: exists already; name another file, or remove it")
    err.print("Looking at the topics for some seconds.")
    survey = survey_topics()
    choices = chosen_parts(survey, context)
    write_atomic(path, profile_text(profile_of(choices, survey), choices, survey))
    code = _check(load(str(path)), survey)
    if others := unused(choices, survey):
        out.print(f"{count_of(len(others), 'topic')} not used, listed at the end of {path}")
    if choices.context is DeploymentContext.UNSPECIFIED:
        out.print(UNSPECIFIED_CONTEXT)
    step = "mend what the table names in it or on the robot, and run --check on it" if code else "read it"
    out.print(f"{path} is written: {step}; then run {PROGRAM} up {path}")
    return code
