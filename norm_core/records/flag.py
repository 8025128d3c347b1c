"""Social errors and competences, in the terms of the HSRI (SHREC) taxonomy."""

from enum import StrEnum

from norm_core.records.provenance import Provenance
from norm_core.records.record import record

# The unit of a fact that holds (1) or not (0).
YES_OR_NO = "yes or no"


class FlagState(StrEnum):
    """The life cycle of a flag: opened, updated any number of times, then closed or withdrawn."""

    OPENED = "opened"
    UPDATED = "updated"  # also reopens a withdrawn flag
    CLOSED = "closed"  # final: no more evidence is taken
    WITHDRAWN = "withdrawn"  # the evidence no longer suffices


class Polarity(StrEnum):
    """Social error or social competence."""

    ERROR = "error"
    COMPETENCE = "competence"


class Attribute(StrEnum):
    """The seven social attributes of HSRI."""

    EMOTIONS = "emotions"
    ENGAGEMENT = "engagement"
    CONVERSATIONAL_MECHANICS = "conversational_mechanics"
    KNOWLEDGE_STATE = "knowledge_state"
    USER_INTENTION = "user_intention"
    SOCIAL_CONTEXT_AND_RELATIONSHIPS = "social_context_and_relationships"
    SOCIAL_NORMS_AND_ROUTINES = "social_norms_and_routines"


class Failure(StrEnum):
    """The kind of failure behind a flag."""

    UNSPECIFIED = "unspecified"
    PERFORMANCE = "performance"  # the machine did not do what it was built to do
    SOCIAL = "social"  # the machine worked, and broke a social expectation


class Severity(StrEnum):
    """The severity of an error."""

    INFO = "info"
    MINOR = "minor"
    MAJOR = "major"
    SEVERE = "severe"


class Tier(StrEnum):
    """The source of a flag."""

    CUE = "cue"  # measured facts alone
    JUDGE = "judge"  # a model alone
    FUSED = "fused"  # both


class Verdict(StrEnum):
    """A coder's verdict on a flag."""

    ACCEPT = "accept"
    REJECT = "reject"
    RELABEL = "relabel"


@record
class Evidence:
    """One measured fact behind a flag; `quote` is untrusted text."""

    measure: str
    value: float
    threshold: float | None = None
    weight: float | None = None  # what it adds to the log odds of the flag, if it was weighed
    unit: str = ""
    start_ns: int
    end_ns: int
    source_topic: str = ""
    utterance_id: str = ""
    quote: str = ""


@record
class SocialFlag:
    """One social event. `stamp_ns` equals `decision_ns`; `offset_ns` is None while the event goes on."""

    stamp_ns: int
    frame_id: str = ""
    event_id: str
    state: FlagState
    polarity: Polarity
    attributes: tuple[Attribute, ...]
    failure: Failure = Failure.UNSPECIFIED
    severity: Severity
    probability: float
    threshold: float | None = None  # the probability from which such a flag is raised
    base_log_odds: float | None = None  # with the weights of the evidence, it adds up to the log odds of the flag
    onset_ns: int
    offset_ns: int | None = None
    decision_ns: int
    tier: Tier
    cue_id: str = ""
    person_id: str = ""
    evidence: tuple[Evidence, ...]
    rationale: str
    correction: str = ""
    provenance: Provenance = Provenance()

    def __post_init__(self) -> None:
        """Check that it has evidence, an error a correction, and no end before its onset. Raises ValueError."""
        if not self.evidence:
            raise ValueError(f"flag {self.event_id} has no evidence")
        if self.polarity is Polarity.ERROR and not self.correction:
            raise ValueError(f"flag {self.event_id} is an error without a correction")
        if self.offset_ns is not None and self.offset_ns < self.onset_ns:
            raise ValueError(f"flag {self.event_id} ends before it begins")

    @property
    def known_until_ns(self) -> int:
        """The end of the event, or its onset while the event goes on."""
        return self.onset_ns if self.offset_ns is None else self.offset_ns
