"""`tactful models`: list models with their requirements, and add and check their weights."""

from typing import Annotated, Any

import typer
from rich.table import Column, Table

from norm_core.models.catalogue import Catalogue
from norm_core.models.choices import weights_mb
from norm_core.models.manifest import Manifest, Task
from norm_core.models.store import Store, describe_source, find_damages
from norm_core.runtime.config import ConfigError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from tactful_cli.console import complain, err, out, print_json, print_table
from tactful_cli.models.choose import choose_models, known_names
from tactful_cli.models.send import send_batch
from tactful_cli.models.set_up import setup_model
from tactful_cli.verb_options import AsJson, make_group

app = make_group("List, add and check models, and choose one for this machine.")


@app.command("list")
def list_models(
    model: Annotated[
        str,
        typer.Argument(
            metavar="[MODEL]", help="Show this one, and check the hashes of its files.", autocompletion=known_names
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """List every model with task, engine, size, memory, licence and whether its weights are here.

    Of a named model, missing or changed files are named, and the command exits with 1.
    """
    if model:
        _show(model, as_json)
        return
    catalogue, store = Catalogue(), Store()
    rows: list[dict[str, Any]] = []
    faults: list[str] = []
    for name in catalogue.names():
        try:
            rows.append(_row(catalogue, store, name))
        except ConfigError as error:
            faults.append(str(error))
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
        err.print(f"~ estimated; peak MB: memory at work, where it is known; {PROGRAM} models choose says what fits")
    for fault in faults:
        complain(fault)
    if faults:
        raise typer.Exit(1)


def _show(name: str, as_json: bool) -> None:
    """Show the manifest and state of one model; exit with 1 if its files are not as locked."""
    catalogue, store = Catalogue(), Store()
    manifest = catalogue.manifest(name)
    folder, lock = store.found(manifest) or (None, None)
    damages = find_damages(folder, lock) if folder and lock else {}
    plain: dict[str, Any] = {
        "manifest": manifest.model_dump(mode="json", exclude_defaults=True),
        "manifest_path": str(catalogue.path(name)),
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
                table.add_row(key, _written(value))
        for file in lock.files if lock else manifest.files:
            table.add_row("file", f"{file.path}, {file.size_bytes / 1e6:.1f} MB\nsha256 {file.sha256}")
        if manifest.source.hub:
            table.add_row("revision", lock.revision if lock else "as the lock of the first download says")
        table.add_row("manifest at", plain["manifest_path"])
        table.add_row("weights at", plain["folder"] or _without_weights(manifest))
        print_table(table)
    if folder and damages:
        for path, fault in damages.items():
            complain(f"{name}: {folder / path} {fault}")
        complain(f"{name}: {store.remedy(manifest, folder)}")
        raise typer.Exit(1)


@app.command()
def add(
    source: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|FOLDER|FILE|HUB|URL",
            help="Name of a listed model, to download its weights; or a folder of weights, a .gguf file, "
            "OWNER/NAME on the hub, or the URL of a server's API.",
            autocompletion=known_names,
        ),
    ],
    *,
    name: Annotated[str, typer.Option(help="Name of the model; default: that of the folder or file.")] = "",
    task: Annotated[Task | None, typer.Option(help="Use of the model, where its files do not say it.")] = None,
    licence: Annotated[str, typer.Option(help="Licence, where its files do not say it.")] = "",
    quantization: Annotated[
        str, typer.Option(help="Form of the weights; nf4 or int8 quantizes a transformers model at load.")
    ] = "",
    include: Annotated[
        list[str] | None,
        typer.Option(help="File or pattern to choose among several, as q4_k_m.gguf. Repeatable."),
    ] = None,
    revision: Annotated[str, typer.Option(help="Commit of a hub's repository; default: the newest.")] = "",
    served_model: Annotated[str, typer.Option(help="Server's name of the model, if it serves several.")] = "",
    api_key_variable: Annotated[str, typer.Option(help="Environment variable with the server's key.")] = "",
    as_json: AsJson = False,
) -> None:
    """Download the weights of a listed model, or write the manifest of one of your own.

    An interrupted download resumes. The first one locks revision and hashes.
    """
    # A late import: the network modules take a tenth of a second, which `list` should not spend.
    from tactful_cli.models.add import StatedFields, add_model, pull_listed  # noqa: PLC0415

    stated = StatedFields(
        name=name,
        task=task,
        licence=licence,
        quantization=quantization,
        include=tuple(include or ()),
        revision=revision,
        served_model=served_model,
        api_key_variable=api_key_variable,
    )
    added = pull_listed(source, stated) if source in Catalogue().names() else add_model(source, stated)
    if as_json:
        print_json(added)
        return
    if "manifest" in added:
        out.print(f"{added['name']}: {added['manifest_path']}", soft_wrap=True)
        for key, value in added["manifest"].items():
            if key != "name":
                shown = f"{count_of(len(value), 'file')}, hashed" if key == "files" else _written(value)
                out.print(f"  {key}: {shown}".replace("\n", ", "), soft_wrap=True)
    if "folder" in added:
        files = count_of(len(added["files"]), "file")
        out.print(f"{added['name']}: {files}, {added['size_mb']:.1f} MB in {added['folder']}", soft_wrap=True)
    for step in added.get("next", ()):
        out.print(f"next: {step}")


app.command("choose")(choose_models)
app.command("setup")(setup_model)
app.command("send")(send_batch)


def _without_weights(manifest: Manifest) -> str:
    if manifest.source.url:
        return f"on the server {manifest.source.url}; check them there"
    if manifest.source.path:
        return f"not found at {manifest.source.path}; put them there"
    return f"not installed; run {PROGRAM} models add {manifest.name}"


def _row(catalogue: Catalogue, store: Store, name: str) -> dict[str, Any]:
    manifest = catalogue.manifest(name)
    folder, lock = store.found(manifest) or (None, None)
    size_bytes = sum(file.size_bytes for file in lock.files) if lock else manifest.size_bytes
    in_store = "pulled" if folder == store.folder(manifest) else "packaged" if manifest.source.packages else "folder"
    return {
        "name": name,
        "task": manifest.task.value,
        "engine": manifest.engine.value,
        "quantization": manifest.quantization,
        "size_mb": size_bytes / 1e6 if size_bytes is not None else weights_mb(manifest) or None,
        "size_estimated": size_bytes is None,
        "peak_mb": manifest.memory.peak_mb if manifest.memory else None,
        "licence": manifest.licence,
        "source": describe_source(manifest),
        "installed": "served" if manifest.source.url else in_store if folder else "",
    }


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_written(inner)}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
