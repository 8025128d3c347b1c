"""Download the weights of a model, and write the manifest of one's own from its files and the options."""

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from norm_core.models.catalogue import Catalogue
from norm_core.models.detection.checkpoint import MAX_IMAGES, memory_of_files
from norm_core.models.detection.find_model import find_model
from norm_core.models.detection.remote_model import find_on_hub, find_served, gguf_fields
from norm_core.models.download import HUB, DownloadSettings, PullError
from norm_core.models.estimate import estimate_memory
from norm_core.models.manifest import EXTRAS, EngineKind, Manifest, Task
from norm_core.models.pull import Origin, pull_model
from norm_core.models.store import Store, hashed_file
from norm_core.records.record import record
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.extras import install_command
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from tactful_cli.console import err

_HUB_NAME = re.compile(r"^\w[\w.-]*/\w[\w.-]*$")
_AT_LOAD = {"nf4", "int8"}
_NUMBER_FORMATS = {"bf16", "f16", "f32"}
_MODULES = {EngineKind.TRANSFORMERS: "transformers"}
_IMAGES = {Task.LANGUAGE: 0, Task.VISION_LANGUAGE: MAX_IMAGES}


@record
class StatedFields:
    """What the user states; None or empty leaves it to the model's files."""

    name: str = ""
    task: Task | None = None
    licence: str = ""
    quantization: str = ""
    context_tokens: int | None = None
    include: tuple[str, ...] = ()
    revision: str = ""
    mirror: str = ""
    folder: Path | None = None
    served_model: str = ""
    api_key_variable: str = ""


def pull_listed(name: str, stated: StatedFields) -> dict[str, Any]:
    """Download the weights of a listed model. Returns the values that the command prints."""
    if stated != StatedFields(mirror=stated.mirror, folder=stated.folder):
        raise ConfigError(
            f"{name}: is listed already, so that only --mirror and --from apply; change its manifest, or write "
            f"./{name} for a folder of that name"
        )
    return pull_with_progress(name, stated.mirror, stated.folder)


def pull_with_progress(name: str, mirror: str = "", folder: Path | None = None) -> dict[str, Any]:
    """Pull one model, and show the progress on standard error."""
    manifest, store = Catalogue().manifest(name), Store()
    origin = Origin(mirror=mirror, folder=folder, settings=DownloadSettings(token=os.environ.get("HF_TOKEN", "")))
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


def add_model(source: str, stated: StatedFields) -> dict[str, Any]:
    """Write the manifest, and download a hub's weights. Returns the values that the command prints."""
    path = Path(source).expanduser()
    catalogue, size_bytes, is_reached = Catalogue(), None, False
    if source.startswith(("http://", "https://")):
        fields = find_served(source, stated.served_model, stated.api_key_variable)
        name = fields["settings"]["model"].rpartition("/")[2]
    elif path.exists():
        if stated.revision or stated.mirror or stated.folder:
            raise ConfigError(f"{source}: is on this machine; --revision, --mirror and --from are for a hub's model")
        fields, name, size_bytes = _of_files(path.absolute(), stated)
    elif _HUB_NAME.match(source):
        (fields, is_reached), name = _of_hub(source, stated), source.rpartition("/")[2]
    elif "/" not in source:
        raise ConfigError(f"{source}: is no folder or file here, and {catalogue.unknown(source)}")
    else:
        raise ConfigError(
            f"{source}: there is no such folder or file; correct the path, or name a hub's OWNER/NAME or a server's URL"
        )
    plain = _merged(fields, stated, stated.name or _name_of(name))
    catalogue.check_free(plain["name"])
    manifest = check_config(Manifest, plain, source)
    # transformers makes 16-bit weights of a GGUF file.
    memory = estimate_memory(manifest, "bf16" if manifest.reads_gguf else manifest.quantization)
    memory = memory or (memory_of_files(size_bytes, manifest) if size_bytes else None)
    if memory:
        plain["memory"] = memory.model_dump(mode="json")
    added = {"name": manifest.name, "manifest_path": str(catalogue.write(plain)), "manifest": plain}
    if is_reached:
        try:
            pulled = pull_with_progress(manifest.name, stated.mirror, stated.folder)
        except PullError as error:
            command = f"{PROGRAM} models add {manifest.name}"
            raise PullError(f"{error}. The manifest is written; go on with {command}") from error
        return added | pulled | {"hashes": "locked", "next": _next_steps(manifest, is_here=True)}
    hashes = "stated" if manifest.files else "unverified" if manifest.source.hub else ""
    return added | {"hashes": hashes, "next": _next_steps(manifest)}


