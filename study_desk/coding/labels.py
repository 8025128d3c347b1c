"""Convert flags, reviews and coders' labels to one form: coder, label and interval."""

from collections.abc import Iterable

from norm_core.records.flag import Severity, SocialFlag, Verdict
from study_desk.log.recording import Recording
from study_desk.log.schema import MONITOR, Label, Review


def monitor_labels(recording: Recording) -> tuple[Label, ...]:
    """Make the monitor's labels."""
    return tuple(label for flag in recording.flags for label in flag_labels(flag))


def flag_labels(flag: SocialFlag) -> list[Label]:
    """Make a flag's labels, one per attribute. An open flag ends at its last decision."""
    end_ns = max(flag.onset_ns, flag.decision_ns) if flag.offset_ns is None else flag.offset_ns
    still_open = " (still open when the recording ended)" if flag.offset_ns is None else ""
    return [
        Label(
            start_ns=flag.onset_ns,
            end_ns=end_ns,
            polarity=flag.polarity,
            attribute=attribute,
            code=flag.cue_id,
            severity=flag.severity,
            probability=flag.probability,
            event_id=flag.event_id,
            comment=flag.rationale + still_open,
        )
        for attribute in flag.attributes
    ]


def reviewed_labels(recording: Recording, reviewer: str, *, rejected: bool = False) -> tuple[Label, ...]:
    """Make the flags as a reviewer accepted or relabelled them, or those that the reviewer rejected."""
    reviews = {review.event_id: review for review in recording.reviews if review.reviewer == reviewer}
    pairs = ((flag, reviews.get(flag.event_id)) for flag in recording.flags)
    return tuple(
        label
        for flag, review in pairs
        if review and (review.verdict is Verdict.REJECT) is rejected
        for label in _reviewed(flag, review)
    )


def by_coder(recording: Recording) -> dict[str, tuple[Label, ...]]:
    """Collect each coder's labels: the monitor's, imported ones, and reviewers' verdicts.

    A coder who found nothing has no entry.
    """
    coders: dict[str, list[Label]] = {MONITOR: list(monitor_labels(recording))}
    coders |= {coder: [] for coder in sorted(recording.coders - {MONITOR})}
    for label in recording.labels:
        coders.setdefault(label.coder, []).append(label)  # the consensus is no coder
    for reviewer in {review.reviewer for review in recording.reviews} - coders.keys():
        coders[reviewer] = list(reviewed_labels(recording, reviewer))
    return {coder: in_order(labels) for coder, labels in coders.items()}


def in_order(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Sort labels by start, end, polarity and attribute."""
    return tuple(sorted(labels, key=lambda label: (label.start_ns, label.end_ns, label.polarity, label.attribute)))


def to_note(label: Label, *, instant: bool) -> str:
    """Write the fields that a format lacks into one readable line, which from_note parses."""
    known = {
        "cue": label.code,
        "severity": label.severity.value if label.severity else "",
        "p": "" if label.probability is None else repr(label.probability),
        "event": label.event_id,
    }
    parts = [f"{key}={value}" for key, value in known.items() if value and not any(c.isspace() for c in value)]
    if instant:
        parts.append("instant")
    return f"{' '.join(parts)} | {one_line(label.comment)}"


def from_note(note: str) -> dict[str, object]:
    """Parse the fields in a note. Unknown text becomes the comment, so coders may write freely."""
    head, bar, comment = note.partition(" | ") if " | " in note else note.rstrip().partition(" |")
    fields: dict[str, object] = {}
    try:
        for part in head.split():
            key, _, value = part.partition("=")
            match key:
                case "cue":
                    fields["code"] = value
                case "severity":
                    fields["severity"] = Severity(value)
                case "p":
                    fields["probability"] = float(value)
                case "event":
                    fields["event_id"] = value
                case "verdict":
                    fields["verdict"] = Verdict(value)
                case "instant":
                    fields["instant"] = True
                case "blind" if "verdict" in fields:
                    fields["blind"] = True
                case _:
                    raise ValueError(key)
    except ValueError:
        return {"comment": note.strip()}
    return fields | {"comment": comment} if bar else {"comment": note.strip()}


def severity_named(text: str) -> Severity | None:
    """Return the severity of which a text is the name, in any case."""
    return next((severity for severity in Severity if severity.value == text.strip().casefold()), None)


def one_line(text: str) -> str:
    """Make a single line, without characters that XML and spreadsheets refuse."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _reviewed(flag: SocialFlag, review: Review) -> list[Label]:
    first = flag_labels(flag)[0]
    relabelled = review.verdict is Verdict.RELABEL
    return [
        Label(
            start_ns=first.start_ns,
            end_ns=first.end_ns,
            polarity=(review.polarity if relabelled else None) or flag.polarity,
            attribute=attribute,
            coder=review.reviewer,
            severity=review.severity if relabelled else flag.severity,
            event_id=flag.event_id,
            comment=review.note,
        )
        for attribute in ((review.attributes if relabelled else ()) or flag.attributes)
    ]
