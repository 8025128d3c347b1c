"""`tactful models`: list models with their requirements, add and check their weights, and write the talk reader."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from norm_core.models.catalogue import Catalogue
from norm_core.models.estimate import estimate_download_mb
from norm_core.models.manifest import Manifest, Task
from norm_core.models.reader_folder import (
    BASES,
    ReaderSize,
    find_named_folder,
    find_reader_folder,
    find_shipped_adapter,
    read_manifest,
    resolve_reader_name,
)
from norm_core.models.store import Store, describe_source, find_damages
from norm_core.runtime.config import ConfigError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from tactful_cli.console import complain, err, out, print_json, print_table
from tactful_cli.verb_options import AsJson, make_group

app = make_group("List, add and check models, and write the talk reader.")


class WrittenModel(StrEnum):
    """A model that this computer writes from another one."""

    READER = "reader"


def complete_name(incomplete: str) -> list[str]:
    """List the models whose name starts with `incomplete`, for shell completion."""
    return [name for name in Catalogue().list_names() if name.startswith(incomplete)]


@app.command("list")
def list_models(
    model: Annotated[
        str,
        typer.Argument(
            metavar="[MODEL]",
            help="Model to show, with a check of the hashes of its files.",
            autocompletion=complete_name,
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """List every model with task, engine, size, memory, licence and whether its weights are here.

    For a named model, list missing or changed files, and exit with 1 if there are any.
    """
    if model:
        _show_model(model, as_json)
        return
    catalogue = Catalogue()
    store = Store()
    rows: list[dict[str, Any]] = []
    faults: list[str] = []
    for name in catalogue.list_names():
        try:
            rows.append(_make_row(catalogue, store, name))
        except ConfigError as error:
            faults.append(str(error))
    rows += [_make_reader_row(catalogue, size) for size in ReaderSize if find_shipped_adapter(size).is_file()]
    if as_json:
        print_json(rows)
    else:
        table = Table(Column("model", no_wrap=True), "task", "engine", "MB", "peak MB", "licence", "here")
        for row in rows:
            size = f"{'~' if row['size_estimated'] else ''}{row['size_mb']:.0f}" if row["size_mb"] else "?"
            peak = f"{row['peak_mb']:.0f}" if row["peak_mb"] else ""
            cells = (row["name"], row["task"], row["engine"], size, peak, row["licence"])
            table.add_row(*cells, row["installed"] or "no")
        print_table(table)
        err.print("~ estimated; peak MB: memory at work, if known. Which model for which robot: docs/how-to/models.md")
    for fault in faults:
        complain(fault)
    if faults:
        raise typer.Exit(1)


def _show_model(name: str, as_json: bool) -> None:
    """Show the manifest and state of one model; exit with 1 if its files differ from the lock."""
    catalogue = Catalogue()
    store = Store()
    manifest = catalogue.read_manifest(name)
    folder, lock = store.find(manifest) or (None, None)
    damages = find_damages(folder, lock) if folder and lock else {}
    plain: dict[str, Any] = {
        "manifest": manifest.model_dump(mode="json", exclude_defaults=True),
        "manifest_path": str(catalogue.find_path(name)),
        "folder": str(folder) if folder else None,
        "lock": lock.model_dump(mode="json") if lock else None,
        "damaged": damages,
    }
    if as_json:
        print_json(plain)
    else:
        table = Table("", name, show_lines=False)
        for key, value in plain["manifest"].items():
            if key not in ("files", "name"):
                table.add_row(key, _format_value(value))
        for file in lock.files if lock else manifest.files:
            table.add_row("file", f"{file.path}, {file.size_bytes / 1e6:.1f} MB\nsha256 {file.sha256}")
        if manifest.source.hub:
            table.add_row("revision", lock.revision if lock else "fixed by the first download")
        table.add_row("manifest at", plain["manifest_path"])
        table.add_row("weights at", plain["folder"] or _describe_missing_weights(manifest))
        print_table(table)
    if folder and damages:
        for path, damage in damages.items():
            complain(f"{name}: {folder / path} {damage}")
        complain(f"{name}: {store.describe_repair(manifest, folder)}")
        raise typer.Exit(1)


@app.command()
def add(
    source: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|URL",
            help="Name of a listed model, to download its weights; or the URL of the API of a server.",
            autocompletion=complete_name,
        ),
    ],
    *,
    name: Annotated[str, typer.Option(help="Name of the model; default: as on the server.")] = "",
    task: Annotated[Task | None, typer.Option(help="Use of the model on a server.")] = None,
    licence: Annotated[str, typer.Option(help="Licence of the model on a server.")] = "",
    served_model: Annotated[str, typer.Option(help="Name of the model on a server that has several.")] = "",
    api_key_variable: Annotated[str, typer.Option(help="Environment variable with the key of the server.")] = "",
    as_json: AsJson = False,
) -> None:
    """Download the weights of a listed model, or write the manifest of one that a server has.

    An interrupted download resumes. The first download locks the revision and hashes.
    """
    # A late import, because the network modules take a tenth of a second, which `list` does not need.
    from tactful_cli.models.add import StatedFields, add_model, pull_known_model  # noqa: PLC0415

    stated = StatedFields(
        name=name,
        task=task,
        licence=licence,
        served_model=served_model,
        api_key_variable=api_key_variable,
    )
    result = pull_known_model(source, stated) if source in Catalogue().list_names() else add_model(source, stated)
    if as_json:
        print_json(result)
        return
    if "manifest" in result:
        out.print(f"{result['name']}: {result['manifest_path']}", soft_wrap=True)
        for key, value in result["manifest"].items():
            if key != "name":
                text = f"{count_of(len(value), 'file')}, hashed" if key == "files" else _format_value(value)
                out.print(f"  {key}: {text}".replace("\n", ", "), soft_wrap=True)
    if "folder" in result:
        files = count_of(len(result["files"]), "file")
        out.print(f"{result['name']}: {files}, {result['size_mb']:.1f} MB in {result['folder']}", soft_wrap=True)
    for step in result.get("next", ()):
        out.print(f"next: {step}")


@app.command("setup")
def setup_model(
    name: Annotated[WrittenModel, typer.Argument(metavar="reader", help="The talk reader.")],
    size: Annotated[ReaderSize, typer.Option(help="Size of the reader.")] = ReaderSize.SMALL,
    adapter: Annotated[
        Path | None, typer.Option(exists=True, help="Its adapter; default: the shipped one of this size.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the talk reader: the small language model that rates the talk. Does nothing if it is written.

    Its base model is downloaded first.
    """
    from tactful_cli.models.reader import set_up_reader  # noqa: PLC0415  as above

    set_up_reader(size, adapter, as_json=as_json)


