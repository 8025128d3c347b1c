"""The hash chain: each line commits to its body and to the previous line.

A line's hash covers the digest of its body, and the body carries a random salt. So a body can be erased later: the
chain stays valid, and the digest reveals nothing about the body.
"""

import json
from typing import Any

from norm_core.records.json_codec import canonical, sha256_of
from study_desk.log.schema import SCHEMA

GENESIS = "0" * 64


class ChainError(ValueError):
    """A line does not match its hash."""


def link_hash(seq: int, kind: str, wall_ns: int, ros_ns: int, plain: Any, salt: str, prev: str) -> dict[str, Any]:  # noqa: PLR0917
    """Make the line of an entry, to be written as canonical JSON."""
    body = {"salt": salt, "record": plain}
    head = {
        "schema": SCHEMA,
        "seq": seq,
        "kind": kind,
        "wall_ns": wall_ns,
        "ros_ns": ros_ns,
        "body_sha256": sha256_of(body),
        "prev": prev,
    }
    return {**head, "hash": sha256_of(head), "body": body}


def to_line(line: dict[str, Any]) -> bytes:
    """Encode a line, including its newline."""
    return canonical(line) + b"\n"


def parse(text: bytes) -> dict[str, Any]:
    """Parse a line, and check nothing but its schema."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ChainError(f"is not JSON: {error}") from error
    if not isinstance(line, dict) or not isinstance(line.get("schema"), int):
        raise ChainError("is no entry of a study log: it has no schema number")
    if line["schema"] != SCHEMA:
        raise ChainError(
            f"has the schema {line['schema']}, and this version reads {SCHEMA}: use the version that wrote it"
        )
    return line


def check_line(line: dict[str, Any], seq: int, prev: str) -> None:
    """Check that a line belongs at this place. Raises ChainError; accepts an erased body."""
    missing = {"seq", "kind", "wall_ns", "ros_ns", "body_sha256", "prev", "hash"} - line.keys()
    if missing:
        raise ChainError(f"lacks {', '.join(sorted(missing))}")
    head = {key: value for key, value in line.items() if key not in ("hash", "body")}
    if sha256_of(head) != line["hash"]:
        raise ChainError("was changed: its hash is not that of its contents")
    if line.get("body") is not None and sha256_of(line["body"]) != line["body_sha256"]:
        raise ChainError("was changed: its body is not the one it was written with")
    if line["seq"] != seq:
        raise ChainError(f"has the number {line['seq']} where {seq} belongs: lines were removed, added or moved")
    if line["prev"] != prev:
        raise ChainError("does not follow the line before it: lines were removed, added or moved")


def erased_line(line: dict[str, Any]) -> dict[str, Any]:
    """Remove body and salt from a line."""
    return {key: value for key, value in line.items() if key != "body"}
