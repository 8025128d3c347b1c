"""Download the weights of a model, and write the manifest of one's own from its files and the options."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from norm_core.engines.openai.served import find_served_model
from norm_core.models.catalogue import Catalogue
from norm_core.models.estimate import estimate_memory
from norm_core.models.find_model import CHECKPOINT_FILES, MAX_IMAGES, find_model, matching
from norm_core.models.hub import list_repository
from norm_core.models.manifest import EXTRAS, EngineKind, Manifest, Task
from norm_core.models.pull import pull_model
from norm_core.models.store import LOCK_NAME, Store, describe_source, hashed_file
from norm_core.records.record import record
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.extras import format_install_command
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from tactful_cli.console import err

_HUB_NAME = re.compile(r"^\w[\w.-]*/\w[\w.-]*$")
_NUMBER_FORMATS = {"bf16", "f16", "f32"}
_IMAGES = {Task.LANGUAGE: 0, Task.VISION_LANGUAGE: MAX_IMAGES}


@record
class StatedFields:
    """What the user states; None or empty leaves it to the model's files."""

    name: str = ""
    task: Task | None = None
    licence: str = ""
    quantization: str = ""
    include: tuple[str, ...] = ()
    revision: str = ""
    served_model: str = ""
    api_key_variable: str = ""


def pull_listed(name: str, stated: StatedFields) -> dict[str, Any]:
    """Download the weights of a listed model. Returns the values that the command prints."""
    if stated != StatedFields():
        raise ConfigError(
            f"{name}: is listed already, so that no option applies; change its manifest, or write ./{name} for a "
            "folder of that name"
        )
    return pull(Catalogue().manifest(name))


def pull(manifest: Manifest) -> dict[str, Any]:
    """Download the weights of a model. Returns the values that the command prints."""
    store = Store()
    with err.status(f"{manifest.name}: downloading {describe_source(manifest)} ..."):
        lock = pull_model(manifest, store)
    return {
        "name": manifest.name,
        "folder": str(store.folder(manifest)),
        "revision": lock.revision,
        "size_mb": sum(file.size_bytes for file in lock.files) / 1e6,
        "files": [file.model_dump() for file in lock.files],
    }


def add_model(source: str, stated: StatedFields) -> dict[str, Any]:
    """Write the manifest, after a download from a hub. Returns the values that the command prints."""
    path, catalogue = Path(source).expanduser(), Catalogue()
    pulled: dict[str, Any] = {}
    if source.startswith(("http://", "https://")):
        fields = find_served_model(source, stated.served_model, stated.api_key_variable)
        name = fields["settings"]["model"].rpartition("/")[2]
    elif path.exists():
        fields = _of_files(path.absolute(), stated)
        name = path.absolute().name if path.is_dir() else path.stem
    elif _HUB_NAME.match(source):
        name = source.rpartition("/")[2]
        catalogue.check_free(stated.name or _name_of(name))
        fields, pulled = _of_hub(source, stated)
    elif "/" not in source:
        raise ConfigError(f"{source}: is not a folder or file here, and {catalogue.unknown(source)}")
    else:
        raise ConfigError(
            f"{source}: there is no such folder or file; correct the path, or name a hub's OWNER/NAME or a server's URL"
        )
    size_bytes = sum(file["size_bytes"] for file in pulled.get("files", fields.get("files", ())))
    plain = _merged(fields, stated, stated.name or _name_of(name))
    catalogue.check_free(plain["name"])
    manifest = check_config(Manifest, plain, source)
    # transformers makes 16-bit weights of a GGUF file.
    if memory := estimate_memory(manifest, "bf16" if manifest.reads_gguf else manifest.quantization, size_bytes):
        plain["memory"] = memory.model_dump(mode="json")
    written = {"name": manifest.name, "manifest_path": str(catalogue.write(plain)), "manifest": plain}
    return pulled | written | {"next": _next_steps(manifest)}


