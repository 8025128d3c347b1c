"""Veto candidates before the choice: by rules, preconditions, others' actions and viewpoint."""

import re
from collections.abc import Mapping, Sequence

from action_selector.candidates import Candidate
from action_selector.observation import Observation, describe_others
from action_selector.retrieve.likeness import SentenceEncoding, match_pairs, similarity
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.records.decision import Duplicable, Norm, OtherAgent, Veto
from norm_core.records.record import record

# Who speaks to another agent, helps it or waits for it does not do the same, however similar the words.
_ANSWERS = {
    *("ask", "tell", "warn", "alert", "remind", "inform", "call", "greet", "thank", "praise", "applaud"),
    *("offer", "help", "assist", "join", "rescue", "evacuate", "wait", "watch"),
}
# From this cosine on, it is almost certainly the same action.
_SURE = 0.6


@record
class Vetoed:
    """The reason of a veto. `matched` is the index of the other agent whose action it is."""

    veto: Veto
    reason: str
    matched: int | None = None


def first_of(*by_priority: Mapping[int, Vetoed]) -> dict[int, Vetoed]:
    """Merge vetoes by candidate. Where several veto the same one, the first is named."""
    return {index: vetoed for vetoes in reversed(by_priority) for index, vetoed in vetoes.items()}


def of_preconditions(candidates: Sequence[Candidate]) -> dict[int, Vetoed]:
    """Veto candidates whose preconditions fail."""
    return {
        candidate.index: Vetoed(veto=Veto.PRECONDITION, reason=candidate.unmet)
        for candidate in candidates
        if candidate.unmet
    }


def of_orders(candidates: Sequence[Candidate]) -> dict[int, Vetoed]:
    """Veto candidates that contain only instructions to the chooser."""
    return {
        candidate.index: Vetoed(veto=Veto.HARD_RULE, reason="it tells how to choose, and names nothing to do")
        for candidate in candidates
        if not candidate.is_none and not strip_instructions(candidate.action)
    }


def of_house_rules(advised_against: Mapping[int, str], forbidden: Mapping[int, str]) -> dict[int, Vetoed]:
    """Veto candidates that a house rule advises against in this situation, or forbids in every one."""
    return first_of(
        {index: Vetoed(veto=Veto.HARD_RULE, reason=reason) for index, reason in forbidden.items()},
        {index: Vetoed(veto=Veto.HOUSE_RULE, reason=reason) for index, reason in advised_against.items()},
    )


def of_others(
    candidates: Sequence[Candidate], observation: Observation, sentences: SentenceEncoding, least: float
) -> dict[int, Vetoed]:
    """Veto candidates that another agent already does. Each agent vetoes at most one candidate.

    An action known as shared, such as applauding, vetoes nothing. Unknown actions count as exclusive, because models
    often copy what others do. Responses to the agent, and actions stated to serve safety, are exempt.
    """
    doers = [other for other in observation.others if describe_others(other) and other.duplicable is not Duplicable.YES]
    alike = similarity(
        sentences, [offered.action for offered in candidates], [describe_others(other) for other in doers]
    )
    for place, candidate in enumerate(candidates):
        for number, other in enumerate(doers):
            if Norm.SAFETY in candidate.norms or _answers(candidate.action, other.doing):
                alike[place, number] = -1.0
    return {
        candidates[place].index: Vetoed(
            veto=Veto.SINGLETON,
            reason=f"{_named(doers[doer])} {'is' if alike[place, doer] >= _SURE else 'seems to be'} doing that already",
            matched=observation.others.index(doers[doer]),
        )
        for place, doer in match_pairs(alike, max(least, -0.99)).items()
    }


def of_viewpoint(impossible: Mapping[int, float], where: str, most: float) -> dict[int, Vetoed]:
    """Veto candidates whose probability of being possible from here is below `most`."""
    place = f" as {where}" if where else ""
    return {
        index: Vetoed(veto=Veto.OFF_VANTAGE, reason=f"it cannot be done from here{place}, now")
        for index, possible in impossible.items()
        if possible < most
    }


def _answers(action: str, doing: str) -> bool:
    """Whether an action responds to the other's activity instead of repeating it."""
    verb = next(iter(re.findall(r"\w+", action.lower().removeprefix("please "))), "")
    return verb in _ANSWERS and not re.search(rf"\b{verb.removesuffix('e')}", doing.lower())


def _named(other: OtherAgent) -> str:
    """Describe this agent in a short phrase that identifies it."""
    name = other.appearance.strip() or (f"the {other.role.strip()}" if other.role.strip() else "someone else")
    return name if len(name) <= 80 else f"{name[:79]}…"
