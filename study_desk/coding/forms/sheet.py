"""The content of a form: a session's speech in milliseconds, in lanes without overlap, and coded labels."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.records.speech import Speaker, Utterance
from norm_core.records.stamps import MAX_STAMP_NS, MIN_STAMP_NS
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_MS, NS_PER_S, ns_to_s
from norm_monitor.session_log.labels import Sheet, fold_lines
from norm_monitor.session_log.recording import Recording
from norm_monitor.session_log.schema import Label
from norm_monitor.session_log.study_file import HSRI, Code

# Media may run on after the last entry of a log, and labels last until their end.
_MEDIA_TAIL_NS = NS_PER_S
_MAX_FAULTS_SHOWN = 5


class FormError(TactfulError, ValueError):
    """Labels cannot be written or read; the message gives the place."""


@record
class Span:
    """Speech from one whole millisecond to another."""

    start_ms: int
    end_ms: int
    text: str


def find_origin_ns(recording: Recording) -> int:
    """Find the time from which forms count: the start of the media."""
    bag = recording.info.bag
    return bag.offset_ns if bag and bag.offset_ns <= recording.start_ns else recording.start_ns


def build_sheet(recording: Recording) -> Sheet:
    """Build a sheet of the speech, without labels, for a coder who is to see none."""
    return Sheet(
        origin_ns=find_origin_ns(recording),
        end_ns=recording.end_ns,
        utterances=recording.speech,
        session=recording.info.session,
        speakers=_name_speakers(recording),
    )


def _name_speakers(recording: Recording) -> dict[str, str]:
    """Return pseudonyms by person id, if several people speak."""
    pseudonyms = {person_id: p.pseudonym for p in recording.info.participants for person_id in p.person_ids}
    person_ids = (utterance.speaker_id for utterance in recording.speech if utterance.speaker is not Speaker.ROBOT)
    if len({pseudonyms.get(person_id, "") for person_id in person_ids}) < 2:
        return {}
    return {person_id: fold_lines(name) for person_id, name in pseudonyms.items() if person_id}


def group_speech_by_tier(sheet: Sheet) -> dict[str, list[Span]]:
    """Group speech by tier name, with overlaps in tiers "+2" and "+3"."""
    speakers: dict[str, list[Span]] = {}
    for utterance in sorted(sheet.utterances, key=lambda utterance: [*Speaker].index(utterance.speaker)):
        name = f"speech {sheet.speaker_of(utterance)}"
        speakers.setdefault(name, []).append(_make_span(utterance, sheet.origin_ns))
    return {
        name if number == 1 else f"{name} +{number}": lane
        for name, spans in speakers.items()
        for number, lane in enumerate(_distribute_over_lanes(spans), 1)
    }


def _make_span(utterance: Utterance, origin_ns: int) -> Span:
    """Cut an utterance off before the media, as tools have no negative times. It lasts at least one millisecond."""
    start_ms = max(0, _round_to_ms(utterance.start_ns - origin_ns))
    end_ms = max(start_ms + 1, _round_to_ms(utterance.end_ns - origin_ns))
    return Span(start_ms=start_ms, end_ms=end_ms, text=fold_lines(utterance.text))


def _distribute_over_lanes(spans: Iterable[Span]) -> list[list[Span]]:
    """Distribute spans over the fewest lanes without overlap. The first lane holds most."""
    lanes: list[list[Span]] = []
    for span in sorted(spans, key=lambda span: (span.start_ms, span.end_ms)):
        lane = next((lane for lane in lanes if lane[-1].end_ms <= span.start_ms), None)
        if lane is None:
            lanes.append(lane := [])
        lane.append(span)
    return lanes


def to_stamps_ns(start_ms: float, end_ms: float, origin_ns: int) -> tuple[int, int]:
    """Convert start and end to nanoseconds."""
    return origin_ns + round(start_ms * NS_PER_MS), origin_ns + round(end_ms * NS_PER_MS)


def check_session(place: str, stated: str, expected: str) -> None:
    """Refuse a coding that states another session than the log's."""
    if stated and expected and stated != fold_lines(expected):
        raise FormError(
            f"{place}: is of session {stated}, and the log of {expected}: import it into that session's log"
        )


def check_text(place: str, texts: Iterable[str]) -> None:
    """Refuse NUL characters and halves of surrogate pairs, which a log cannot hold."""
    if any("\0" in text or (not text.isprintable() and re.search("[\ud800-\udfff]", text)) for text in texts):
        raise FormError(f"{place}: holds a NUL character, or half of a character; take it out")


