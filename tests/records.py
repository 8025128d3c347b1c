"""Hypothesis strategies for every record, made from their own type hints."""

from dataclasses import fields
from enum import StrEnum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from norm_core.records.decision import Decision
from norm_core.records.episode import Answer
from norm_core.records.flag import Evidence, Polarity, SocialFlag
from norm_core.records.outcome import Outcome
from norm_core.records.stamps import is_usable_stamp

# CDR strings end at the first zero byte, and lone surrogates are no UTF-8.
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
FLOATS = st.floats(allow_nan=False)
ANGLES = st.floats(-180, 180).map(lambda degrees: round(degrees, 3))
LATEST_NS = 2_115_000_000 * 10**9  # in the year 2037
INTS = {
    "stamp_ns": st.integers(0, LATEST_NS),
    "deadline_ns": st.integers(1, LATEST_NS),
    "chosen_index": st.integers(0, 5),
    "justification_index": st.integers(0, 5),
    "sensible": st.integers(0, 2**31 - 1),
    "chosen": st.integers(0, 2**31 - 1),
}
UNSIGNED_32 = ("_px", "depth", "capacity", "index")
UNSIGNED_64 = ("count", "received", "dropped")


def records(cls: type) -> st.SearchStrategy[Any]:
    """Valid records of a type, at the edges of what a message can hold."""
    hints = get_type_hints(cls)
    values = st.fixed_dictionaries({f.name: _strategy(f.name, hints[f.name]) for f in fields(cls)})
    return values.map(lambda chosen: cls(**_mend(cls, chosen)))


def _strategy(name: str, hint: Any) -> st.SearchStrategy[Any]:  # noqa: PLR0911 one line a kind of field
    if get_origin(hint) is UnionType:
        least = int(name.endswith("_ns"))  # -1 is an absent number, and zero an absent time
        kind = get_args(hint)[0]
        return st.none() | _strategy(name, kind).filter(lambda value: kind is not int or value >= least)
    if get_origin(hint) is tuple:
        return st.lists(_strategy(name, get_args(hint)[0]), max_size=3).map(tuple)
    if hint is str:
        return TEXT
    if hint is bool:
        return st.booleans()
    if hint is float:
        return ANGLES if name.endswith("_deg") else FLOATS
    if hint is bytes:
        return st.binary(max_size=20)
    if hint is int:
        return _integers(name)
    return st.sampled_from(hint) if issubclass(hint, StrEnum) else records(hint)


def _integers(name: str) -> st.SearchStrategy[int]:
    if name in INTS:
        return INTS[name]
    if name.endswith("_ns"):
        return st.integers(-LATEST_NS, LATEST_NS).filter(is_usable_stamp)
    if name.endswith(UNSIGNED_32):
        return st.integers(0, 2**32 - 1)
    if name.endswith(UNSIGNED_64):
        return st.integers(0, 2**64 - 1)
    return st.integers(-(2**63), 2**63 - 1)


def _mend(cls: type, values: dict[str, Any]) -> dict[str, Any]:
    """Bends free values to the rules that a record keeps among its fields."""
    if cls is SocialFlag:
        values["evidence"] = values["evidence"] or (Evidence(measure="m", value=0.0, start_ns=0, end_ns=0),)
        if values["polarity"] is Polarity.ERROR:
            values["correction"] = values["correction"] or "say sorry"
        if values["offset_ns"] is not None:
            values["offset_ns"] = max(values["offset_ns"], values["onset_ns"])
    if cls is Decision:
        answered = values["outcome"] is Outcome.ANSWERED
        values["chosen_index"] = (values["chosen_index"] or 0) if answered else None
    if cls is Answer and values["outcome"] is not Outcome.ANSWERED:
        values["chosen"] = ()
    return values