def _of_files(path: Path, stated: StatedFields) -> tuple[dict[str, Any], str, int]:
    model = find_model(path, stated.include)
    with err.status(f"hashing {count_of(len(model.files), 'file')} ..."):
        files = [hashed_file(model.folder, name).model_dump() for name in model.files]
    fields = {
        **model.fields,
        "engine": model.engine,
        "task": model.task,
        "source": {"path": str(model.folder)},
        "files": files,
    }
    name = path.name if path.is_dir() else re.sub(r"-00001-of-\d{5}$", "", path.stem)
    if path.parent.name == "snapshots":  # a hub's cache names the folder by its commit
        name = path.parent.parent.name.rpartition("--")[2]
    return fields, name, sum(file["size_bytes"] for file in files)


def _of_hub(repository: str, stated: StatedFields) -> tuple[dict[str, Any], bool]:
    """Return fields of the manifest, and whether the hub could be asked."""
    is_reached, settings = True, DownloadSettings(token=os.environ.get("HF_TOKEN", ""))
    server = stated.mirror or os.environ.get("HF_ENDPOINT") or HUB
    try:
        found = find_on_hub(repository, stated.revision, stated.include, server, settings)
    except PullError as error:
        if stated.task is None:
            raise ConfigError(
                f"{repository}: is no folder or file here, and the hub does not describe it: {error}; "
                "mend that, or state --task to write the manifest without the hub"
            ) from error
        is_reached = False
        found = gguf_fields(stated.include, stated.include) if any(".gguf" in name for name in stated.include) else {}
        found = {"engine": EngineKind.TRANSFORMERS, "quantization": "bf16", "include": stated.include, **found}
    source = {"hub": repository, "revision": stated.revision, "include": list(found.pop("include", ()))}
    return {**found, "source": {key: value for key, value in source.items() if value}}, is_reached


def _merged(fields: Mapping[str, Any], stated: StatedFields, name: str) -> dict[str, Any]:
    engine, quantization = fields["engine"], stated.quantization or fields["quantization"]
    if stated.quantization and stated.quantization != fields["quantization"]:
        changes_at_load = engine is EngineKind.TRANSFORMERS and fields["quantization"] in _NUMBER_FORMATS
        if fields["quantization"] not in ("unknown", "gguf") and not changes_at_load:
            raise ConfigError(
                f"--quantization: the weights are {fields['quantization']} already; leave the option out, or add a "
                "transformers model that is not quantized"
            )
    task = stated.task or fields.get("task")
    if task is None:
        tasks = ", ".join(Task)
        raise ConfigError(f"{name}: its files do not say what it is for; state --task, one of {tasks}")
    plain = {
        "name": name,
        "task": task.value,
        "engine": engine.value,
        "source": fields["source"],
        "files": fields.get("files"),
        "quantization": quantization,
        **{key: fields.get(key) for key in ("parameters_million", "precise_million", "kv_bytes_per_token")},
        "context_tokens": stated.context_tokens or fields.get("context_tokens"),
        "max_images": _IMAGES.get(task) if fields.get("max_images") is None else fields["max_images"],
        "settings": fields.get("settings"),
        "licence": stated.licence or fields.get("licence") or "not stated",
    }
    return {key: value for key, value in plain.items() if value is not None}


def _name_of(text: str) -> str:
    """Return a name of a manifest that is as near to a file's name as the rule for names allows."""
    name = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")
    if not name:
        raise ConfigError(f"{text}: gives no name for the model; state --name")
    return name


def _next_steps(manifest: Manifest, *, is_here: bool = False) -> list[str]:
    """List the commands that make the model usable on this machine."""
    steps = []
    if (module := _MODULES.get(manifest.engine)) and find_spec(module) is None:
        steps.append(install_command(EXTRAS[manifest.engine]))
    if manifest.source.hub and not is_here:
        steps.append(f"{PROGRAM} models add {manifest.name}")
    if manifest.engine is EngineKind.ENCODER and "model.onnx" not in {file.path for file in manifest.files}:
        return [*steps, f"{PROGRAM} models quantize {manifest.name} --recipe int8-encoder"]
    if manifest.task in (Task.VISION_LANGUAGE, Task.LANGUAGE):
        steps.append(f"{PROGRAM} models setup {manifest.name}")
    return steps
