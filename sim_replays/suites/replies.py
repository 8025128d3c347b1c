"""Read a model's reply in the form that its prompt asks for: strictly, then leniently, and never by a guess."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from norm_core.engines.options import OPTION_LETTERS as LETTERS
from norm_core.engines.options import read_option, without_thought
from norm_core.records.episode import Query
from norm_core.records.record import record

LENIENTLY = "read leniently"
EXTRACTED = "read by the second model"
_LIST = re.compile(r"\[\s*(?:\d+(?:\s*,\s*\d+)*)?\s*,?\s*\]")


@record
class Reading:
    """What a reply answers: positions among the offered options, or text. `strict` means that it has the asked form."""

    chosen: tuple[int, ...] = ()
    text: str = ""
    strict: bool = True


# Returns None where a reply names no answer, or several where one is asked for.
Form = Callable[[Query, str], Reading | None]


def json_letter(query: Query, reply: str) -> Reading | None:
    """Read `{"answer": "B", ...}`."""
    said, plain = without_thought(reply), json_object(reply)
    answer = plain.get("answer") if plain else said
    if not isinstance(answer, str):
        return None
    place = read_option(answer, query.options)
    strict = plain is not None and len(answer) == 1 and said.startswith("{") and said.endswith("}")
    return None if place is None else Reading(chosen=(place,), strict=strict)


def letter(query: Query, reply: str) -> Reading | None:
    """Read one lettered option, such as `(B)`, or its words."""
    said, place = without_thought(reply), read_option(reply, query.options)
    if place is None:
        return None
    return Reading(chosen=(place,), strict=said.strip(" ().") in {LETTERS[place], query.options[place]})


def letters(query: Query, reply: str) -> Reading | None:
    """Read one or more lettered options, such as `(A), (C)`; options named in words count too."""
    said, labels = without_thought(reply), LETTERS[: len(query.options)]
    if re.fullmatch(rf"\(?[{labels}]\)?(?:(?:,| and|,? +)+ *\(?[{labels}]\)?)*\.?", said):
        return Reading(chosen=tuple(sorted({labels.index(name) for name in re.findall(rf"[{labels}]", said)})))
    named = re.findall(rf"\(([{labels}])\)|^\W*([{labels}])[).:]", said, re.MULTILINE)
    places = {labels.index(one or other) for one, other in named}
    places |= {place for place, option in enumerate(query.options) if option.casefold() in said.casefold()}
    return Reading(chosen=tuple(sorted(places)), strict=False) if places else None


def number(query: Query, reply: str) -> Reading | None:
    """Read the number on the last line, after any reasoning, or the words of one option there."""
    offered = query.justifications or query.options
    line = without_thought(reply).rpartition("\n")[2].strip()
    strict = re.fullmatch(r"\(?(\d+)\)?\.?", line)
    named = re.findall(r"(?<![\d.])\d+(?![\d.]*\d)", line)
    if len(named) != 1:
        place = None if named else read_option(line, offered)
        return None if place is None else Reading(chosen=(place,), strict=False)
    place = int(named[0]) - 1
    return Reading(chosen=(place,), strict=strict is not None) if 0 <= place < len(offered) else None


def number_list(query: Query, reply: str) -> Reading | None:
    """Read a list of numbers at the end, such as `[1, 4]`, after any reasoning."""
    said = without_thought(reply)
    line = said.rpartition("\n")[2].strip()
    bare_list = re.fullmatch(r"\d+(?:\s*(?:,|and)\s*\d+)*\.?", line)
    found = [*_LIST.finditer(said)][-1:] or ([bare_list] if bare_list else [])
    places = {int(name) - 1 for name in re.findall(r"\d+", found[0].group())} if found else {-1}
    if not places <= set(range(len(query.options))):
        return None
    return Reading(chosen=tuple(sorted(places)), strict=said.endswith("]") and said.endswith(found[0].group()))


FORMS: Mapping[str, Form] = {
    "json_letter": json_letter,
    "letter": letter,
    "letters": letters,
    "number": number,
    "number_list": number_list,
}


def json_object(reply: str) -> dict[str, Any] | None:
    """Return the JSON object that a reply is, or the last that stands in it."""
    said = without_thought(reply)
    starts = [at for at, sign in enumerate(said) if sign == "{"]
    for at in [*starts[:1], *reversed(starts[1:])]:
        try:
            plain, _ = json.JSONDecoder().raw_decode(said, at)
        except (ValueError, RecursionError):
            continue
        return plain if isinstance(plain, dict) else None
    return None
