"""Convert records to and from JSON, and define the canonical form for digests."""

import hashlib
import json
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


class RecordError(ValueError):
    """Text is not the JSON of the expected record; the message names the field."""


@cache
def _get_adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def to_json(record: Any) -> str:
    """Return one line of JSON; NaN and infinities become strings, bytes become base64."""
    return _get_adapter(cast(Any, type(record))).dump_json(record).decode()


def from_json(cls: type[T], text: str | bytes) -> T:
    """Return the record that `to_json` wrote. Raises RecordError with the field and the fault."""
    try:
        return cast(T, _get_adapter(cast(Any, cls)).validate_json(text))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or cls.__name__}: {fault['msg']}" for fault in error.errors()
        )
        raise RecordError(f"not a {cls.__name__}: {faults}") from error


def from_plain(cls: type[T], plain: Any) -> T:
    """Read a record from the plain values of `json.loads`. Raises RecordError as `from_json` does."""
    return from_json(cls, json.dumps(plain))


def to_plain(record: Any) -> Any:
    """Return the JSON form as plain dicts, lists, strings and numbers."""
    return json.loads(to_json(record))


def canonical(value: Any) -> bytes:
    """Return the canonical bytes of a plain JSON value: sorted keys, no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "surrogatepass"
    )


def sha256_of(value: Any) -> str:
    """Return the lower-case hex SHA-256 of the canonical form of a plain JSON value."""
    return hashlib.sha256(canonical(value)).hexdigest()
