"""`tactful models choose`: which models fit beside what is free on this computer."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Column, Table

from norm_core.models.catalogue import Catalogue
from norm_core.models.choices import ModelChoice, choose
from norm_core.models.machine import Machine, survey
from norm_core.models.manifest import Manifest
from norm_core.models.store import Store
from norm_core.runtime.config import ConfigError
from norm_core.runtime.program import PROGRAM
from tactful_cli.console import complain, err, print_json, print_table
from tactful_cli.verb_options import AsJson


def known_names(incomplete: str) -> list[str]:
    """List the models whose name starts with `incomplete`, for shell completion."""
    return [name for name in Catalogue().names() if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(metavar="MODEL", help="Name of a model.", autocompletion=known_names)]


def choose_models(as_json: AsJson = False) -> None:
    """Rank the models that fit this machine, best first: on a GPU, with sight, then by size; then say what does not."""
    machine = survey_here()
    choices = rank(machine)
    if as_json:
        rows = [asdict(choice) | {"runs": choice.runs} for choice in choices]
        print_json({"machine": asdict(machine), "choices": rows})
        return
    err.print(describe(machine), soft_wrap=True)
    for fault in machine.faults:
        complain(fault)
    table = Table(
        Column("model", no_wrap=True), "on", "peak MB", "free MB", "download MB", "what keeps it from running"
    )
    for choice in choices:
        free = f"{choice.free_mb:.0f}" if choice.free_mb else ""
        cells = (choice.model, choice.device, memory_words(choice), free, f"{choice.download_mb:.0f}", choice.obstacle)
        table.add_row(*cells)
    print_table(table)
    err.print(
        f"Measured: in a run of the project, or of {PROGRAM} models setup here; estimated: from the model's size; ?: "
        f"not known, {PROGRAM} models setup MODEL measures. Which model for which robot: docs/how-to/models.md",
        soft_wrap=True,
    )


def memory_words(choice: ModelChoice) -> str:
    """Return the memory at the peak, and how it is known."""
    return f"{choice.peak_mb:.0f} {'estimated' if choice.is_estimate else 'measured'}" if choice.peak_mb else "?"


def survey_here() -> Machine:
    """Return this machine, with the disk of the weights."""
    return survey(disk=Store().root)


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
    gpu, free_mb = machine.gpu, machine.gpu_free_mb
    parts = [f"{gpu.name}{f', {free_mb:.0f} MB free' if free_mb else ''}" if gpu else "no GPU"]
    if len(machine.gpus) > 1:
        parts.append(f"the freest of {len(machine.gpus)} GPUs, as a model is loaded into one")
    parts.append(f"{machine.ram_free_mb:.0f} MB of memory free" if machine.ram_free_mb else "")
    parts.append(f"{machine.disk_free_mb / 1e3:.0f} GB of disk free" if machine.disk_free_mb else "")
    return "; ".join(filter(None, parts))
