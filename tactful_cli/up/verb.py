"""`tactful up`: start every node of a profile, and keep it running; `--install`: the systemd unit that does so."""

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from string import Template
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.config import ConfigError
from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from norm_monitor.judge.deployment_context import DeploymentContext
from norm_monitor.senses.sensor_offsets import SensorOffsets, listed
from tactful_cli.console import complain, err, out, print_json, print_table
from tactful_cli.extras import ROOT
from tactful_cli.up.init import ask, profile_of, profile_text, unused
from tactful_cli.up.input_check import ROBOT_PARAMETERS, CheckedInput, InputVerdict, check_inputs, inputs_of
from tactful_cli.up.profile import Profile, load, shipped
from tactful_cli.up.ros_tools import EffectiveParameters, Survey, effective_parameters, survey_topics
from tactful_cli.up.run import run
from tactful_cli.verb import single

NAME = "tactful.service"
# What a user types once the unit is written, and before its file is removed.
ENABLE = (
    "systemctl --user daemon-reload",
    f"systemctl --user enable --now {NAME}",
    "sudo loginctl enable-linger $USER",
)
DISABLE = (f"systemctl --user disable --now {NAME}",)

# Settings of the shell that `up --install` runs in, without which the service would not meet the robot's topics.
_KEPT = (
    "CYCLONEDDS_URI",
    "FASTDDS_DEFAULT_PROFILES_FILE",
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "RMW_IMPLEMENTATION",
    "ROS_AUTOMATIC_DISCOVERY_RANGE",
    "ROS_DISCOVERY_SERVER",
    "ROS_DOMAIN_ID",
    "ROS_LOCALHOST_ONLY",
    "ROS_LOG_DIR",
    "ROS_STATIC_PEERS",
    "TACTFUL_HOME",
    "TACTFUL_MODELS",
    "TACTFUL_WEIGHTS",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
)


def unit_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the user's systemd finds the unit."""
    return Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config", "systemd/user", NAME)


def unit_text(profile: str, environment: Mapping[str, str] = os.environ, options: Sequence[str] = ()) -> str:
    """Fill the unit for a profile from the shell's environment; raise TactfulError for what a unit cannot hold."""
    profile = str(Path(profile).absolute()) if Path(profile).is_file() else profile
    command = [*_program(), "up", profile, *options]
    if setup_file := _setup_file(environment):
        command = ["/bin/bash", "-c", '. "$0" && exec "$@"', str(setup_file), *command]
    kept = [f"{name}={environment[name]}" for name in _KEPT if environment.get(name)]
    return Template(shipped_file("tactful_cli", NAME).read_text(encoding="utf-8")).substitute(
        profile=_escaped(profile).replace("$$", "$"),
        command=" ".join(_quoted(word) for word in command),
        environment="\n".join(f"Environment={_quoted(each).replace('$$', '$')}" for each in kept),
    )


def _program() -> Sequence[str]:
    """Return the checkout's own script, or the command of the environment that this is installed in."""
    script = ROOT / "tactful"
    return [str(script if script.is_file() else Path(sys.prefix, "bin/tactful"))]


def _setup_file(environment: Mapping[str, str]) -> Path | None:
    """Return the setup file of the workspace or ROS that the shell has sourced; packaged ROS has none."""
    named = ":".join(environment.get(name, "") for name in ("COLCON_PREFIX_PATH", "AMENT_PREFIX_PATH"))
    prefixes = [Path(each) for each in named.split(":") if each and Path(each) != Path(sys.prefix)]
    files = (prefix / name for prefix in prefixes for name in ("setup.bash", "setup.sh"))
    return next((file for file in files if file.is_file()), None)


def _quoted(word: str) -> str:
    return f'"{_escaped(word)}"'


def _escaped(word: str) -> str:
    """Write a word as systemd reads it back in quotes; a dollar counts only in a command."""
    if not word.isprintable():
        raise TactfulError(f"up: {word!r} has a character that a systemd unit cannot hold; rename it")
    for special, escaped in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        word = word.replace(special, escaped)
    return word


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
    yes: Annotated[bool, typer.Option("--yes", help="With --init: ask nothing, take what fits best.")] = False,
    context: Annotated[
        DeploymentContext | None, typer.Option(help="With --init: where the robot works; else it is asked.")
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Write the systemd user unit that starts the profile with the robot.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --check: print only JSON.")] = False,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Log of all nodes; default: tactful-up.log among ROS's logs.")
    ] = None,
) -> None:
    """Start all nodes of a profile and keep them running, until Ctrl-C."""
    if check + init + install > 1:
        raise TactfulError("up: --check, --init and --install exclude each other; give one of them")
    if not profile:
        _list_profiles()
        complain("up: name a profile, or the file of one")
        raise typer.Exit(EXIT_BAD_INPUT)
    if importlib.util.find_spec("norm_nodes") is None and not install:
        raise TactfulError("up: the nodes are not installed; run it in a checkout, or source your workspace")
    if init:
        if code := _init(Path(profile), context, ask_nothing=yes):
            raise typer.Exit(code)
        return
    loaded = load(profile, namespace)
    if check:
        if not as_json:
            err.print("Looking at the topics for some seconds.")
        code = _check(loaded, survey_topics(), as_json=as_json)
    elif install:
        code = _install(profile, namespace)
    else:
        code = run(loaded, log)
    if code:
        raise typer.Exit(code)


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


def _init(path: Path, context: DeploymentContext | None, *, ask_nothing: bool) -> int:
    """Write a profile, and check it; return what the check does."""
    if path.suffix not in {".yaml", ".yml"}:
        raise TactfulError(f"up: {path}: name the file to write, such as my_robot.yaml")
    if path.exists():
        raise TactfulError(f"{path}: exists already; name another file, or remove it")
    if not ask_nothing and not sys.stdin.isatty():
        raise TactfulError("up: --init asks questions, and here is no terminal; add --yes and --context")
    err.print("Looking at the topics for some seconds.")
    survey = survey_topics()
    if ask_nothing:
        context = context or DeploymentContext.UNSPECIFIED
    choices = ask(survey, (lambda _, choices, default: default) if ask_nothing else _choose, context)
    write_atomic(path, profile_text(profile_of(choices, survey), choices, survey))
    code = _check(load(str(path)), survey)
    if others := unused(choices, survey):
        out.print(f"{count_of(len(others), 'topic')} not used, listed at the end of {path}")
    if choices.context is DeploymentContext.UNSPECIFIED:
        out.print(UNSPECIFIED_CONTEXT)
    step = "mend what the table names in it or on the robot, and run --check on it" if code else "read it"
    out.print(f"{path} is written: {step}; then run {PROGRAM} up {path}")
    return code


def _choose(question: str, choices: Sequence[str], default: int) -> int:
    out.print(f"\n{escape(question)}")
    for number, choice in enumerate(choices, 1):
        out.print(f"  {number}  {escape(choice)}")
    number = 0
    while not 1 <= number <= len(choices):
        number = typer.prompt(f"Number from 1 to {len(choices)}", default=default + 1, type=int)
    return number - 1


def _install(profile: str, namespace: str) -> int:
    path = unit_path()
    options = ["--namespace", namespace] if namespace else []
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, unit_text(profile, options=options))
    out.print(f"{path} is written. To start it now and with the robot:")
    for line in ENABLE:
        out.print(f"  {line}")
    return 0
