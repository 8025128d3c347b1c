"""`tactful models setup reader`: write the talk reader from its base model and an adapter."""

import os
from pathlib import Path

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
from tactful_cli.console import complain, print_result, remark
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


def set_up_reader(size: ReaderSize, adapter: Path | None, *, as_json: bool) -> None:
    """Write the reader, unless it is written, and print its folder. Raises ConfigError without an adapter."""
    adapter = adapter or find_shipped_adapter(size)
    if not adapter.is_file():
        raise ConfigError(
            f"--size {size}: there is no shipped adapter; train one (calibration/talk_reader/README.md) and name it "
            "with --adapter"
        )
    base = _read_base_manifest(size)
    folder = find_reader_folder(size)
    is_new = not is_written(folder, base.files[0].sha256, adapter)
    if is_new:
        _write_reader(size, adapter)
    result = {"folder": str(folder), "base": base.name, "adapter": str(adapter), "new": is_new}
    manifest = read_manifest(folder)
    loss = f"8-bit weights differ by {manifest.weight_loss:.2%} from those that were merged" if manifest else ""
    print_result(result, loss, f"reader: {folder}{'' if is_new else ', as it was'}", as_json=as_json)


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
