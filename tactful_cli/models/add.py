"""Download the weights of a model, and write the manifest of a model that a server has."""

import re
from importlib.util import find_spec
from typing import Any

from norm_core.engines.openai.served import find_served_model
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EXTRAS, EngineKind, Manifest, Task
from norm_core.models.pull import pull_model
from norm_core.models.store import Store, describe_source
from norm_core.records.record import record
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.extras import format_install_command
from tactful_cli.console import err

# The images that a new model takes by its task.
_MAX_IMAGES_BY_TASK = {Task.LANGUAGE: 0, Task.VISION_LANGUAGE: 15}


@record
class StatedFields:
    """The fields that the user states."""

    name: str = ""
    task: Task | None = None
    licence: str = ""
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
    """Write the manifest of a model that a server has, and return the values that the command prints.

    Raises ConfigError if the source or a stated field cannot be used.
    """
    catalogue = Catalogue()
    if not source.startswith(("http://", "https://")):
        raise ConfigError(
            f"{source}: is no address of a server, and {catalogue.describe_unknown(source)}. Serve weights of your own "
            "with vLLM or llama-server"
        )
    fields = find_served_model(source, stated.served_model, stated.api_key_variable)
    name = stated.name or _make_name(fields["settings"]["model"].rpartition("/")[2])
    if stated.task is None:
        raise ConfigError(
            f"{name}: the server does not state the task; state it with --task, one of {', '.join(_MAX_IMAGES_BY_TASK)}"
        )
    catalogue.check_free(name)
    plain = {
        "name": name,
        "task": stated.task.value,
        **fields,
        "engine": fields["engine"].value,
        "max_images": _MAX_IMAGES_BY_TASK[stated.task],
        "licence": stated.licence or "not stated",
    }
    plain = {key: value for key, value in plain.items() if value is not None}
    manifest = check_config(Manifest, plain, source)
    written = {"name": manifest.name, "manifest_path": str(catalogue.write(plain)), "manifest": plain}
    return written | {"next": _list_next_steps(manifest)}


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
