"""Older schemas: check each line by its original rule, then convert it to the current form."""

from typing import Any

from norm_core.records.json_codec import sha256_of
from norm_core.runtime.time import NS_PER_S
from study_desk.log.hash_chain import ChainError, check_line
from study_desk.log.schema import SCHEMA

# By kind, the values that schema 2 wrote for missing fields.
_NO_VALUE_2: dict[str, dict[str, Any]] = {
    "flag": {"offset_ns": -1},
    "decision": {"chosen_index": -1, "justification_index": -1, "deadline_ns": -1},
    "presence": {"since_ns": -1, "last_seen_ns": -1, "away_since_ns": -1},
    "session": {
        "start_ns": -1,
        "end_ns": -1,
        "retention_days": 0,
        "bag": {"name": "", "sha256": "", "offset_ns": 0},
    },
}


def check_and_upgrade(line: dict[str, Any], seq: int, prev: str) -> dict[str, Any]:
    """Convert a line to the current schema, and keep its original hash. Raises ChainError."""
    match line["schema"]:
        case 3 | 4 | 5:  # 4 and 5 added values and kinds that a log can do without
            check_line(line, seq, prev)
            return line
        case 2:
            check_line(line, seq, prev)
            return _from_2(line)
        case 1:
            _check_1(line, seq, prev)
            return _from_2(_from_1(line))
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
    """Convert schema 1: one time in seconds, one participant without consents, no erasable bodies."""
    plain = dict(line["record"])
    if line["kind"] == "session" and "participant" in plain:
        name = plain.pop("participant")
        plain["participants"] = [{"pseudonym": name}] if name else []
    time_ns = round(line["time_s"] * NS_PER_S)
    return {
        "schema": 2,
        "seq": line["seq"],
        "kind": line["kind"],
        "wall_ns": time_ns,
        "ros_ns": plain.get("stamp_ns", time_ns),
        "hash": line["hash"],
        "body": {"record": plain},
    }


def _from_2(line: dict[str, Any]) -> dict[str, Any]:
    """Convert schema 2: -1, 0 or an empty record for missing values."""
    if line.get("body") is None:
        return line | {"schema": SCHEMA}
    no_value = _NO_VALUE_2.get(line["kind"], {})
    plain = dict(line["body"]["record"])
    plain |= {name: None for name, value in no_value.items() if plain.get(name) == value}
    return line | {"schema": SCHEMA, "body": line["body"] | {"record": plain}}
