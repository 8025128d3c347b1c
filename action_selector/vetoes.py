"""Veto candidates that cannot or should not be done. Every veto arises here, each with its reason."""

import re
from collections.abc import Sequence

from action_selector.candidates import Candidate
from action_selector.house_rules import HouseRule, HouseRules, find_advised_against, find_forbidden
from action_selector.model_scoring import ask_yes_or_no
from action_selector.observation import Observation, describe_other
from action_selector.retrieval import SentenceEncoding, compute_similarity, match_pairs
from action_selector.selector_config import SelectorConfig
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Prompt
from norm_core.engines.reply import Scores
from norm_core.engines.request_context import Deadline
from norm_core.records.decision import Duplicable, Norm, OtherAgent, Veto
from norm_core.records.record import record

# A robot that speaks to another agent, helps it or waits for it does not do the same, however similar the words.
_RESPONSE_VERBS = {
    *("ask", "tell", "warn", "alert", "remind", "inform", "call", "greet", "thank", "praise", "applaud"),
    *("offer", "help", "assist", "join", "rescue", "evacuate", "wait", "watch"),
}
# From this similarity on, it is almost certainly the same action.
_SURE_THRESHOLD = 0.6
# A pair that is excluded has similarity -1, below the lowest threshold of a match.
_MIN_MATCH_THRESHOLD = -0.99
_MAX_NAME_LENGTH = 80


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
    """Find the vetoes that need no model, by index; `rules` are those of this situation.

    Of several reasons, the first in this order is named. A repeated candidate shares the veto of its first occurrence.
    """
    actions = [candidate.action for candidate in candidates]
    against = find_advised_against(actions, rules, sentences, config.action_threshold)
    never = find_forbidden(actions, house.hard, sentences, config.action_threshold)
    # A candidate with another veto may still be the best match of an agent, so all candidates take part.
    taken = _veto_taken(candidates, observation, sentences, config.match_threshold) if config.veto_others else {}
    vetoed: dict[int, Vetoed] = {}
    for index, candidate in enumerate(candidates):
        if not candidate.is_none and not strip_instructions(candidate.action):
            veto = Vetoed(veto=Veto.HARD_RULE, reason="it tells how to choose, and names nothing to do")
        elif index in never:
            veto = Vetoed(veto=Veto.HARD_RULE, reason=never[index])
        elif index in against:
            veto = Vetoed(veto=Veto.HOUSE_RULE, reason=against[index])
        elif candidate.unmet:
            veto = Vetoed(veto=Veto.PRECONDITION, reason=candidate.unmet)
        elif index in taken:
            veto = taken[index]
        else:
            continue
        vetoed[candidate.same_as] = veto
    return vetoed


def ask_viewpoint(
    engine: Engine, prefix: Prompt, candidates: Sequence[Candidate], deadline: Deadline, *, role: str, threshold: float
) -> tuple[dict[int, Vetoed], Scores | None]:
    """Veto candidates whose probability of being possible from here, now, is below `threshold`.

    Returns also the first reply of the model without an answer.
    """
    actions = {candidate.index: candidate.action for candidate in candidates if not candidate.is_none}
    possible, failed = ask_yes_or_no(engine, prefix, actions, "possible", deadline)
    veto = Vetoed(veto=Veto.OFF_VANTAGE, reason=f"it cannot be done from here{f' as {role}' if role else ''}, now")
    return {index: veto for index, probability in possible.items() if probability < threshold}, failed


def _veto_taken(
    candidates: Sequence[Candidate], observation: Observation, sentences: SentenceEncoding, threshold: float
) -> dict[int, Vetoed]:
    """Veto the candidates that another agent already does, by index. Each agent vetoes at most one.

    An action that several can do together, such as applauding, vetoes nothing. An action of which this is unknown
    vetoes, because models often copy what others do. Responses to the agent and actions for safety are exempt.
    """
    doers = [other for other in observation.others if describe_other(other) and other.duplicable is not Duplicable.YES]
    actions = [candidate.action for candidate in candidates]
    similarities = compute_similarity(sentences, actions, [describe_other(other) for other in doers])
    for row, candidate in enumerate(candidates):
        for column, doer in enumerate(doers):
            if Norm.SAFETY in candidate.norms or _is_response(candidate.action, doer.doing):
                similarities[row, column] = -1.0
    vetoes: dict[int, Vetoed] = {}
    for row, column in match_pairs(similarities, max(threshold, _MIN_MATCH_THRESHOLD)).items():
        verb = "is" if similarities[row, column] >= _SURE_THRESHOLD else "seems to be"
        vetoes[row] = Vetoed(
            veto=Veto.SINGLETON,
            reason=f"{_name_other(doers[column])} {verb} doing that already",
            matched=observation.others.index(doers[column]),
        )
    return vetoes


def _is_response(action: str, doing: str) -> bool:
    """Decide whether an action responds to another's activity instead of repeating it."""
    verb = next(iter(re.findall(r"\w+", action.lower().removeprefix("please "))), "")
    return verb in _RESPONSE_VERBS and not re.search(rf"\b{verb.removesuffix('e')}", doing.lower())


def _name_other(other: OtherAgent) -> str:
    """Name another agent by its appearance, or otherwise its role."""
    name = other.appearance.strip() or (f"the {other.role.strip()}" if other.role.strip() else "someone else")
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 1]}…"
