"""Questions and answers that the tests of the selector share."""

from typing import Any

from action_selector.decider import Decider
from action_selector.request import Request
from action_selector.selector_config import SelectorConfig, WhenUnsure
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.decision import Decision, Duplicable, OtherAgent, Veto
from norm_core.records.flag import Attribute, Evidence, FlagState, Polarity, Severity, SocialFlag, Tier
from norm_core.records.window import Window
from norm_core.runtime.time import NS_PER_S, ReplayClock
from tests.node_records import camera_frame

NOW_NS = 100 * NS_PER_S
BEST_EFFORT = SelectorConfig(when_unsure=WhenUnsure.BEST_EFFORT)


def other(doing: str, role: str = "", appearance: str = "", duplicable: Duplicable = Duplicable.UNKNOWN) -> OtherAgent:
    return OtherAgent(agent_id=doing[:8], role=role, appearance=appearance, doing=doing, duplicable=duplicable)


def request(*candidates: str, **fields: Any) -> Request:
    return Request(query_id="q", candidates=candidates, **{"others": (), **fields})


def decide(
    sentences: SentenceEncoder,
    asked: Request,
    config: SelectorConfig = BEST_EFFORT,
    deadline_ns: int | None = None,
    **parts: Any,
) -> Decision:
    deadline = Deadline(ReplayClock(NOW_NS), deadline_ns)
    return Decider(sentences, config, **parts).decide(asked, deadline).decision


def list_vetoes(decision: Decision) -> list[Veto]:
    """The vetoes of a decision, by candidate."""
    return [candidate.veto for candidate in decision.candidates]


def window(age_s: float = 0.5, jpeg: bytes = b"", **fields: Any) -> Window:
    """Five seconds that end now, with one frame of that age."""
    stamp_ns = NOW_NS - round(age_s * NS_PER_S)
    frame = camera_frame(stamp_ns, jpeg, 64, 48)
    return Window(start_ns=min(stamp_ns, NOW_NS - 5 * NS_PER_S), end_ns=NOW_NS + 1, frames=(frame,), **fields)


def error_flag(event_id: str, **fields: Any) -> SocialFlag:
    """An error that has just opened: the robot leaves a question without an answer."""
    defaults: dict[str, Any] = {
        "state": FlagState.OPENED,
        "polarity": Polarity.ERROR,
        "rationale": "The robot does not answer the question.",
        "correction": "Answer the person, and apologise for the wait.",
        "stamp_ns": NOW_NS,
        "attributes": (Attribute.CONVERSATIONAL_MECHANICS,),
        "severity": Severity.MAJOR,
        "probability": 0.9,
        "onset_ns": NOW_NS,
        "decision_ns": NOW_NS,
    }
    return SocialFlag(
        event_id=event_id,
        tier=Tier.CUE,
        evidence=(Evidence(measure="silence", value=8.0, start_ns=0, end_ns=NOW_NS),),
        **{**defaults, **fields},
    )
