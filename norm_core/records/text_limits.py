"""Cut texts from outside that are too long, so that all work on them is bounded."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from norm_core.records.speech import RobotSpeech, Utterance

T = TypeVar("T")

# The limit of spoken text: two minutes at 16 characters a second, longer than any utterance.
MAX_SPEECH_CHARACTERS = 2_000
# The limit of any other text of a record.
MAX_TEXT_CHARACTERS = 32_000
# The limit of the entries of a list in a record.
MAX_ITEMS = 4_000


def cut_texts(record: T) -> tuple[T, int]:
    """Return a record with its long texts and lists cut, and their number."""
    limit = MAX_SPEECH_CHARACTERS if isinstance(record, Utterance | RobotSpeech) else MAX_TEXT_CHARACTERS
    value, count = _cut(record, limit)
    return cast(T, value), count


def _cut(value: Any, limit: int) -> tuple[Any, int]:
    if type(value) is str:  # not an enumeration
        return (value[:limit], 1) if len(value) > limit else (value, 0)
    if isinstance(value, tuple):
        pairs = [_cut(item, limit) for item in value[:MAX_ITEMS]]
        count = sum(cut for _, cut in pairs) + (len(value) > MAX_ITEMS)
        return (tuple(item for item, _ in pairs), count) if count else (value, 0)
    if not is_dataclass(value) or isinstance(value, type):
        return value, 0
    cuts = {field.name: _cut(getattr(value, field.name), limit) for field in fields(value)}
    changes = {name: item for name, (item, cut) in cuts.items() if cut}
    return (replace(value, **changes) if changes else value), sum(cut for _, cut in cuts.values())
