"""`tactful models setup reader`: write the reader of talk from its base model and an adapter."""

from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from norm_core.engines.reader.reader_setup import time_reader, write_reader
from norm_core.models.catalogue import Catalogue
from norm_core.models.reader_folder import BASES, ReaderSize, is_written, read_manifest, reader_folder, shipped_adapter
from norm_core.models.store import Store
from norm_core.runtime.config import ConfigError
from norm_core.runtime.program import PROGRAM
from tactful_cli.console import err, out, print_json
from tactful_cli.models.add import pull


def set_up_reader(size: ReaderSize, adapter: Path | None, *, dry_run: bool, as_json: bool) -> None:
    """Carry out the steps that are not done; with `dry_run`, print them."""
    named = f" --adapter {adapter}" if adapter else ""
    adapter = adapter or shipped_adapter(size)
    if not adapter.is_file():
        raise ConfigError(
            f"--size {size}: no adapter of it is shipped; teach one (calibration/talk_reader/README.md) and name it "
            "with --adapter"
        )
    store, folder = Store(), reader_folder(size)
    base = Catalogue().manifest(BASES[size])
    is_pulled, is_done = store.found(base) is not None, is_written(folder, base.files[0].sha256, adapter)
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
            pull(base)
        source, _ = store.locate(base)
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
