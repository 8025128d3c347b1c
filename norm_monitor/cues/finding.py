"""What a cue finds."""

from norm_core.records.flag import Attribute, Evidence, Failure, Polarity, Severity
from norm_core.records.record import record
from norm_monitor.context.turns import Turn

# By cue, the measures that must lie at or below their threshold; every other must reach it.
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
    """One happening, as one cue sees it. The same cue_id and anchor mean the same happening seen again."""

    cue_id: str
    anchor: str
    polarity: Polarity
    attributes: tuple[Attribute, ...]
    failure: Failure = Failure.SOCIAL
    severity: Severity = Severity.INFO
    probability: float
    onset_ns: int
    offset_ns: int | None = None  # None while it goes on
    evidence: tuple[Evidence, ...]
    rationale: str
    correction: str = ""
    person_id: str = ""


@record
class LookAgain:
    """A cue cannot tell before this time has come."""

    at_ns: int


Findings = Finding | LookAgain


def evidence_of(turn: Turn, measure: str, value: float, threshold: float | None = None, unit: str = "") -> Evidence:
    """A measured fact about a turn, with its words."""
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
    """A turn's words for a coder's note, shortened."""
    words = turn.text.split()
    return f"“{' '.join(words[:most_words])}{' …' if len(words) > most_words else ''}”"
