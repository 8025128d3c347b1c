"""What a form is read for: one session of a log, and the codes that its labels may have."""

import re
from dataclasses import field
from typing import Any

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_MS, NS_PER_S, ns_to_s
from study_desk.coding.forms.sheet import FormError, attributes_in
from study_desk.log.schema import Label
from study_desk.study.study_file import HSRI, Code

# Media may run on after the last entry of a log, and labels last until their end.
_MEDIA_TAIL_NS = NS_PER_S


@record
class FormPart:
    """What a form holds for one session. Empty: the form does not say it."""

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
    end_ns: int | None = None  # None: labels may lie outside the session
    codebook: tuple[Code, ...] = HSRI
    outside: list[str] = field(default_factory=list)  # labels that lie outside the session, as they are read

    def find_code(self, text: str) -> Code | None:
        """Find the code of the codebook that a name means, or whose polarity and attribute it contains."""
        plain = re.sub(r" \+\d+$", "", text.rpartition(": ")[2].strip()).casefold()
        named = (code for code in self.codebook if plain in (code.id.casefold(), code.name.casefold()))
        if found := next(named, None):
            return found
        kind = (attributes_in(text, list(Polarity)), attributes_in(text, list(Attribute)))
        return next((code for code in HSRI if (code.polarity.value, code.attribute) == kind), None)

    def code_of(self, place: str, text: str) -> Code:
        """Find a code. Raises FormError with the place in the form."""
        if code := self.find_code(text):
            return code
        known = ", ".join([f'"{HSRI[0].name}"', *(code.id for code in self.codebook if code not in HSRI)])
        raise FormError(
            f"{place}: {text!r} is no code of the study, such as {known}: rename it, or add it to codes in study.yaml"
        )

    def label(self, place: str, times_ns: tuple[int, int], code: Code, *, coder: str, fields: dict[str, Any]) -> Label:
        """Make a label. Raises FormError with its place in the form."""
        start_ns, end_ns = times_ns
        who = self.coder or coder
        if not who:
            raise FormError(f"{place}: names no coder; give --coder")
        if code.attribute is None:
            raise FormError(f"{place}: code {code.id} counts as no attribute of HSRI; give it one in study.yaml")
        begin_s, end_s = (ns_to_s(ns - self.origin_ns) for ns in times_ns)
        if end_ns < start_ns:
            raise FormError(f"{place}: a label ends at {end_s:g} s, before it begins at {begin_s:g} s; correct one")
        is_early = start_ns <= self.origin_ns - NS_PER_MS
        if self.end_ns is not None and (
            is_early or start_ns >= self.end_ns + NS_PER_MS or end_ns > self.end_ns + _MEDIA_TAIL_NS
        ):
            self.outside.append(f"{place}: {begin_s:.1f} to {end_s:.1f} s")
        own = "" if code in HSRI else code.id
        return Label(
            start_ns=start_ns,
            end_ns=end_ns,
            polarity=code.polarity,
            attribute=code.attribute,
            coder=who,
            **{**fields, "code": own or fields.get("code", "")},
        )
