"""Reports of cues about a unit: findings, which are evidence, and reasons, which word a flag."""

from norm_core.records.flag import Attribute, Evidence, Failure, Polarity, Severity
from norm_core.records.record import record
from norm_monitor.assessment.unit import Unit
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import sentences

_INNER_MARKS = str.maketrans("“”", "‘’")
_MAX_QUOTED_WORDS = 12


@record
class Reason:
    """The words of a flag, with what a cue measured; a reason alone decides nothing."""

    cue_id: str
    polarity: Polarity
    attributes: tuple[Attribute, ...]
    failure: Failure = Failure.SOCIAL
    severity: Severity = Severity.INFO
    evidence: tuple[Evidence, ...] = ()
    rationale: str
    correction: str = ""


@record
class Finding:
    """The evidence of a sighting or a custom cue on a unit; a newer one of the same cue replaces it.

    Without a probability a finding decides nothing where the unit's facts are weighed.
    """

    unit: Unit
    reason: Reason
    probability: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        """The unit and the cue, which have one finding together."""
        return self.unit.unit_id, self.reason.cue_id


@record
class RequestWindowAt:
    """The answer of a cue that cannot decide before a time."""

    at_ns: int


CueAnswer = Finding | RequestWindowAt


def evidence_of(turn: Turn, measure: str, value: float, threshold: float | None = None, unit: str = "") -> Evidence:
    """Return a measured fact about a turn, with its words."""
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


def quote(turn: Turn) -> str:
    """Return the first words of a turn for a note, with single quotation marks inside."""
    return quote_text(turn.text)


def quote_about(turn: Turn, part: str) -> str:
    """Return the sentence of a turn that contains a part, for a note about that part."""
    return quote_text(next((sentence for sentence in sentences(turn.text) if part in sentence), part))


def quote_end(turn: Turn) -> str:
    """Return the last words of a turn, for a note about its end."""
    words = turn.text.translate(_INNER_MARKS).split()
    return f"“{'… ' if len(words) > _MAX_QUOTED_WORDS else ''}{' '.join(words[-_MAX_QUOTED_WORDS:])}”"


def quote_text(text: str) -> str:
    """Return the first words of a text between quotation marks."""
    words = text.translate(_INNER_MARKS).split()
    return f"“{' '.join(words[:_MAX_QUOTED_WORDS])}{' …' if len(words) > _MAX_QUOTED_WORDS else ''}”"
