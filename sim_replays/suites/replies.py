"""Read a model's reply in the form that its prompt asks for: strictly, then leniently, and never by a guess."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from norm_core.records.episode import Query
from norm_core.records.record import record

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LENIENTLY = "read leniently"
_THOUGHTS = re.compile(r"^.*?</think(?:ing)?>", re.DOTALL)
_LIST = re.compile(r"\[\s*(\d+(?:\s*,\s*\d+)*)?\s*,?\s*\]")
_END = r"(?=[\s).,:;*\"'\]]*(?:$|[).,:;\n]))"


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
    said = without_thoughts(reply)
    letters = LETTERS[: len(query.options)]
    plain = json_object(said)
    if plain is None:
        cut = re.search(r'"answer"\s*:\s*"([^"]+)"', said)  # of a reply that was cut short
        place = place_named(cut.group(1) if cut else said, letters, query.options)
        return None if place is None else Reading(chosen=(place,), strict=False)
    answer = plain.get("answer")
    if not isinstance(answer, str):
        return None
    if len(answer) == 1 and answer in letters:
        return Reading(chosen=(letters.index(answer),), strict=said.startswith("{") and said.endswith("}"))
    place = place_named(answer, letters, query.options)
    return None if place is None else Reading(chosen=(place,), strict=False)


def letter(query: Query, reply: str) -> Reading | None:
    """Read one lettered option, such as `(B)`."""
    return _label(reply, LETTERS[: len(query.options)], query.options)


def number(query: Query, reply: str) -> Reading | None:
    """Read one numbered option, such as `(2)`."""
    return _label(reply, _numbers(query.options), query.options)


def last_number(query: Query, reply: str) -> Reading | None:
    """Read the number on the last line, after any reasoning."""
    offered = query.justifications or query.options
    labels, line = _numbers(offered), last_line(reply)
    if line in labels:
        return Reading(chosen=(labels.index(line),))
    named = re.findall(r"(?<![\d.])\d+(?![\d.]*\d)", line)
    place = labels.index(named[0]) if len(named) == 1 and named[0] in labels else place_named(line, labels, offered)
    return None if place is None else Reading(chosen=(place,), strict=False)


def number_list(query: Query, reply: str) -> Reading | None:
    """Read a list of numbers at the end, such as `[1, 4]`, after any reasoning."""
    said = without_thoughts(reply)
    lists = list(_LIST.finditer(said))
    if lists:
        named, strict = re.findall(r"\d+", lists[-1].group()), lists[-1].end() == len(said)
    else:
        line, strict = last_line(reply), False
        named = re.findall(r"\d+", line) if re.fullmatch(r"\d+(\s*(,|and)\s*\d+)*\.?", line) else []
        if not named:
            return None
    labels = _numbers(query.options)
    if any(name not in labels for name in named):
        return None
    return Reading(chosen=tuple(sorted({labels.index(name) for name in named})), strict=strict)


def letters(query: Query, reply: str) -> Reading | None:
    """Read one or more lettered options, such as `(A), (C)`; options named in words count too."""
    said = without_thoughts(reply)
    labels = LETTERS[: len(query.options)]
    if re.fullmatch(rf"\(?[{labels}]\)?((\s*,\s*|\s+and\s+|\s*,\s*and\s+|\s+)\(?[{labels}]\)?)*\.?", said):
        return Reading(chosen=_places(re.findall(rf"[{labels}]", said.replace("and", "")), labels))
    named = re.findall(rf"\(([{labels}])\)|^\s*[-*]*\s*([{labels}])[).:]", said, re.MULTILINE)
    places = set(_places([one or other for one, other in named], labels))
    places |= {place for place, option in enumerate(query.options) if _plain(option) in _plain(said)}
    return Reading(chosen=tuple(sorted(places)), strict=False) if places else None


def true_or_false(query: Query, reply: str) -> Reading | None:
    """Read True or False, which are the two options in this order."""
    said = without_thoughts(reply)
    if whole := re.fullmatch(r"(true|false)\.?", said, re.IGNORECASE):
        return Reading(chosen=(("true", "false").index(whole.group(1).lower()),))
    words = {word.lower() for word in re.findall(r"\b(true|false)\b", said, re.IGNORECASE)}
    if len(words) == 1:
        return Reading(chosen=(("true", "false").index(words.pop()),), strict=False)
    place = place_named(said, LETTERS[:2], query.options) if not words else None
    return None if place is None else Reading(chosen=(place,), strict=False)


FORMS: Mapping[str, Form] = {
    "json_letter": json_letter,
    "last_number": last_number,
    "letter": letter,
    "letters": letters,
    "number": number,
    "number_list": number_list,
    "true_or_false": true_or_false,
}


def without_thoughts(reply: str) -> str:
    """Remove what a reasoning model writes before its answer."""
    return _THOUGHTS.sub("", reply).strip()


def last_line(reply: str) -> str:
    """Return the last line with words, or an empty text."""
    return next((line.strip() for line in reversed(without_thoughts(reply).splitlines()) if line.strip()), "")


def json_object(said: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, or the last that stands in it."""
    starts = [at for at, letter in enumerate(said) if letter == "{"]
    for at in [*starts[:1], *reversed(starts[1:])]:
        try:
            plain, _ = json.JSONDecoder().raw_decode(said, at)
        except (ValueError, RecursionError):
            continue
        return plain if isinstance(plain, dict) else None
    return None


def place_named(said: str, labels: Sequence[str], options: Sequence[str]) -> int | None:
    """Return the one option that a text names by its label or its words; None for none or several."""
    plain = _plain(said)
    texts = [_plain(option) for option in options]
    if plain in texts:
        return texts.index(plain) if texts.count(plain) == 1 else None
    any_label = "|".join(map(re.escape, labels))
    if alone := re.fullmatch(rf"\W*({any_label})\W*", said.strip()):
        return labels.index(alone.group(1))
    if first := re.match(rf"\W*({any_label})[).:]\s*(\S.*)", said.strip(), re.DOTALL):
        rest = _plain(first.group(2))
        if any(text and rest.startswith(text) for text in (texts[labels.index(first.group(1))],)):
            return labels.index(first.group(1))
    stated = rf"(?:answer|option|choice)(?: is|:|\*)*\s*\(?\**({any_label})\b{_END}"
    for pattern, flags in ((stated, re.IGNORECASE | re.MULTILINE), (rf"\(({any_label})\)", 0)):
        named = {name.upper() for name in re.findall(pattern, said, flags)}
        if named:
            return labels.index(named.pop()) if len(named) == 1 else None
    held = [place for place, text in enumerate(texts) if text and text in plain]
    return held[0] if len(held) == 1 else None


def _label(reply: str, labels: Sequence[str], options: Sequence[str]) -> Reading | None:
    said = without_thoughts(reply)
    any_label = "|".join(map(re.escape, labels))
    if alone := re.fullmatch(rf"\(?({any_label})\)?\.?", said):
        return Reading(chosen=(labels.index(alone.group(1)),))
    place = place_named(said, labels, options)
    if place is None:
        place = place_named(last_line(reply), labels, options)
    return None if place is None else Reading(chosen=(place,), strict=False)


def _numbers(options: Sequence[str]) -> list[str]:
    return [str(place) for place, _ in enumerate(options, 1)]


def _places(names: Sequence[str], labels: Sequence[str]) -> tuple[int, ...]:
    return tuple(sorted({labels.index(name) for name in names}))


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text).strip().casefold()
