"""Older schemas: each line is checked by the rule it was written under, then brought to the present form."""

from typing import Any

from norm_core.records.json_codec import sha256_of
from norm_core.runtime.time import NS_PER_S
from study_desk.log.hash_chain import ChainError, check
from study_desk.log.schema import SCHEMA


def check_and_upgrade(line: dict[str, Any], seq: int, prev: str) -> dict[str, Any]:
    """The line in the present schema, its hash still the one it was written with; raises ChainError."""
    match line["schema"]:
        case 2:
            check(line, seq, prev)
            return line
        case 1:
            _check_1(line, seq, prev)
            return _from_1(line)
        case newer:
            raise ChainError(f"has the schema {newer}, and this version reads 1 to {SCHEMA}: update Tactful")


def _check_1(line: dict[str, Any], seq: int, prev: str) -> None:
    if missing := {"seq", "kind", "time_s", "record", "prev", "hash"} - line.keys():
        raise ChainError(f"lacks {', '.join(sorted(missing))}")
    if sha256_of({key: value for key, value in line.items() if key != "hash"}) != line["hash"]:
        raise ChainError("was changed: its hash is not that of its contents")
    if (line["seq"], line["prev"]) != (seq, prev):
        raise ChainError("does not follow the line before it: lines were removed, added or moved")


def _from_1(line: dict[str, Any]) -> dict[str, Any]:
    """Schema 1 had one time, in seconds, one participant without consents, and no erasable bodies."""
    plain = dict(line["record"])
    if line["kind"] == "session" and "participant" in plain:
        name = plain.pop("participant")
        plain["participants"] = [{"pseudonym": name}] if name else []
    time_ns = round(line["time_s"] * NS_PER_S)
    return {
        "schema": SCHEMA,
        "seq": line["seq"],
        "kind": line["kind"],
        "wall_ns": time_ns,
        "ros_ns": plain.get("stamp_ns", time_ns),
        "hash": line["hash"],
        "body": {"record": plain},
    }
