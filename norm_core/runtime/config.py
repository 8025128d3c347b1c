"""Load configuration from YAML into a pydantic model; errors name the file, the key and the allowed values."""

import difflib
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from norm_core.files.plain_file import read_plain_file
from norm_core.records.json_codec import sha256_of
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.wording import hide_password

# Extra of a field that may change while a node runs: Field(..., json_schema_extra=LIVE).
LIVE: dict[str, JsonValue] = {"live": True}
# Extra of a field that names a file or folder: a running node accepts only those in folders that its operator allowed.
NAMES_FILE: dict[str, JsonValue] = {"file": True}
LIVE_FILE: dict[str, JsonValue] = {**LIVE, **NAMES_FILE}

# The longest texts in a configuration are templates of prompts.
MAX_SETTING_CHARACTERS = 100_000
# The limits of a YAML file. A metadata.yaml of a thousand topics has 0.7 MB and depth 8.
MAX_YAML_BYTES = 4 << 20
MAX_YAML_DEPTH = 50
_MAX_NUMBER_CHARACTERS = 100
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
# Other implicit types, such as dates, remain text.
_NUMBERS = (f"{_TAG}int", f"{_TAG}float")
_SCALARS = (*_NUMBERS, f"{_TAG}bool", f"{_TAG}null", f"{_TAG}str")
_COLLECTIONS = (None, "!", f"{_TAG}map", f"{_TAG}seq")
# The mark of a mapping whose next event is a key.
_NO_KEY = object()
# A character that YAML does not allow.
_FORBIDDEN = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

C = TypeVar("C", bound=BaseModel)
P = TypeVar("P", bound=BaseModel)


class Config(BaseModel):
    """The base of every configuration: immutable; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, str_max_length=MAX_SETTING_CHARACTERS)

    def sha256(self, leave_out: Collection[str] = ()) -> str:
        """Compute the digest for provenance, without the fields in `leave_out`."""
        return sha256_of(self.model_dump(mode="json", exclude=set(leave_out)))

    def part(self, model: type[P]) -> P:
        """Return only the fields of one base class, so that a node and a replay have the same digest."""
        return model(**self.model_dump(include=set(model.model_fields)))


class ConfigError(TactfulError, ValueError):
    """A configuration is unusable; the message gives the place and the remedy."""


class UnusableFileError(ConfigError):
    """A file that a setting names is unusable; the message holds nothing of its content, which may be a secret."""


def load_config(model: type[C], path: Path) -> C:
    """Return the configuration in a file. Raises ConfigError if it is missing or invalid."""
    return check_config(model, load_yaml(path), str(path))


def load_private_config(model: type[C], path: Path) -> C:
    """Return the configuration in a file that a peer may have named. Raises UnusableFileError, which quotes nothing."""
    try:
        plain = load_yaml(path)
        return model.model_validate({} if plain is None else plain)
    except ValidationError as error:
        faults = "; ".join(_describe_without_content(model, fault) for fault in error.errors())
        raise UnusableFileError(f"{path}: {faults}") from None
    except ConfigError as error:
        cause = error.__cause__
        if isinstance(cause, OSError):
            raise UnusableFileError(str(error)) from cause
        mark = getattr(cause, "problem_mark", None)
        raise UnusableFileError(f"{path}{_format_mark(mark)}: is not plain YAML; correct it there") from None


def load_yaml(path: Path) -> Any:
    """Return the plain contents of a YAML file. Raises ConfigError if it is missing or invalid."""
    try:
        text = read_plain_file(path, MAX_YAML_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    return parse_yaml(text, str(path))


def parse_yaml(text: str, source: str) -> Any:
    """Return the mappings, lists, texts, numbers, booleans and nulls in YAML text; the keys are texts.

    Raises ConfigError, which names `source` and the line, for what is too large or deep, and for an alias, another
    type or a duplicate key. Nothing here recurses: the text may come from anyone.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_YAML_BYTES:
        raise ConfigError(f"{source}: is larger than {MAX_YAML_BYTES >> 20} MB; shorten it")
    if forbidden := _FORBIDDEN.search(text):
        line = text.count("\n", 0, forbidden.start()) + 1
        raise ConfigError(f"{source}, line {line}: the character {forbidden[0]!r} is not allowed in YAML; remove it")
    try:
        return _compose(text)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{source}{_format_mark(error.problem_mark)}: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{source}: is not YAML: {error}") from error


def _format_mark(mark: Any) -> str:
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _compose(text: str) -> Any:
    scalars = yaml.SafeLoader("")
    root: list[Any] = []
    open_collections: list[Any] = [root]
    keys: list[Any] = [_NO_KEY]  # by open collection, the key that waits for its value
    for event in yaml.parse(text, _PARSER):
        if isinstance(event, yaml.CollectionEndEvent):
            open_collections.pop()
            keys.pop()
        elif isinstance(event, yaml.DocumentStartEvent) and root:
            raise _make_fault(event, "a second document begins; keep one to a file")
        if not isinstance(event, yaml.NodeEvent):
            continue
        collection = open_collections[-1]
        if isinstance(collection, dict) and keys[-1] is _NO_KEY:
            keys[-1] = _read_key(event, collection)
            continue
        value = _read_value(scalars, event)
        if isinstance(collection, dict):
            collection[keys[-1]] = value
            keys[-1] = _NO_KEY
        else:
            collection.append(value)
        if isinstance(event, yaml.CollectionStartEvent):
            open_collections.append(value)
            keys.append(_NO_KEY)
            if len(keys) > MAX_YAML_DEPTH:
                raise _make_fault(event, f"is nested more than {MAX_YAML_DEPTH} deep")
    return root[0] if root else None


