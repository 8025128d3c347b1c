"""Veto candidates that cannot or should not be done. Every veto arises here, each with its reason."""

import re
from collections.abc import Sequence

from action_selector.candidates import Candidate
from action_selector.choose.candidate_scoring import yes_by_engine
from action_selector.house_rules import HouseRule, HouseRules, advised_against, forbidden
from action_selector.observation import Observation, describe_other
from action_selector.request import SelectorConfig
from action_selector.retrieval import SentenceEncoding, match_pairs, similarity
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Prompt
from norm_core.engines.reply import Scores
from norm_core.engines.request_context import Deadline
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


def find_vetoes(
    candidates: Sequence[Candidate],
    observation: Observation,
    *,
    rules: Sequence[HouseRule],
    house: HouseRules,
    sentences: SentenceEncoding,
    config: SelectorConfig,
) -> dict[int, Vetoed]:
    """Return the veto of each candidate that falls without asking a model; `rules` are those of this situation.

    Of several reasons the first here is named. A repeated candidate shares the veto of its first occurrence.
    """
    actions = [candidate.action for candidate in candidates]
    against = advised_against(actions, rules, sentences, config.action_least)
    never = forbidden(actions, house.hard, sentences, config.action_least)
    # Use all candidates: one with another veto may still be the match of another agent.
    taken = _of_others(candidates, observation, sentences, config.match_least) if config.veto_others else {}
    vetoed: dict[int, Vetoed] = {}
    for place, candidate in enumerate(candidates):
        if not candidate.is_none and not strip_instructions(candidate.action):
            fall = Vetoed(veto=Veto.HARD_RULE, reason="it tells how to choose, and names nothing to do")
        elif place in never:
            fall = Vetoed(veto=Veto.HARD_RULE, reason=never[place])
        elif place in against:
            fall = Vetoed(veto=Veto.HOUSE_RULE, reason=against[place])
        elif candidate.unmet:
            fall = Vetoed(veto=Veto.PRECONDITION, reason=candidate.unmet)
        elif place in taken:
            fall = taken[place]
        else:
            continue
        vetoed[candidate.same_as] = fall
    return vetoed


def ask_viewpoint(
    engine: Engine, prefix: Prompt, candidates: Sequence[Candidate], deadline: Deadline, *, role: str, least: float
) -> tuple[dict[int, Vetoed], Scores | None]:
    """Veto what a model finds impossible from here, now; return the first reply without an answer too.

    A candidate falls below the probability `least`.
    """
    asked = {candidate.index: candidate.action for candidate in candidates if not candidate.is_none}
    possible, failed = yes_by_engine(engine, prefix, asked, "possible", deadline)
    reason = f"it cannot be done from here{f' as {role}' if role else ''}, now"
    off = {index: Vetoed(veto=Veto.OFF_VANTAGE, reason=reason) for index, p in possible.items() if p < least}
    return off, failed


def _of_others(
    candidates: Sequence[Candidate], observation: Observation, sentences: SentenceEncoding, least: float
) -> dict[int, Vetoed]:
    """Return, by place, the candidates that another agent already does. Each agent vetoes at most one.

    An action known as shared, such as applauding, vetoes nothing. Unknown actions count as exclusive, because models
    often copy what others do. Responses to the agent, and actions stated to serve safety, are exempt.
    """
    doers = [other for other in observation.others if describe_other(other) and other.duplicable is not Duplicable.YES]
    alike = similarity(
        sentences, [offered.action for offered in candidates], [describe_other(other) for other in doers]
    )
    for place, candidate in enumerate(candidates):
        for number, other in enumerate(doers):
            if Norm.SAFETY in candidate.norms or _answers(candidate.action, other.doing):
                alike[place, number] = -1.0
    return {
        place: Vetoed(
            veto=Veto.SINGLETON,
            reason=f"{_named(doers[doer])} {'is' if alike[place, doer] >= _SURE else 'seems to be'} doing that already",
            matched=observation.others.index(doers[doer]),
        )
        for place, doer in match_pairs(alike, max(least, -0.99)).items()
    }


def _answers(action: str, doing: str) -> bool:
    """Whether an action responds to the other's activity instead of repeating it."""
    verb = next(iter(re.findall(r"\w+", action.lower().removeprefix("please "))), "")
    return verb in _ANSWERS and not re.search(rf"\b{verb.removesuffix('e')}", doing.lower())


def _named(other: OtherAgent) -> str:
    name = other.appearance.strip() or (f"the {other.role.strip()}" if other.role.strip() else "someone else")
    return name if len(name) <= 80 else f"{name[:79]}…"
