"""Download the weights of a model, and write the manifest of a new model from its files and the options."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from norm_core.engines.openai.served import find_served_model
from norm_core.models.catalogue import Catalogue
from norm_core.models.estimate import estimate_memory
from norm_core.models.find_model import MAX_IMAGES, find_model, select_names
from norm_core.models.manifest import EXTRAS, EngineKind, Manifest, Task
from norm_core.models.pull import pull_model
from norm_core.models.store import LOCK_NAME, Store, describe_file, describe_source
from norm_core.records.record import record
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.extras import format_install_command
from norm_core.runtime.wording import count_of
from tactful_cli.console import err

_NUMBER_FORMATS = {"bf16", "f16", "f32"}
# The images that a new model takes by its task, if its files state none.
_MAX_IMAGES_BY_TASK = {Task.LANGUAGE: 0, Task.VISION_LANGUAGE: MAX_IMAGES}


@record
class StatedFields:
    """The fields that the user states; the files of the model decide on those that are None or empty."""

    name: str = ""
    task: Task | None = None
    licence: str = ""
    quantization: str = ""
    include: tuple[str, ...] = ()
    served_model: str = ""
    api_key_variable: str = ""


def pull_known_model(name: str, stated: StatedFields) -> dict[str, Any]:
    """Download the weights of a listed model, and return the values that the command prints.

    Raises ConfigError if the user states fields of its manifest.
    """
    if stated != StatedFields():
        raise ConfigError(
            f"{name}: is listed already, so options do not apply; change its manifest, or write ./{name} for a "
            "folder of that name"
        )
    return pull_weights(Catalogue().read_manifest(name))


def pull_weights(manifest: Manifest) -> dict[str, Any]:
    """Download the weights of a model, and return the values that the command prints."""
    store = Store()
    with err.status(f"{manifest.name}: downloading {describe_source(manifest)} ..."):
        lock = pull_model(manifest, store)
    return {
        "name": manifest.name,
        "folder": str(store.folder_of(manifest)),
        "revision": lock.revision,
        "size_mb": sum(file.size_bytes for file in lock.files) / 1e6,
        "files": [file.model_dump() for file in lock.files],
        "next": _list_next_steps(manifest),
    }


def add_model(source: str, stated: StatedFields) -> dict[str, Any]:
    """Write the manifest of a model, and return the values that the command prints.

    Raises ConfigError if the source or a stated field cannot be used.
    """
    path = Path(source).expanduser()
    catalogue = Catalogue()
    if source.startswith(("http://", "https://")):
        fields = find_served_model(source, stated.served_model, stated.api_key_variable)
        name = fields["settings"]["model"].rpartition("/")[2]
    elif path.exists():
        fields = _describe_files(path.absolute(), stated)
        name = path.absolute().name if path.is_dir() else path.stem
    elif "/" not in source:
        raise ConfigError(f"{source}: is not a folder or file here, and {catalogue.describe_unknown(source)}")
    else:
        raise ConfigError(
            f"{source}: there is no such folder or file; correct the path, or give a URL. A model of the hub comes by "
            f"hf download {source} --local-dir FOLDER"
        )
    size_bytes = sum(file["size_bytes"] for file in fields.get("files", ()))
    plain = _merge_fields(fields, stated, stated.name or _make_name(name))
    catalogue.check_free(plain["name"])
    manifest = check_config(Manifest, plain, source)
    # transformers converts a GGUF file to 16-bit weights.
    if memory := estimate_memory(manifest, "bf16" if manifest.reads_gguf else manifest.quantization, size_bytes):
        plain["memory"] = memory.model_dump(mode="json")
    written = {"name": manifest.name, "manifest_path": str(catalogue.write(plain)), "manifest": plain}
    return written | {"next": _list_next_steps(manifest)}


def _describe_files(path: Path, stated: StatedFields) -> dict[str, Any]:
    """Return fields of the manifest for the files of a folder, or for one file and those of --include."""
    folder = path if path.is_dir() else path.parent
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_file() and entry.name != LOCK_NAME)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be read: {error.strerror}; check its permissions") from error
    chosen_names = _choose_names(names, stated.include)
    names = sorted({path.name, *chosen_names}) if path != folder else chosen_names or names
    model = find_model(folder, names)
    with err.status(f"hashing {count_of(len(model.files), 'file')} ..."):
        files = [describe_file(folder, name).model_dump() for name in model.files]
    source = {"path": str(folder)}
    return {**model.fields, "engine": EngineKind.TRANSFORMERS, "task": model.task, "source": source, "files": files}


def _choose_names(names: list[str], patterns: tuple[str, ...]) -> list[str]:
    """Return the names that match the patterns of the user. Raises ConfigError for a pattern without a match."""
    for pattern in patterns:
        if not select_names(names, (pattern,)):
            raise ConfigError(f"--include: no file matches {pattern}; there are {', '.join(names) or 'none'}")
    return select_names(names, patterns)


def _merge_fields(fields: Mapping[str, Any], stated: StatedFields, name: str) -> dict[str, Any]:
    """Return the content of the manifest. Raises ConfigError if a stated field contradicts the files, or is missing."""
    engine = fields["engine"]
    quantization = stated.quantization or fields["quantization"]
    if quantization != fields["quantization"] and fields["quantization"] not in ("unknown", "gguf", *_NUMBER_FORMATS):
        raise ConfigError(
            f"--quantization: the weights are {fields['quantization']} already; leave the option out, or add a "
            "transformers model that is not quantized"
        )
    task = stated.task or fields.get("task")
    if task is None:
        raise ConfigError(
            f"{name}: the server does not state the task; state it with --task, one of {', '.join(_MAX_IMAGES_BY_TASK)}"
        )
    plain = {
        "name": name,
        "task": task.value,
        "engine": engine.value,
        "source": fields["source"],
        "files": fields.get("files"),
        "quantization": quantization,
        **{key: fields.get(key) for key in ("parameters_million", "kv_bytes_per_token")},
        "context_tokens": fields.get("context_tokens"),
        "max_images": fields.get("max_images", _MAX_IMAGES_BY_TASK[task]),
        "settings": fields.get("settings"),
        "licence": stated.licence or fields.get("licence") or "not stated",
    }
    return {key: value for key, value in plain.items() if value is not None}


def _make_name(text: str) -> str:
    """Return a name for a manifest, as similar to the text as the rule for names allows.

    Raises ConfigError if nothing remains.
    """
    name = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")
    if not name:
        raise ConfigError(f"{text}: cannot be the name of a model; state one with --name")
    return name


def _list_next_steps(manifest: Manifest) -> list[str]:
    """List what makes the model usable on this machine."""
    steps = []
    if manifest.engine is EngineKind.TRANSFORMERS and find_spec("transformers") is None:
        steps.append(format_install_command(EXTRAS[manifest.engine]))
    if manifest.source.url and manifest.files:
        file = Store().folder_of(manifest) / manifest.files[0].path
        steps.append(f"llama-server -m {file} --alias {manifest.settings.get('model', manifest.name)} --port 8080")
    if manifest.task in (Task.VISION_LANGUAGE, Task.LANGUAGE):
        steps.append(f"set judge.model to {manifest.name} in the section /tactful/monitor of your profile")
    return steps
