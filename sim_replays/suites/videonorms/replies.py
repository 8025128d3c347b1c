"""Read a model's reply to the prompts of VideoNorms: a label, a label with its evidence, or a norm."""

import json
import re
from collections.abc import Mapping

from norm_core.engines.option_text import without_thought
from norm_core.records.episode import Query
from sim_replays.suites.replies import Form, Reading, json_object

SIDES = {"us": ("adherence", "violation"), "cn": ("遵守", "违反")}
_NAMES = [dict.fromkeys(names) for names in zip(*SIDES.values(), strict=True)]
# Labelled lines, as the paper's own form has them.
_LINE = r"^\W*(?:{})\W*[:：]\s*(.+)$"
_FIELDS = {
    "label": "label|adherence/violation|遵守/违反",
    "verbal": "verbal(?: evidence)?|语言证据",
    "nonverbal": "non-?verbal(?: evidence)?|非语言证据",
    "norm": "(?:specific )?norm|具体规范",
}


def label(query: Query, reply: str) -> Reading | None:
    """Read `{"label": "adherence"}`."""
    fields, strict = _fields(reply)
    place = _side(fields.get("label", ""))
    if place is None and "label" not in fields:
        place, strict = _side(without_thought(reply)), False
    return None if place is None else Reading(chosen=(place,), strict=strict)


def evidence(query: Query, reply: str) -> Reading | None:
    """Read a label with both kinds of evidence."""
    fields, strict = _fields(reply)
    place = _side(fields.get("label", ""))
    texts = {name: fields[name].strip() for name in ("verbal", "nonverbal") if fields.get(name, "").strip()}
    if place is None or len(texts) < 2:
        return None
    return Reading(chosen=(place,), text=json.dumps(texts, ensure_ascii=False), strict=strict)


def norm(query: Query, reply: str) -> Reading | None:
    """Read `{"norm": "..."}`."""
    fields, strict = _fields(reply)
    text = fields.get("norm", "").strip()
    return Reading(text=json.dumps({"norm": text}, ensure_ascii=False), strict=strict) if text else None


FORMS: Mapping[str, Form] = {"adherence": label, "evidence": evidence, "norm": norm}


def _fields(reply: str) -> tuple[dict[str, str], bool]:
    """Return the fields of a JSON object, else of labelled lines; and whether the reply is such an object alone."""
    said = without_thought(reply)
    plain = json_object(reply)
    if plain is not None:
        fields = {name: value for name, value in plain.items() if isinstance(value, str)}
        return fields, said.startswith("{") and said.endswith("}")
    lines = {
        name: re.search(_LINE.format(names), said, re.MULTILINE | re.IGNORECASE) for name, names in _FIELDS.items()
    }
    return {name: line.group(1) for name, line in lines.items() if line}, False


def _side(text: str) -> int | None:
    """Return the one side that a text names; None for none or both."""
    said = text.casefold()
    named = [any(name[:5] in said for name in names) for names in _NAMES]
    return named.index(True) if sum(named) == 1 else None
