"""The decorator of every record: a frozen dataclass that pydantic can validate."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

from pydantic import ConfigDict

T = TypeVar("T")

_BORDER = ConfigDict(
    extra="forbid", strict=False, ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="strings"
)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, keyword-only dataclass whose JSON form rejects unknown fields."""
    cls.__pydantic_config__ = _BORDER  # type: ignore[attr-defined]
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)