def _round_to_ms(ns: int) -> int:
    """Round to milliseconds in integers, because stamps exceed the precision of floats."""
    return (ns + NS_PER_MS // 2) // NS_PER_MS


def _find_name(text: str, names: Sequence[str]) -> str | None:
    """Find the longest of these names that the text contains."""
    plain = text.lower().replace(" ", "_").replace("-", "_")
    return next((name for name in sorted(names, key=len, reverse=True) if name in plain), None)


@record
class FormPart:
    """The part of a form for one session. A field is empty if the form does not state it."""

    name: str = ""  # the session, or BORIS's Observation id
    coder: str = ""
    study: str = ""


@record
class CodingTarget:
    """The session, the origin of its times, and the coder to whom labels belong (empty: as in the form)."""

    session: str = ""
    part: str = ""  # the part of the form; empty: the only one
    coder: str = ""
    origin_ns: int = 0
    start_ns: int = 0
    end_ns: int | None = None  # None: labels may lie outside the session
    codebook: tuple[Code, ...] = HSRI
    # Faults that are collected while labels are read.
    outside: list[tuple[str, float, float]] = field(default_factory=list)  # place, start and end in seconds
    repeated: list[str] = field(default_factory=list)
    places: dict[Label, str] = field(default_factory=dict)

    def find_code(self, text: str) -> Code | None:
        """Find the code of the codebook that a name means, or whose polarity and attribute it contains."""
        plain = re.sub(r" \+\d+$", "", text.rpartition(": ")[2].strip()).casefold()
        for code in self.codebook:
            if plain in (code.id.casefold(), code.name.casefold()):
                return code
        kind = (_find_name(text, list(Polarity)), _find_name(text, list(Attribute)))
        return next((code for code in HSRI if (code.polarity.value, code.attribute) == kind), None)

    def require_code(self, place: str, text: str) -> Code:
        """Find a code. Raises FormError with the place in the form."""
        if code := self.find_code(text):
            return code
        examples = ", ".join([f'"{HSRI[0].name}"', *(code.id for code in self.codebook if code not in HSRI)])
        raise FormError(
            f"{place}: {text!r} is not a code of the study, such as {examples}: rename it, or add it to codes in "
            "study.yaml"
        )

    def make_label(
        self, place: str, times_ns: tuple[int, int], code: Code, *, coder: str, fields: dict[str, Any]
    ) -> Label:
        """Make a label. Raises FormError with its place in the form."""
        start_ns, end_ns = times_ns
        coder = self.coder or coder
        if not coder:
            raise FormError(f"{place}: names no coder; give --coder")
        if code.attribute is None:
            raise FormError(f"{place}: code {code.id} counts as no attribute of HSRI; give it one in study.yaml")
        if set(coder) & {*"<>"}:
            raise FormError(f"{place}: {coder!r} is not a coder's name; give --coder")
        if not MIN_STAMP_NS <= min(times_ns) <= max(times_ns) <= MAX_STAMP_NS:
            raise FormError(f"{place}: its time, or the origin in the file, is one that no clock shows; correct it")
        check_text(place, [coder, *(value for value in fields.values() if isinstance(value, str))])
        if end_ns < start_ns:
            start_s, end_s = (ns_to_s(ns - self.origin_ns) for ns in times_ns)
            raise FormError(f"{place}: a label ends at {end_s:g} s, before it begins at {start_s:g} s; correct one")
        if self.end_ns is not None and (
            start_ns <= self.start_ns - NS_PER_MS
            or start_ns >= self.end_ns + NS_PER_MS
            or end_ns > self.end_ns + _MEDIA_TAIL_NS
        ):
            self.outside.append((place, ns_to_s(start_ns - self.start_ns), ns_to_s(end_ns - self.start_ns)))
        own_code = "" if code in HSRI else code.id
        label = Label(
            start_ns=start_ns,
            end_ns=end_ns,
            polarity=code.polarity,
            attribute=code.attribute,
            coder=coder,
            **{**fields, "code": own_code or fields.get("code", "")},
        )
        if (first := self.places.setdefault(label, place)) != place:
            self.repeated.append(f"{place} repeats {first}")
        return label

    def check_all(self, count: int) -> None:
        """Refuse labels outside the session, and duplicates. Raises FormError that names them."""
        if self.repeated:
            raise FormError(f"the same label appears twice: {_join_first(self.repeated)}. Take out one of the two")
        if not self.outside or self.end_ns is None:
            return
        length_s = ns_to_s(self.end_ns - self.start_ns)
        faults = _join_first([f"{place}: {start_s:.1f} to {end_s:.1f} s" for place, start_s, end_s in self.outside])
        times_ms = [time for _, *times in self.outside for time in times]
        fits_as_ms = min(times_ms) >= 0 and 2 * length_s < max(times_ms) <= (length_s + 1) * 1000
        question = " Are these milliseconds? The form has seconds." if fits_as_ms else ""
        raise FormError(
            f"{len(self.outside)} of {count} labels lie outside the session, which is from 0 to {length_s:.1f} s: "
            f"{faults}.{question} Correct them, or take them with --outside"
        )


def _join_first(texts: list[str]) -> str:
    return "; ".join(texts[:_MAX_FAULTS_SHOWN]) + ("; ..." if texts[_MAX_FAULTS_SHOWN:] else "")