def _of_files(path: Path, stated: StatedFields) -> dict[str, Any]:
    """Return fields of the manifest of a folder's files, or of one file and those that --include adds."""
    folder = path if path.is_dir() else path.parent
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_file() and entry.name != LOCK_NAME)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be read: {error.strerror}; check its permissions") from error
    chosen = _chosen(names, stated.include)
    names = sorted({path.name, *chosen}) if path != folder else chosen or names
    model = find_model(folder, names)
    with err.status(f"hashing {count_of(len(model.files), 'file')} ..."):
        files = [hashed_file(folder, name).model_dump() for name in model.files]
    source = {"path": str(folder)}
    return {**model.fields, "engine": EngineKind.TRANSFORMERS, "task": model.task, "source": source, "files": files}


def _of_hub(hub: str, stated: StatedFields) -> tuple[dict[str, Any], dict[str, Any]]:
    """Download a repository's model; return fields of its manifest, and what the download printed."""
    repository = list_repository(hub, stated.revision)
    names = list(repository.sizes)
    include = stated.include or CHECKPOINT_FILES
    if not matching(_chosen(names, include if stated.include else ()) or names, ("*.gguf", "*.safetensors")):
        raise ConfigError(f"{hub}: holds no weights in .safetensors or .gguf; name a repository that holds them")
    if not stated.include and not matching(names, ("*.safetensors",)):
        gguf = matching(names, ("*.gguf",))[0]
        raise ConfigError(f"{hub}: holds GGUF files alone; choose one with --include, as {gguf}")
    if stated.include and not matching(names, stated.include)[0].endswith(".gguf"):
        include = tuple(dict.fromkeys((*CHECKPOINT_FILES, *stated.include)))
    source = {"hub": hub, "revision": stated.revision or None, "include": list(include) if stated.include else None}
    source = {key: value for key, value in source.items() if value}
    fields = {"name": _name_of(hub.rpartition("/")[2]), "task": Task.LANGUAGE, "engine": EngineKind.TRANSFORMERS}
    provisional = check_config(
        Manifest, {**fields, "source": source, "quantization": "unknown", "licence": "not stated"}, hub
    )
    pulled = pull(provisional)
    model = find_model(Path(pulled["folder"]), [file["path"] for file in pulled["files"]])
    fields = {"licence": repository.licence, **{key: value for key, value in model.fields.items() if value is not None}}
    return {**fields, "engine": EngineKind.TRANSFORMERS, "task": model.task, "source": source}, pulled


def _chosen(names: list[str], patterns: tuple[str, ...]) -> list[str]:
    """Return the names that a user's patterns choose; raise ConfigError for a pattern that chooses none."""
    for pattern in patterns:
        if not matching(names, (pattern,)):
            raise ConfigError(f"--include: no file matches {pattern}; there are {', '.join(names) or 'none'}")
    return matching(names, patterns)


def _merged(fields: Mapping[str, Any], stated: StatedFields, name: str) -> dict[str, Any]:
    engine, quantization = fields["engine"], stated.quantization or fields["quantization"]
    if quantization != fields["quantization"] and fields["quantization"] not in ("unknown", "gguf", *_NUMBER_FORMATS):
        raise ConfigError(
            f"--quantization: the weights are {fields['quantization']} already; leave the option out, or add a "
            "transformers model that is not quantized"
        )
    task = stated.task or fields.get("task")
    if task is None:
        raise ConfigError(f"{name}: the server does not say what it is for; state --task, one of {', '.join(_IMAGES)}")
    plain = {
        "name": name,
        "task": task.value,
        "engine": engine.value,
        "source": fields["source"],
        "files": fields.get("files"),
        "quantization": quantization,
        **{key: fields.get(key) for key in ("parameters_million", "kv_bytes_per_token")},
        "context_tokens": fields.get("context_tokens"),
        "max_images": fields.get("max_images", _IMAGES[task]),
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


def _next_steps(manifest: Manifest) -> list[str]:
    """List the commands that make the model usable on this machine."""
    steps = []
    if manifest.engine is EngineKind.TRANSFORMERS and find_spec("transformers") is None:
        steps.append(format_install_command(EXTRAS[manifest.engine]))
    if manifest.task in (Task.VISION_LANGUAGE, Task.LANGUAGE):
        steps.append(f"{PROGRAM} models setup {manifest.name}")
    return steps
