"""`tactful models choose`: rank the models by what is free on this computer."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Column, Table

from norm_core.models.catalogue import Catalogue
from norm_core.models.choices import ModelChoice, rank_models
from norm_core.models.machine import Machine, survey_machine
from norm_core.models.manifest import Manifest
from norm_core.models.store import Store
from norm_core.runtime.config import ConfigError
from norm_core.runtime.program import PROGRAM
from tactful_cli.console import complain, err, print_json, print_table
from tactful_cli.verb_options import AsJson


def complete_name(incomplete: str) -> list[str]:
    """List the models whose name starts with `incomplete`, for shell completion."""
    return [name for name in Catalogue().list_names() if name.startswith(incomplete)]


ModelName = Annotated[str, typer.Argument(metavar="MODEL", help="Name of a model.", autocompletion=complete_name)]


def choose_models(as_json: AsJson = False) -> None:
    """Rank the models that fit this machine, best first: on a GPU, with vision, then by size. The others come last."""
    machine = survey_this_machine()
    choices = rank_all(machine)
    if as_json:
        rows = [asdict(choice) | {"runs": choice.runs} for choice in choices]
        print_json({"machine": asdict(machine), "choices": rows})
        return
    err.print(describe_machine(machine), soft_wrap=True)
    for fault in machine.faults:
        complain(fault)
    table = Table(Column("model", no_wrap=True), "on", "peak MB", "free MB", "download MB", "obstacle")
    for choice in choices:
        free = f"{choice.free_mb:.0f}" if choice.free_mb else ""
        cells = (
            choice.model,
            choice.device,
            describe_memory(choice),
            free,
            f"{choice.download_mb:.0f}",
            choice.obstacle,
        )
        table.add_row(*cells)
    print_table(table)
    err.print(
        f"Measured: in a run of the project, or of {PROGRAM} models setup here; estimated: from the size of the model; "
        f"?: not known, {PROGRAM} models setup MODEL measures it. Which model for which robot: docs/how-to/models.md",
        soft_wrap=True,
    )


def describe_memory(choice: ModelChoice) -> str:
    """Return the memory at the peak, and whether it is estimated or measured."""
    return f"{choice.peak_mb:.0f} {'estimated' if choice.is_estimate else 'measured'}" if choice.peak_mb else "?"


def survey_this_machine() -> Machine:
    """Return this machine, with the disk of the weights."""
    return survey_machine(disk=Store().root)


def rank_all(machine: Machine) -> list[ModelChoice]:
    """Rank all models of the catalogue; complain about an unusable manifest, and leave it out."""
    catalogue = Catalogue()
    manifests: list[Manifest] = []
    for name in catalogue.list_names():
        try:
            manifests.append(catalogue.read_manifest(name))
        except ConfigError as error:
            complain(str(error))
    return rank_models(machine, manifests)


def describe_machine(machine: Machine) -> str:
    """Describe a machine in one line."""
    gpu = machine.gpu
    free_mb = machine.gpu_free_mb
    parts = [f"{gpu.name}{f', {free_mb:.0f} MB free' if free_mb else ''}" if gpu else "no GPU"]
    if len(machine.gpus) > 1:
        parts.append(f"the one of {len(machine.gpus)} GPUs with the most free memory")
    parts.append(f"{machine.ram_free_mb:.0f} MB of memory free" if machine.ram_free_mb else "")
    parts.append(f"{machine.disk_free_mb / 1e3:.0f} GB of disk free" if machine.disk_free_mb else "")
    return "; ".join(filter(None, parts))
