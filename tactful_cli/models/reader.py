"""`tactful models setup reader`: write the talk reader from its base model and an adapter."""

import os
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from norm_core.engines.reader.reader_setup import write_reader
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import Manifest
from norm_core.models.reader_folder import (
    BASES,
    ReaderSize,
    find_reader_folder,
    find_shipped_adapter,
    is_written,
    read_manifest,
)
from norm_core.models.store import Store
from norm_core.runtime.config import ConfigError
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from tactful_cli.console import complain, out, print_json, remark
from tactful_cli.console import err as progress_console
from tactful_cli.models.add import pull_weights

# The name of the file that marks a failed attempt at a first run.
_FAILED = "reader.failed"


def provide_reader() -> None:
    """Write the small reader at a first run. If that fails, complain, and do not try again at the next run."""
    if os.environ.get("TACTFUL_READER") or any(read_manifest(find_reader_folder(size)) for size in ReaderSize):
        return
    failure_mark = Store().root / _FAILED
    if failure_mark.exists():
        return
    remark("tactful: making the talk reader, once: 98 MB to download (TACTFUL_READER=none leaves it out)")
    try:
        _write_reader(ReaderSize.SMALL, find_shipped_adapter(ReaderSize.SMALL))
    except TactfulError as error:
        again = f"; later, run {PROGRAM} models setup reader"
        complain(f"no talk reader, so fewer errors are flagged, and later: {error}{again}")
        failure_mark.parent.mkdir(parents=True, exist_ok=True)
        failure_mark.touch()


def set_up_reader(size: ReaderSize, adapter: Path | None, *, dry_run: bool, as_json: bool) -> None:
    """Carry out the steps that are not done; with `dry_run`, print them. Raises ConfigError without an adapter."""
    adapter_option = f" --adapter {adapter}" if adapter else ""
    adapter = adapter or find_shipped_adapter(size)
    if not adapter.is_file():
        raise ConfigError(
            f"--size {size}: there is no shipped adapter; train one (calibration/talk_reader/README.md) and name it "
            "with --adapter"
        )
    base = _read_base_manifest(size)
    folder = find_reader_folder(size)
    is_done = is_written(folder, base.files[0].sha256, adapter)
    is_pulled = is_done or Store().find(base) is not None
    if not dry_run and not is_done:
        _write_reader(size, adapter)
        is_pulled = is_done = True
    command = f"{PROGRAM} models setup reader --size {size}{adapter_option}"
    steps: list[dict[str, Any]] = [
        {"title": "pull the base model", "command": f"{PROGRAM} models add {base.name}", "done": is_pulled},
        {"title": "write the reader", "command": command, "done": is_done},
    ]
    if as_json:
        print_json({"folder": str(folder), "base": base.name, "adapter": str(adapter), "steps": steps})
        return
    for number, step in enumerate(steps, 1):
        suffix = ", done" if step["done"] else ""
        out.print(f"{number}. {step['title']}{suffix}\n   {step['command']}", soft_wrap=True, markup=False)
    if manifest := read_manifest(folder):
        out.print(f"8-bit weights differ by {manifest.weight_loss:.2%} from those that were merged", soft_wrap=True)
        out.print(f"reader: {folder}", soft_wrap=True, markup=False)


def _read_base_manifest(size: ReaderSize) -> Manifest:
    return Catalogue().read_manifest(BASES[size])


def _write_reader(size: ReaderSize, adapter: Path) -> None:
    """Download the base model, unless it is here, and write the reader."""
    base = _read_base_manifest(size)
    store = Store()
    if store.find(base) is None:
        pull_weights(base)
    source, _ = store.locate(base)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=progress_console) as progress:
        bar = progress.add_task("merging layers", total=None)
        write_reader(
            source / base.files[0].path,
            adapter,
            find_reader_folder(size),
            size=size,
            advance=lambda done, total: progress.update(bar, completed=done, total=total),
        )