def _describe_missing_weights(manifest: Manifest) -> str:
    if manifest.source.url:
        return f"on the server {manifest.source.url}; check them there"
    if manifest.source.path:
        return f"not found at {manifest.source.path}; put them there"
    return f"not installed; run {PROGRAM} models add {manifest.name}"


def _make_row(catalogue: Catalogue, store: Store, name: str) -> dict[str, Any]:
    manifest = catalogue.read_manifest(name)
    folder, lock = store.find(manifest) or (None, None)
    size_bytes = sum(file.size_bytes for file in lock.files) if lock else manifest.size_bytes
    location = "pulled" if folder == store.folder_of(manifest) else "packaged" if manifest.source.packages else "folder"
    return {
        "name": name,
        "task": manifest.task.value,
        "engine": manifest.engine.value,
        "quantization": manifest.quantization,
        "size_mb": size_bytes / 1e6 if size_bytes is not None else estimate_download_mb(manifest) or None,
        "size_estimated": size_bytes is None,
        "peak_mb": manifest.memory.peak_mb if manifest.memory else None,
        "licence": manifest.licence,
        "source": describe_source(manifest),
        "installed": "served" if manifest.source.url else location if folder else "",
    }


def _make_reader_row(catalogue: Catalogue, size: ReaderSize) -> dict[str, Any]:
    """Return the row of a talk reader; until it is written, its size is that of its base model."""
    folder = find_reader_folder(size)
    manifest = read_manifest(folder)
    is_used = find_named_folder(resolve_reader_name()) == folder
    base = catalogue.read_manifest(BASES[size])
    size_bytes = sum(file.size_bytes for file in manifest.files) if manifest else base.size_bytes
    return {
        "name": f"reader, {size}",
        "task": "talk reader",
        "engine": "reader",
        "quantization": "int8",
        "size_mb": size_bytes / 1e6 if size_bytes else None,
        "size_estimated": manifest is None,
        "peak_mb": None,
        "licence": base.licence,
        "source": base.name,
        "installed": f"{folder}, {'used' if is_used else 'not used'}" if manifest else "",
    }


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_format_value(item)}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
