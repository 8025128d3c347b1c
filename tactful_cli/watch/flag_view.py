"""Flags as they open, change and end."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import median

from norm_core.records.flag import Evidence, FlagState, Polarity, SocialFlag
from norm_core.records.record import record
from norm_core.runtime.time import ns_to_s
from norm_core.runtime.wording import count_of, in_words
from norm_monitor.fusion.explanation import addition, measurement
from tactful_cli.watch.node_view import Tone, WatchRow

# A monitor that has gone closes nothing; the oldest is then forgotten.
MAX_FLAGS = 1000
SHOWN_EVIDENCE = 3
LATENCIES = 100


@record
class KnownFlag:
    """A flag with the number by which a person tells it from others."""

    number: int
    flag: SocialFlag
    reasons: frozenset[str] = frozenset()  # that were told


class FlagView:
    """The flags that are not closed, numbered in the order of their appearance."""

    def __init__(self) -> None:
        self.count = 0
        self._known: dict[str, KnownFlag] = {}
        self._delays_ns: deque[int] = deque(maxlen=LATENCIES)

    @property
    def open(self) -> list[KnownFlag]:
        """The flags that are open, in the order of their numbers."""
        known = (known for known in self._known.values() if known.flag.state is not FlagState.WITHDRAWN)
        return sorted(known, key=lambda known: known.number)

    @property
    def delay_s(self) -> float | None:
        """The median time from an event's onset to its flag; None before the first."""
        return ns_to_s(round(median(self._delays_ns))) if self._delays_ns else None

    def take(self, flag: SocialFlag, *, shadow: bool = False) -> Iterator[WatchRow]:
        """Take one state of a flag."""
        before = self._known.pop(flag.event_id, None)
        if before is None:
            self.count += 1
        told = before.reasons if before else frozenset()
        known = KnownFlag(number=before.number if before else self.count, flag=flag, reasons=told | {flag.rationale})
        if flag.state is not FlagState.CLOSED:
            self._known[flag.event_id] = known
        if len(self._known) > MAX_FLAGS:
            del self._known[next(iter(self._known))]
        if flag.state is FlagState.OPENED:
            self._delays_ns.append(flag.decision_ns - flag.onset_ns)
        is_news = (
            before is None or before.flag.state is FlagState.WITHDRAWN or before.flag.polarity is not flag.polarity
        )
        if flag.state in {FlagState.CLOSED, FlagState.WITHDRAWN} and before:
            changes = [f"{attributes(flag)}, probability {flag.probability:.2f}"]
        elif is_news:
            changes = [_about(flag)]
        else:
            changes = list(_changes(before, flag)) if before else []
        if not changes:
            return
        name = f"#{known.number} {kind(flag)} {_state(flag, before)}{' in the shadow' if shadow else ''}"
        has_reason = is_news or flag.rationale not in told
        was = [("was", before.flag.rationale)] if before and flag.state is FlagState.WITHDRAWN else []
        yield WatchRow(
            label="flag",
            text=f"{name}: {', '.join(changes)}",
            tone=tone(flag),
            details=(*was, *_reasons(flag)) if has_reason else (),
        )

    def forget(self) -> Iterator[WatchRow]:
        """Take that the monitor began anew: nobody closes the flags of before."""
        if self.open:
            numbers = ", ".join(f"#{known.number}" for known in self.open[:10])
            more = " and others" if len(self.open) > 10 else ""
            yield WatchRow(label="flag", text=f"{numbers}{more} without an end, as the monitor started anew")
        self._known.clear()


def kind(flag: SocialFlag) -> str:
    """Return the polarity as a person tells it from afar."""
    return "ERROR" if flag.polarity is Polarity.ERROR else "competence"


def tone(flag: SocialFlag) -> Tone:
    """Return the style of a flag."""
    if flag.state is FlagState.WITHDRAWN:
        return Tone.PLAIN
    return Tone.BAD if flag.polarity is Polarity.ERROR else Tone.GOOD


def attributes(flag: SocialFlag) -> str:
    """Return the attributes in words."""
    return ", ".join(in_words(attribute.value) for attribute in flag.attributes)


def _state(flag: SocialFlag, before: KnownFlag | None) -> str:
    if flag.state is FlagState.UPDATED and before and before.flag.state is FlagState.WITHDRAWN:
        return "opened again"
    return flag.state.value


def _about(flag: SocialFlag) -> str:
    severity = f"{flag.severity.value}, " if flag.polarity is Polarity.ERROR else ""
    delay_s = ns_to_s(flag.decision_ns - flag.onset_ns)
    return f"{severity}{attributes(flag)}, probability {flag.probability:.2f}, {delay_s:.1f} s after its onset"


def _changes(before: KnownFlag, new: SocialFlag) -> Iterator[str]:
    """Yield what a person has not read yet; the order of attributes and a reason of before are no news."""
    old = before.flag
    if (was := f"{old.probability:.2f}") != (now := f"{new.probability:.2f}"):
        yield f"probability from {was} to {now}"
    if old.severity is not new.severity and new.polarity is Polarity.ERROR:
        yield f"severity from {old.severity.value} to {new.severity.value}"
    if set(old.attributes) != set(new.attributes):
        yield f"now about {attributes(new)}"
    if new.rationale not in before.reasons:
        yield "another reason"
    if old.offset_ns is None and new.offset_ns is not None:
        yield f"it lasted {ns_to_s(new.offset_ns - new.onset_ns):.1f} s"


def _reasons(flag: SocialFlag) -> Iterator[tuple[str, str]]:
    yield "why", flag.rationale
    shown = sorted(flag.evidence, key=_importance)[:SHOWN_EVIDENCE]
    told = flag.rationale
    for evidence in shown:
        text = measurement(replace(evidence, quote="") if evidence.quote in told else evidence)
        yield "measured", text
        told += text  # a quote is read once
    if more := len(flag.evidence) - len(shown):
        yield "", f"and {count_of(more, 'more measurement')}"
    if total := addition(flag):
        yield "sum", total
    if flag.correction and flag.state is not FlagState.WITHDRAWN:
        yield "instead", flag.correction


def _importance(evidence: Evidence) -> tuple[bool, float]:
    """Sort what was held against a threshold first, then what weighed most."""
    return evidence.threshold is None, -abs(evidence.weight or 0.0)


def count_open(flags: Iterable[KnownFlag]) -> str:
    """Count the open errors and competences."""
    errors = sum(known.flag.polarity is Polarity.ERROR for known in flags)
    return f"{count_of(errors, 'error')} and {count_of(len(list(flags)) - errors, 'competence')} open"
