"""Praat's TextGrids: one interval tier per speaker and per kind of label; read long and short, in any encoding.

Praat reads both forms by one rule: strings, numbers and flags that stand alone count, and all other text is comment.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from praatio.data_classes.interval_tier import IntervalTier
from praatio.data_classes.textgrid import Textgrid

from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.records.speech import Utterance
from norm_core.runtime.time import NS_PER_S
from study_desk.coding.forms.sheet import CodingTarget, FormError, FormPart, Sheet, Span, in_place_of, tiers, to_ms
from study_desk.coding.forms.tables import read_text
from study_desk.coding.labels import from_note, in_order, one_line, severity_named, to_note
from study_desk.log.schema import Label


def write_textgrid(path: Path, sheet: Sheet) -> None:
    """Write Praat's long text form, in UTF-8."""
    lanes_by_tier = tiers(sheet)
    end_ms = max(
        [to_ms(sheet.end_ns - sheet.origin_ns), 1, *(s.end_ms for lane in lanes_by_tier.values() for s in lane)]
    )
    grid = Textgrid(0, end_ms / 1000)
    for name, spans in lanes_by_tier.items():
        intervals = [(span.start_ms / 1000, span.end_ms / 1000, _text(span)) for span in spans]
        grid.addTier(IntervalTier(name, intervals, 0, end_ms / 1000), reportingMode="error")
    with in_place_of(path) as part:
        grid.save(str(part), "long_textgrid", includeBlankSpaces=True, reportingMode="error")


def _text(span: Span) -> str:
    if isinstance(span.item, Utterance):
        return one_line(span.item.text)
    return to_note(span.item, instant=span.widened)


_TOKEN = re.compile(
    r'"(?P<text>(?:[^"]|"")*)"|(?P<open>")|![^\n]*|(?<!\S)(?P<number>[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?)(?!\S)|'
    r"(?<!\S)<(?P<flag>exists|absent)>(?!\S)"
)
_LARGEST_S = 1e9


@record
class _Interval:
    place: str
    start_s: float
    end_s: float
    text: str
    is_point: bool


class TextGridForm:
    """A TextGrid whose tiers are named by codes, or contain a polarity and an attribute."""

    parts = (FormPart(),)  # a TextGrid names neither session nor coder

    def __init__(self, path: Path) -> None:
        """Raises FormError for what is no TextGrid."""
        self._path = path
        self._tiers = tuple(_tiers(path, read_text(path)))

    def labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the intervals and points with a text. Ignores tiers that name no code."""
        coded = [(name, code, listed) for name, listed in self._tiers if (code := target.find_code(name))]
        if not coded and not any(name.startswith("speech ") for name, _ in self._tiers):
            names = ", ".join(name for name, _ in self._tiers) or "none"
            raise FormError(
                f'{self._path}: has no tier named as "error engagement" or "competence emotions"; it has {names}; '
                "rename one"
            )
        labels = []
        for name, code, listed in coded:
            coder = name.rpartition(": ")[0]
            for interval in listed:
                severity = severity_named(interval.text) if code.polarity is Polarity.ERROR else None
                fields = (
                    {"severity": severity} if severity else from_note("" if interval.text == "|" else interval.text)
                )
                instant = bool(fields.pop("instant", False)) or interval.is_point
                start_ns, end_ns = (target.origin_ns + round(s * NS_PER_S) for s in (interval.start_s, interval.end_s))
                times_ns = (start_ns, start_ns if instant else end_ns)
                labels.append(target.label(interval.place, times_ns, code, coder=coder, fields=fields))
        return in_order(labels)


def _tiers(path: Path, text: str) -> Iterator[tuple[str, list[_Interval]]]:
    tokens = _Tokens(path, text)
    if not tokens.string().startswith("ooTextFile") or tokens.string() != "TextGrid":
        raise FormError(f"{path}: is no TextGrid; save it in Praat as a text file")
    tokens.number(), tokens.number()
    if tokens.flag() == "absent":
        return
    for _ in range(tokens.count()):
        kind, name = tokens.string(), tokens.string()
        if kind not in ("IntervalTier", "TextTier"):
            raise FormError(f"{tokens.place}: {kind!r} is no tier of Praat; save the TextGrid in Praat again")
        tokens.number(), tokens.number()
        listed = []
        for _ in range(tokens.count()):
            start_s = tokens.number()
            end_s = tokens.number() if kind == "IntervalTier" else start_s
            place = tokens.place
            if mark := tokens.string().strip():
                listed.append(
                    _Interval(place=place, start_s=start_s, end_s=end_s, text=mark, is_point=kind == "TextTier")
                )
        yield name, listed


class _Tokens:
    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text
        self._found = _TOKEN.finditer(text)
        self._line, self._counted = 1, 0

    @property
    def place(self) -> str:
        """The line of the last value."""
        return f"{self._path}, line {self._line}"

    def string(self) -> str:
        return self._next("text", "a text").replace('""', '"')

    def number(self) -> float:
        value = float(self._next("number", "a number"))
        if not abs(value) < _LARGEST_S:
            raise FormError(f"{self.place}: {value} s is too large; correct it")
        return value

    def count(self) -> int:
        return int(self.number())

    def flag(self) -> str:
        return self._next("flag", "<exists>")

    def _next(self, kind: str, wanted: str) -> str:
        for match in self._found:
            if match.lastgroup is None:  # a comment
                continue
            self._line += self._text.count("\n", self._counted, match.start())
            self._counted = match.start()
            if match.lastgroup == kind:
                return str(match.group(kind))
            raise FormError(f"{self.place}: {wanted} belongs here, not {match.group()[:30]!r}; save it in Praat again")
        raise FormError(f"{self._path}: ends where {wanted} belongs; it is cut short: save it in Praat again")
