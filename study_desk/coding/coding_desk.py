"""Keep the codings of a session: coders' events, their consensus, and who may see what."""

import math
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from norm_core.records.flag import Polarity, Severity
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_MS
from norm_monitor.session_log.labels import sort_labels
from norm_monitor.session_log.recording import Recording
from norm_monitor.session_log.schema import CONSENSUS, Coding, Label, LabelRemoval
from norm_monitor.session_log.study_file import Code, StudyFile
from study_desk.coding.labels import ComparedEvent, collect_done_codings, compare_coders, make_label

_MAX_EVENTS = 10_000  # of one coder
_MAX_CHARACTERS = 500  # of a comment


class CodingError(TactfulError, ValueError):
    """An event or a decision cannot be accepted; the message gives the reason."""


@record
class EventForm:
    """An event as a page sends it, in milliseconds from the session's start. Without `label_id`, it is new."""

    code: str
    start_ms: float
    end_ms: float
    severity: Severity | None = None
    comment: str = ""
    label_id: str = ""


@record
class ConsensusForm:
    """A decision of the coders: an opinion of one of them, another event or, without either, no event."""

    label_id: str
    opinion_of: str = ""
    event: EventForm | None = None


class CodingDesk:
    """The codings of one session. `write` puts a record with its time into the log, and raises if it cannot."""

    def __init__(self, recording: Recording, study: StudyFile, write: Callable[[Any, int], None]) -> None:
        self.recording = recording
        self.codes = {code.id: code for code in study.codebook}
        self.severities = study.defined_severities
        self._write = write
        self._lock = threading.Lock()
        self._drafts: dict[str, dict[str, Label]] = defaultdict(dict)
        self._ids: dict[str, set[str]] = defaultdict(set)  # every id that a coder has used
        versions: list[Label | LabelRemoval] = [*recording.labels, *recording.drafts, *recording.removals]
        for version in versions:
            self._ids[version.coder].add(version.label_id)
        for label in recording.drafts:
            self._drafts[label.coder][label.label_id] = label
        self._coded = collect_done_codings(recording)
        self._decisions = {version.label_id: version for version in versions if version.coder == CONSENSUS}

    def is_done(self, coder: str) -> bool:
        """Whether a coder has coded the whole session, and may see what others found."""
        return coder in self._coded

    def list_labels(self, coder: str) -> tuple[Label, ...]:
        """List a coder's own labels."""
        return self._coded.get(coder) or sort_labels(self._drafts[coder].values())

    def save(self, coder: str, form: EventForm) -> Label:
        """Write a new event of a coder, or a new version of one. Raises CodingError."""
        with self._lock:
            self._check_open(coder)
            ids = self._ids[coder]
            if form.label_id and form.label_id not in ids:
                raise CodingError("there is no such event of yours; load the page again")
            if not form.label_id and len(self._drafts[coder]) >= _MAX_EVENTS:
                raise CodingError(f"a coder has at most {_MAX_EVENTS} events; remove some")
            label = replace(self._make_label(form), coder=coder, label_id=form.label_id or _choose_next_id(ids))
            self._write(label, label.start_ns)
            ids.add(label.label_id)
            self._drafts[coder][label.label_id] = label
            return label

    def remove(self, coder: str, label_id: str) -> None:
        """Remove an event of a coder. Its versions stay in the log. Raises CodingError."""
        with self._lock:
            self._check_open(coder)
            if label_id not in self._drafts[coder]:
                raise CodingError("there is no such event of yours; load the page again")
            self._write(LabelRemoval(coder=coder, label_id=label_id), self._drafts[coder][label_id].start_ns)
            del self._drafts[coder][label_id]

    def finish(self, coder: str) -> None:
        """Mark a coding as done, also with no event. It cannot change afterwards. Raises CodingError."""
        with self._lock:
            self._check_open(coder)
            labels = sort_labels(self._drafts[coder].values())
            self._write(Coding(coder=coder, labels=len(labels)), self.recording.end_ns)
            self._coded = dict(sorted({**self._coded, coder: labels}.items()))

    def show_codings(self, coder: str) -> dict[str, tuple[Label, ...]]:
        """Return all done codings by coder. Raises CodingError for a coder who is still blind."""
        if not self.is_done(coder):
            raise CodingError("you see what others found once you have marked this session as done")
        return self._coded

    def compare(self, coder: str) -> tuple[ComparedEvent, ...]:
        """Compare the done codings, for a coder who is done."""
        return compare_coders(self.show_codings(coder))

    def find_decision(self, label_id: str) -> Label | LabelRemoval | None:
        """Return what the coders decided about a compared event, if they did."""
        return self._decisions.get(label_id)

    def agree(self, coder: str, form: ConsensusForm) -> ComparedEvent:
        """Write a decision of the consensus, which `coder` enters, and return the event. Raises CodingError."""
        with self._lock:
            events = {event.label_id: event for event in self.compare(coder)}
            if len(self._coded) < 2 or form.label_id not in events:
                raise CodingError("there is no such event of two coders; load the page again")
            self._settle(coder, events[form.label_id], form)
            return events[form.label_id]

    def adopt_agreed(self, coder: str) -> int:
        """Copy the events on which all coders agree to the consensus. Return their number. Raises CodingError."""
        with self._lock:
            open_events = [event for event in self.compare(coder) if event.label_id not in self._decisions]
            agreed = [event for event in open_events if event.is_agreed and len(event.opinions) > 1]
            for event in agreed:
                form = ConsensusForm(label_id=event.label_id, opinion_of=event.opinions[0].coder)
                self._settle(coder, event, form)
            return len(agreed)

    def _settle(self, coder: str, event: ComparedEvent, form: ConsensusForm) -> None:
        """Write what the form decides about an event."""
        opinion = next((opinion for opinion in event.opinions if opinion.coder == form.opinion_of), None)
        if form.opinion_of and opinion is None:
            raise CodingError(f"{form.opinion_of}: has no opinion on this event; load the page again")
        label = self._make_label(form.event) if form.event else make_label(opinion) if opinion else None
        decision: Label | LabelRemoval = label or LabelRemoval(coder=CONSENSUS, label_id=event.label_id)
        decision = replace(decision, coder=CONSENSUS, label_id=event.label_id, editor=coder, opinions=event.opinions)
        self._write(decision, event.opinions[0].start_ns)
        self._decisions[event.label_id] = decision

    def _check_open(self, coder: str) -> None:
        if self.is_done(coder):
            raise CodingError("your coding is done and stays as it is; change the consensus instead")

    def _make_label(self, form: EventForm) -> Label:
        """Convert an event to a label without a coder. Raises CodingError."""
        code = self.codes.get(form.code)
        if code is None or code.attribute is None:
            raise CodingError("there is no such code for events in the codebook; load the page again")
        if form.severity and code.polarity is Polarity.COMPETENCE:
            raise CodingError("a competence has no severity; leave it out, or choose an error")
        if not (math.isfinite(form.start_ms) and math.isfinite(form.end_ms)):
            raise CodingError("an event needs a start and an end")
        start_ns, end_ns = (self.recording.start_ns + round(ms * NS_PER_MS) for ms in (form.start_ms, form.end_ms))
        if not self.recording.start_ns <= start_ns <= end_ns <= self.recording.end_ns + NS_PER_MS:
            raise CodingError("an event lies within the session and ends after its start; correct its times")
        if len(form.comment) > _MAX_CHARACTERS:
            raise CodingError(f"a comment has at most {_MAX_CHARACTERS} characters; shorten it")
        return Label(
            start_ns=start_ns,
            end_ns=min(end_ns, self.recording.end_ns),
            polarity=code.polarity,
            attribute=code.attribute,
            code="" if is_hsri(code) else code.id,
            severity=form.severity,
            comment=form.comment.strip(),
        )


def is_hsri(code: Code) -> bool:
    """Whether a code is one of the attributes in a polarity. A label needs no code beside these two then."""
    return code.attribute is not None and code.id == f"{code.polarity.value}_{code.attribute.value}"


def _choose_next_id(ids: Iterable[str]) -> str:
    numbers = [int(label_id[1:]) for label_id in ids if label_id[:1] == "e" and label_id[1:].isdecimal()]
    return f"e{max(numbers, default=0) + 1}"
