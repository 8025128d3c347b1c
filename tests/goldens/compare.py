"""Golden files: write them, read them, and list how another run differs."""

import json
import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
RENAMED = Path(__file__).parent / "renamed.json"  # old key or value -> new one; what is not listed must be equal
# What a user relies on is a figure to three decimals, whose rounding may fall to either side on another processor.
TOLERANCE = 1.1e-3

Items = dict[str, Any]


def path_of(source: str) -> Path:
    return DATA / f"{source}.jsonl"


def write(source: str, items: Mapping[str, Any]) -> None:
    """Write one line an item, in the order of the keys."""
    DATA.mkdir(exist_ok=True)
    lines = [json.dumps([key, items[key]], ensure_ascii=False, sort_keys=True) for key in sorted(items)]
    path_of(source).write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(source: str, renamed: Mapping[str, str] | None = None) -> Items:
    """Read the golden items of a source, with renamed keys and values under their new names."""
    lines = path_of(source).read_text(encoding="utf-8").splitlines()
    return dict(_renamed(json.loads(line), renamed or {}) for line in lines)


def renames() -> dict[str, str]:
    """Read the map of renamed keys; empty where nothing was renamed."""
    return dict(json.loads(RENAMED.read_text(encoding="utf-8"))) if RENAMED.is_file() else {}


def differences(golden: Items, found: Items) -> Iterator[str]:
    """List each difference as one line: where it is, what it was, what it is.

    A flag that came or went within the tolerance of its threshold is warned of and is no difference.
    """
    for key in sorted(golden.keys() | found.keys()):
        if (key not in found or key not in golden) and _is_at_threshold(found.get(key, golden.get(key))):
            warnings.warn(f"{key}: came or went within {TOLERANCE} of its threshold", stacklevel=2)
        elif key not in found:
            yield f"{key}: gone; it was {_short(golden[key])}"
        elif key not in golden:
            yield f"{key}: new; it is {_short(found[key])}"
        else:
            yield from _differences(key, golden[key], found[key])


def _differences(where: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(f"{where}.{key}", old.get(key, "(absent)"), new.get(key, "(absent)"))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(f"{where}[{place}]", one, other)
    elif isinstance(old, float) and isinstance(new, (int, float)):
        if not math.isclose(old, new, rel_tol=0, abs_tol=TOLERANCE):
            yield f"{where}: {old} became {new}"
    elif old != new:
        yield f"{where}: {_short(old)} became {_short(new)}"


def _is_at_threshold(item: Any) -> bool:
    flag = item.get("flag", item) if isinstance(item, dict) else {}
    threshold = flag.get("threshold")
    return threshold is not None and abs(flag["probability"] - threshold) <= TOLERANCE


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 160 else f"{text[:157]}..."


def _renamed(value: Any, renamed: Mapping[str, str]) -> Any:
    match value:
        case dict():
            return {renamed.get(key, key): _renamed(inner, renamed) for key, inner in value.items()}
        case list():
            return [_renamed(inner, renamed) for inner in value]
        case str():
            return renamed.get(value, value)
        case _:
            return value