def _read_key(event: yaml.NodeEvent, mapping: dict[str, Any]) -> str:
    if not isinstance(event, yaml.ScalarEvent):
        raise _make_fault(event, "a key must be a text, not a list, a mapping or an alias")
    key = str(event.value)
    if key in mapping:
        raise _make_fault(event, f"the key {key!r:.80} appears twice; merge the two into one")
    return key


def _read_value(scalars: yaml.SafeLoader, event: yaml.NodeEvent) -> Any:
    if isinstance(event, yaml.AliasEvent):
        raise _make_fault(event, f"the alias *{event.anchor} is not allowed; write its value out")
    if isinstance(event, yaml.ScalarEvent):
        return _read_scalar(scalars, event)
    if isinstance(event, yaml.CollectionStartEvent) and event.tag not in _COLLECTIONS:
        raise _make_fault(event, f"the tag {event.tag!r:.80} is not allowed; write plain values")
    return {} if isinstance(event, yaml.MappingStartEvent) else []


def _read_scalar(scalars: yaml.SafeLoader, event: yaml.ScalarEvent) -> Any:
    has_tag = event.tag not in (None, "!")
    tag = str(event.tag if has_tag else scalars.resolve(yaml.ScalarNode, event.value, event.implicit))  # type: ignore[no-untyped-call]
    if has_tag and tag not in _SCALARS:
        raise _make_fault(event, f"the tag {tag!r:.80} is not allowed; write plain values")
    if tag in _NUMBERS and len(event.value) > _MAX_NUMBER_CHARACTERS:
        raise _make_fault(event, f"a number of {len(event.value)} characters is too long")
    if tag not in _SCALARS:
        return event.value
    try:
        return scalars.construct_object(yaml.ScalarNode(tag, event.value))
    except (ValueError, LookupError) as error:  # an empty or unknown value of a stated type
        raise _make_fault(event, f"{event.value!r:.80} is not of the type {tag.removeprefix(_TAG)}") from error


def _make_fault(event: yaml.Event, problem: str) -> yaml.MarkedYAMLError:
    mark: Any = event.start_mark
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def check_config(model: type[C], plain: Any, source: str) -> C:
    """Return the configuration of plain values. Raises ConfigError, which names `source` as their origin."""
    try:
        return model.model_validate({} if plain is None else plain)
    except ValidationError as error:
        faults = [_describe(model, fault) for fault in error.errors()]
        raise ConfigError("\n".join(f"{source}: {fault}" for fault in faults)) from error


def _describe(model: type[BaseModel], fault: ErrorDetails) -> str:
    key = ".".join(map(str, fault["loc"])) or "the whole"
    if fault["type"] == "extra_forbidden":
        models = _find_models_at(model, fault["loc"][:-1])
        close = _find_closest(str(fault["loc"][-1]), models)
        hint = f"did you mean {close}? " if close else ""
        known_keys = sorted({key for known_model in models for key in known_model.model_fields})
        return f"{key}: unknown key; {hint}known are {', '.join(known_keys)}"
    is_whole = fault["type"] == "value_error" and not isinstance(fault["input"], str | int | float)
    actual = "" if fault["type"] == "missing" or is_whole else f", not {hide_password(repr(fault['input'])):.80}"
    if fault["type"] == "value_error":  # a message of Tactful, which may begin with a name
        return f"{key}: {fault['msg'].removeprefix('Value error, ')}{actual}"
    return f"{key}: {fault['msg'][0].lower()}{fault['msg'][1:]}{actual}"


def _describe_without_content(model: type[BaseModel], fault: ErrorDetails) -> str:
    """Describe a fault without quoting the file, except for a key that resembles a known one."""
    if fault["type"] != "extra_forbidden":
        key = ".".join(map(str, fault["loc"])) or "the whole"
        return f"{key}: {fault['msg'][0].lower()}{fault['msg'][1:]}"
    close = _find_closest(str(fault["loc"][-1]), _find_models_at(model, fault["loc"][:-1]))
    return f"{fault['loc'][-1]}: unknown key; did you mean {close}?" if close else "has a key that is not known"


def _find_closest(key: str, models: list[type[BaseModel]]) -> str:
    """Find the known key most like an unknown one, dotted if it is in a part; return "" if none is similar."""
    paths = sorted({path for model in models for path in _list_paths(model)})
    same = [path for path in paths if path.rpartition(".")[2] == key]
    return next(iter(same or difflib.get_close_matches(key, paths, n=1)), "")


def _list_paths(model: type[BaseModel]) -> list[str]:
    """List the keys of a model, and the dotted keys of its parts."""
    paths = list(model.model_fields)
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            paths += [f"{name}.{path}" for path in _list_paths(field.annotation)]
    return paths


def _find_models_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[type[BaseModel]]:
    """List the models that are possible at a location in a model."""
    models = [model]
    for part in location:
        # For the index of a list, and the key of a mapping, the annotation already gives the model.
        fields = [model.model_fields[part] for model in models if isinstance(part, str) and part in model.model_fields]
        models = [inner for field in fields for inner in _find_models_in(field.annotation)] if fields else models
    return models


def _find_models_in(annotation: Any) -> list[type[BaseModel]]:
    """List the models in an annotation, including those in lists and optional fields."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _find_models_in(argument)]
