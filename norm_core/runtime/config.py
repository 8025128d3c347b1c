"""Load configuration from YAML into a pydantic model; errors name the file, the key and the allowed values."""

import difflib
from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from norm_core.records.json_codec import sha256_of
from norm_core.runtime.errors import TactfulError

# Extra of a field that may change while a node runs: Field(..., json_schema_extra=LIVE).
LIVE: dict[str, JsonValue] = {"live": True}

P = TypeVar("P", bound=BaseModel)


class Config(BaseModel):
    """The base of every configuration: immutable; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def sha256(self, leave_out: Collection[str] = ()) -> str:
        """Compute the digest for provenance, without the fields in `leave_out`."""
        return sha256_of(self.model_dump(mode="json", exclude=set(leave_out)))

    def part(self, model: type[P]) -> P:
        """Return only the fields of one base class, so that a node and a replay have the same digest."""
        return model(**self.model_dump(include=set(model.model_fields)))


C = TypeVar("C", bound=BaseModel)


class ConfigError(TactfulError, ValueError):
    """A configuration is unusable; the message gives the place and the remedy."""


class _UniqueKeyLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A YAML loader that rejects a duplicate key."""


def _mapping(loader: _UniqueKeyLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if key.value in seen:
            problem = f"the key {key.value!r} stands twice; merge the two into one"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        seen.add(key.value)
    loader.flatten_mapping(node)
    return dict(loader.construct_mapping(node, deep=True))


_UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load_config(model: type[C], path: Path) -> C:
    """Return the configuration in a file; raise ConfigError if it is missing or invalid."""
    return check_config(model, load_yaml(path), str(path))


def load_yaml(path: Path) -> Any:
    """Return the plain contents of a YAML file."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{path}{line}: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: is not YAML: {error}") from error


def check_config(model: type[C], plain: Any, source: str) -> C:
    """Return the configuration in plain values; `source` names their origin in errors."""
    try:
        return model.model_validate({} if plain is None else plain)
    except ValidationError as error:
        faults = [_describe(model, fault) for fault in error.errors()]
        raise ConfigError("\n".join(f"{source}: {fault}" for fault in faults)) from error


def _describe(model: type[BaseModel], fault: ErrorDetails) -> str:
    key = ".".join(map(str, fault["loc"])) or "the whole"
    if fault["type"] == "extra_forbidden":
        models = _models_at(model, fault["loc"][:-1])
        close = _closest(str(fault["loc"][-1]), models)
        hint = f"did you mean {close}? " if close else ""
        known = sorted({key for known_model in models for key in known_model.model_fields})
        return f"{key}: unknown key; {hint}known are {', '.join(known)}"
    is_whole = fault["type"] == "value_error" and not isinstance(fault["input"], str | int | float)
    given = "" if fault["type"] == "missing" or is_whole else f", not {fault['input']!r:.80}"
    if fault["type"] == "value_error":  # our own words, which may begin with a name
        return f"{key}: {fault['msg'].removeprefix('Value error, ')}{given}"
    return f"{key}: {fault['msg'][0].lower()}{fault['msg'][1:]}{given}"


def _closest(key: str, models: list[type[BaseModel]]) -> str:
    """Find the known key most like an unknown one, dotted if it is in a part; return "" if none is similar."""
    paths = sorted({path for model in models for path in _paths_in(model)})
    same = [path for path in paths if path.rpartition(".")[2] == key]
    return next(iter(same or difflib.get_close_matches(key, paths, n=1)), "")


def _paths_in(model: type[BaseModel]) -> list[str]:
    """List the keys of a model, and the dotted keys of its parts."""
    paths = list(model.model_fields)
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            paths += [f"{name}.{path}" for path in _paths_in(field.annotation)]
    return paths


def _models_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[type[BaseModel]]:
    """List the models that are possible at a location in a model."""
    models = [model]
    for part in location:
        # A number is an index of a list, and an unknown name is a key of a mapping: the annotation already gives
        # their model.
        fields = [known.model_fields[part] for known in models if isinstance(part, str) and part in known.model_fields]
        models = [inner for field in fields for inner in _models_in(field.annotation)] if fields else models
    return models


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """List the models in an annotation, including those in lists and optional fields."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]
