"""Show the progress of a pull on standard error."""

import os
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from norm_core.models.catalogue import Catalogue
from norm_core.models.download import DownloadSettings
from norm_core.models.pull import Origin, pull_model
from norm_core.models.store import Store
from tactful_cli.console import err


def pull_with_progress(name: str, mirror: str, folder: Path | None, timeout_s: float) -> dict[str, Any]:
    """Pull one model. Returns the values that the command prints."""
    manifest, store = Catalogue().manifest(name), Store()
    origin = Origin(
        mirror=mirror,
        folder=folder,
        settings=DownloadSettings(token=os.environ.get("HF_TOKEN", ""), timeout_s=timeout_s),
    )
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=err) as shown:
        bars: dict[str, TaskID] = {}

        def advance(path: str, done_bytes: int, total_bytes: int | None) -> None:
            if path not in bars:
                bars[path] = shown.add_task(f"{name}: {path}", total=total_bytes)
            shown.update(bars[path], completed=done_bytes)

        lock = pull_model(manifest, store, origin, advance)
    return {
        "name": name,
        "folder": str(store.folder(manifest)),
        "revision": lock.revision,
        "size_mb": sum(file.size_bytes for file in lock.files) / 1e6,
        "files": [file.model_dump() for file in lock.files],
    }
