"""Which candidates fall before any choice, and why: rules, preconditions, others' actions, the viewpoint."""

from collections.abc import Mapping, Sequence

from action_selector.candidates import Candidate
from action_selector.likeness import Sentences, likeness, match
from action_selector.observe import Observation, said_of
from action_selector.orders import meaning
from norm_core.decision import Duplicable, OtherAgent, Veto
from norm_core.record import record


@record
class Fallen:
    """Why a candidate does not stand; matched is the place of the other whose action it is, or -1."""

    veto: Veto
    reason: str
    matched: int = -1


def of_preconditions(candidates: Sequence[Candidate]) -> dict[int, Fallen]:
    """Those whose skill cannot be done now."""
    return {
        candidate.index: Fallen(veto=Veto.PRECONDITION, reason=candidate.unmet)
        for candidate in candidates
        if candidate.unmet
    }


def of_orders(candidates: Sequence[Candidate]) -> dict[int, Fallen]:
    """Those that only tell how to choose: nothing that could be done is left of them."""
    return {
        candidate.index: Fallen(veto=Veto.HARD_RULE, reason="it tells how to choose, and names nothing to do")
        for candidate in candidates
        if not candidate.is_none and not meaning(candidate.action)
    }


def of_hard_rules(reasons: Mapping[int, str]) -> dict[int, Fallen]:
    """Those that a rule of the house forbids."""
    return {index: Fallen(veto=Veto.HARD_RULE, reason=reason) for index, reason in reasons.items()}


def of_others(
    candidates: Sequence[Candidate], observation: Observation, sentences: Sentences, least: float
) -> dict[int, Fallen]:
    """Those that another is doing already. Each other takes at most one, so that two others never take three.

    An action known to be open to several at once, as applauding, takes none. One of which that is not known
    counts as taken, as doing what another does is the error that models make.
    """
    doers = [other for other in observation.others if said_of(other) and other.duplicable is not Duplicable.YES]
    actions = [candidate.action for candidate in candidates]
    pairs = match(likeness(sentences, actions, [said_of(other) for other in doers]), least)
    fallen = {
        candidates[place].index: Fallen(
            veto=Veto.SINGLETON,
            reason=f"{_named(doers[doer])} is doing that already",
            matched=observation.others.index(doers[doer]),
        )
        for place, doer in pairs.items()
    }
    # The same words offered twice fall together: a repetition must not outlive what it repeats.
    of_text = {candidates[place].action.strip(): candidates[place].index for place in pairs}
    for candidate in candidates:
        first = of_text.get(candidate.action.strip())
        if first is not None and candidate.index not in fallen:
            fallen[candidate.index] = fallen[first]
    return fallen


def of_viewpoint(impossible: Mapping[int, float], where: str, most: float) -> dict[int, Fallen]:
    """Those that a model holds possible from here with less probability than most."""
    place = f" as {where}" if where else ""
    return {
        index: Fallen(veto=Veto.OFF_VANTAGE, reason=f"it cannot be done from here{place}, now")
        for index, possible in impossible.items()
        if possible < most
    }


def _named(other: OtherAgent) -> str:
    """How a person would tell this other from the rest; never longer than a phrase."""
    name = other.appearance.strip() or (f"the {other.role.strip()}" if other.role.strip() else "someone else")
    return name if len(name) <= 80 else f"{name[:79]}…"
