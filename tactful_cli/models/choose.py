"""`tactful models choose`, and `setup` of the reader: rank the models for this machine, or for a described one."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column, Table

from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import Manifest
from norm_core.models.planning.choices import ModelChoice, choose
from norm_core.models.planning.machine import Machine, read_machine
from norm_core.models.planning.survey import survey
from norm_core.models.reader_folder import BASES, ReaderSize, is_written, read_manifest, reader_folder, shipped_adapter
from norm_core.models.reader_setup import time_reader, write_reader
from norm_core.models.store import Store
from norm_core.runtime.config import ConfigError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from tactful_cli.console import complain, err, out, print_json, print_table
from tactful_cli.models.add import pull_with_progress
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


def set_up_reader(size: ReaderSize, adapter: Path | None, *, dry_run: bool, as_json: bool) -> None:
    """Carry out the steps that are not done; with `dry_run`, print them."""
    named = f" --adapter {adapter}" if adapter else ""
    adapter = adapter or shipped_adapter(size)
    if not adapter.is_file():
        raise ConfigError(
            f"--size {size}: no adapter of it is shipped; teach one (calibration/talk_reader/README.md) and name it "
            "with --adapter"
        )
    catalogue, store, folder = Catalogue(), Store(), reader_folder(size)
    base, beside = catalogue.manifest(BASES[size]), catalogue.path(BASES[size]).parent
    is_pulled, is_done = store.found(base, beside) is not None, is_written(folder, base.files[0].sha256, adapter)
    steps = [
        {"title": "pull the base model", "command": f"{PROGRAM} models add {base.name}", "done": is_pulled or is_done},
        {
            "title": "write the reader",
            "command": f"{PROGRAM} models setup reader --size {size}{named}",
            "done": is_done,
        },
    ]
    result: dict[str, Any] = {"folder": str(folder), "base": base.name, "adapter": str(adapter), "steps": steps}
    if not dry_run and not is_done:
        if not is_pulled:
            pull_with_progress(base.name)
        source, _ = store.locate(base, beside)
        with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=err) as progress:
            bar = progress.add_task("merging layers", total=None)
            write_reader(
                source / base.files[0].path,
                adapter,
                folder,
                size=size,
                advance=lambda done, total: progress.update(bar, completed=done, total=total),
            )
        for step in steps:
            step["done"] = True
    elif not dry_run:
        time_reader(folder)
    if as_json:
        print_json(result)
        return
    for number, step in enumerate(steps, 1):
        done = ", done" if step["done"] else ""
        out.print(f"{number}. {step['title']}{done}\n   {step['command']}", soft_wrap=True, markup=False)
    if manifest := read_manifest(folder):
        if manifest.line_s is not None:
            out.print(f"a line takes {manifest.line_s:.2f} s here", soft_wrap=True)
        out.print(f"8-bit weights differ by {manifest.weight_loss:.2%} from those that were merged", soft_wrap=True)
        out.print(f"reader: {folder}", soft_wrap=True, markup=False)
