"""`tactful models choose`: rank the models for this machine, or for one that a file describes."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import Manifest
from norm_core.models.planning.choices import ModelChoice, choose
from norm_core.models.planning.machine import Machine, read_machine
from norm_core.models.planning.survey import survey
from norm_core.models.store import Store
from norm_core.runtime.config import ConfigError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from tactful_cli.console import complain, err, print_json, print_table
from tactful_cli.verb import AsJson


def known_names(incomplete: str) -> list[str]:
    """List the models whose name starts with `incomplete`, for shell completion."""
    return [name for name in Catalogue().names() if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(metavar="MODEL", help="Name of a model.", autocompletion=known_names)]


def choose_models(
    machine: Annotated[
        Path | None, typer.Option(exists=True, help="Description of another machine, as --json prints it.")
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Also show what cannot run here, and why.")] = False,
    as_json: AsJson = False,
) -> None:
    """Rank the models that fit this machine, best first: on a GPU, without a note, with sight, then by size."""
    computer = machine_of(machine)
    choices = rank(computer)
    if as_json:
        rows = [asdict(choice) | {"runs": choice.runs} for choice in choices]
        print_json({"machine": asdict(computer), "choices": rows})
        return
    err.print(describe(computer), soft_wrap=True)
    for fault in computer.faults:
        complain(fault)
    table = Table(Column("model", no_wrap=True), "on", "peak MB", "download MB", "note")
    shown = [choice for choice in choices if choice.runs or show_all]
    for choice in shown:
        download_mb = choice.download_mb + choice.installation.download_mb
        note = choice.obstacle or choice.caution
        table.add_row(choice.model, choice.device, memory_words(choice), f"{download_mb:.0f}", note)
    print_table(table)
    hidden = sum(not choice.runs for choice in choices)
    is_unknown = any(choice.peak_mb is None for choice in shown)
    err.print(
        f"Measured: in a run of the project, or of {PROGRAM} models setup here; estimated: from the model's size. "
        + (f"?: not known; {PROGRAM} models setup MODEL measures. " if is_unknown else "")
        + (f"{count_of(hidden, 'model')} cannot run here; --all shows why." if hidden and not show_all else ""),
        soft_wrap=True,
    )
    err.print(
        "As a judge: qwen2.5-coder-1.5b, asked cold, was little better than chance, and nobody measured a larger one; "
        "a strong model on a server reaches F1 88 for errors (docs/results/monitor.md).",
        soft_wrap=True,
    )


def memory_words(choice: ModelChoice) -> str:
    """Return the memory at the peak, and how it is known."""
    return f"{choice.peak_mb:.0f} {'estimated' if choice.is_estimate else 'measured'}" if choice.peak_mb else "?"


def machine_of(described: Path | None) -> Machine:
    """Return the described machine or this one."""
    return read_machine(described) if described else survey(disk=Store().root)


def rank(machine: Machine) -> list[ModelChoice]:
    """Rank all models of the catalogue; an unusable manifest is complained about and left out."""
    catalogue = Catalogue()
    manifests: list[Manifest] = []
    for name in catalogue.names():
        try:
            manifests.append(catalogue.manifest(name))
        except ConfigError as error:
            complain(str(error))
    return choose(machine, manifests)


def describe(machine: Machine) -> str:
    """Describe a machine in one line."""
    gpu = machine.gpu
    if gpu:
        free = f", {machine.gpu_free_mb:.0f} MB free" if machine.gpu_free_mb else ""
        shared = " shared with the CPU" if gpu.memory_mb is None and machine.jetson else ""
        parts = [f"{gpu.name}{free}{shared}", f"driver {gpu.driver}" if gpu.driver else ""]
        parts.append(f"compute capability {gpu.compute_capability}" if gpu.compute_capability else "")
        if len(machine.gpus) > 1:
            parts.append(f"the freest of {len(machine.gpus)} GPUs, as a model is loaded into one")
    else:
        parts = ["no GPU"]
    if machine.jetson:
        jetpack = machine.jetson.jetpack or "unknown"
        parts.append(f"Jetson Linux {machine.jetson.l4t or 'unknown'} (JetPack {jetpack})")
    parts.append(f"CUDA {machine.cuda}" if machine.cuda else "")
    parts += [machine.architecture, f"{machine.ram_free_mb:.0f} MB of memory free" if machine.ram_free_mb else ""]
    parts.append(f"{machine.disk_free_mb / 1e3:.0f} GB of disk free" if machine.disk_free_mb else "")
    return "; ".join(filter(None, parts))
