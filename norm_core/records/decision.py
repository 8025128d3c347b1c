"""The selector's recommendation, with the reason for each candidate. It is advice, never motion."""

from enum import StrEnum

from norm_core.records.outcome import Outcome
from norm_core.records.provenance import Provenance
from norm_core.records.record import record


class Veto(StrEnum):
    """The reason why a candidate is excluded."""

    NONE = "none"
    SINGLETON = "singleton"  # the ongoing action of another person, which one person does at a time
    OFF_VANTAGE = "off_vantage"  # the robot cannot do it from this viewpoint now
    HARD_RULE = "hard_rule"  # a house rule forbids it in every situation
    PRECONDITION = "precondition"  # the skill's precondition does not hold
    HOUSE_RULE = "house_rule"  # a house rule advises against it in this situation


class Norm(StrEnum):
    """The categories of norms in EgoNormia."""

    SAFETY = "safety"
    PRIVACY = "privacy"
    PROXEMICS = "proxemics"
    POLITENESS = "politeness"
    COOPERATION = "cooperation"
    COORDINATION = "coordination"
    COMMUNICATION = "communication"


# A model gets this docstring as part of its schema.
class Duplicable(StrEnum):
    """Whether several people can do an action at the same time."""

    UNKNOWN = "unknown"
    YES = "yes"  # several people can do it at once, such as applauding
    NO = "no"  # one person does it at a time, such as batting


@record
class OtherAgent:
    """A visible person and what they are doing."""

    agent_id: str
    role: str = ""
    appearance: str = ""
    doing: str
    duplicable: Duplicable = Duplicable.UNKNOWN


@record
class Viewpoint:
    """The robot's position and role; an empty field is unknown."""

    description: str = ""
    place: str = ""
    role: str = ""


@record
class CandidateJudgement:
    """One candidate action with its probability, veto and norms."""

    index: int
    action: str
    probability: float = 0.0
    veto: Veto = Veto.NONE
    veto_reason: str = ""
    sensible: bool = False
    norms: tuple[Norm, ...] = ()


@record
class Decision:
    """A recommended next action; stamp_ns equals decided_ns."""

    stamp_ns: int
    frame_id: str = ""
    decision_id: str
    query_id: str = ""  # of the goal; the event_id of a flag where one asked
    situation: str = ""  # of the request; untrusted text
    question: str = ""  # of the request; untrusted text
    outcome: Outcome
    chosen_index: int | None = None  # index into candidates
    chosen: str = ""
    justification_index: int | None = None  # index into the offered justifications
    justification: str = ""
    sensible: tuple[int, ...] = ()
    candidates: tuple[CandidateJudgement, ...] = ()
    explanation: str = ""
    trade_off: str = ""
    deadline_ns: int | None = None
    decided_ns: int
    provenance: Provenance = Provenance()

    def __post_init__(self) -> None:
        """Check that an answered decision, and no other, has a chosen index, from 0. Raises ValueError."""
        if (self.outcome is Outcome.ANSWERED) != (self.chosen_index is not None):
            raise ValueError(f"decision {self.decision_id}: an action is chosen exactly where it is answered")
        if any(index is not None and index < 0 for index in (self.chosen_index, self.justification_index)):
            raise ValueError(f"decision {self.decision_id}: an index is below 0")
