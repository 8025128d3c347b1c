"""The findings of a cue."""

from norm_core.records.flag import Attribute, Evidence, Failure, Polarity, Severity
from norm_core.records.record import record
from norm_monitor.context.turns import Turn

# The measures of each cue that must be at or below their threshold; all others must reach it.
AT_MOST = {
    "timely_answer": "silence before the answer",
    "announced_delay": "filler after",
    "yields_to_user": "robot stops after",
    "too_near": "distance",
    "question_unanswered": "similarity of the reply",
    "wrong_name": "names used that were given",
}


@record
class Finding:
    """One event from one cue. The same `cue_id` and `anchor` mean the same event."""

    cue_id: str
    anchor: str
    polarity: Polarity
    attributes: tuple[Attribute, ...]
    failure: Failure = Failure.SOCIAL
    severity: Severity = Severity.INFO
    probability: float
    onset_ns: int
    offset_ns: int | None = None  # None while the event goes on
    evidence: tuple[Evidence, ...]
    rationale: str
    correction: str = ""
    person_id: str = ""


@record
class LookAgain:
    """The cue cannot decide before this time."""

    at_ns: int


Findings = Finding | LookAgain


def evidence_of(turn: Turn, measure: str, value: float, threshold: float | None = None, unit: str = "") -> Evidence:
    """Return a measured fact about a turn, with the turn's words."""
    return Evidence(
        measure=measure,
        value=round(value, 3),
        threshold=threshold,
        unit=unit,
        start_ns=turn.start_ns,
        end_ns=turn.end_ns,
        source_topic=turn.source_topic,
        utterance_id=turn.turn_id,
        quote=turn.text,
    )


def quote(turn: Turn, most_words: int = 12) -> str:
    """Return a turn's words for a coder's note, shortened."""
    words = turn.text.split()
    return f"“{' '.join(words[:most_words])}{' …' if len(words) > most_words else ''}”"
