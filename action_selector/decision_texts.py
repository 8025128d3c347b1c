"""One-line explanations of a recommendation, or of its absence."""

from collections.abc import Mapping, Sequence

from action_selector.veto.vetoes import Vetoed
from norm_core.records.decision import Veto

_LONGEST = 300
# The vetoes that a person would ask about, the most important first.
_TELLING = (Veto.HARD_RULE, Veto.HOUSE_RULE, Veto.SINGLETON, Veto.OFF_VANTAGE, Veto.PRECONDITION)


def explain_choice(action: str, reason: str, vetoed: Mapping[int, Vetoed], texts: Mapping[int, str]) -> str:
    """Explain the recommended action, its reason and the most important veto."""
    choice = one_line(action, 140).rstrip(".") if action.strip() else "None of what was offered"
    because = f": {one_line(reason, 110).rstrip('.')}" if reason.strip() else ""
    index = min(vetoed, key=lambda index: _TELLING.index(vetoed[index].veto), default=None)
    rejected = "" if index is None else f" (not “{one_line(texts[index], 80)}”: {vetoed[index].reason})"
    return one_line(f"{choice}{because}.{rejected}", _LONGEST)


def explain_uncertainty(actions: Sequence[str], advice: str) -> str:
    """List the candidates that could be right, and what happens now."""
    shown = " or ".join(f"“{one_line(action, 60) or 'none of them'}”" for action in actions[:3])
    more = f" or {len(actions) - 3} more" if len(actions) > 3 else ""
    return one_line(f"{advice}: {shown}{more} could be right.", _LONGEST)


def explain_no_candidate(vetoed: Mapping[int, Vetoed], texts: Mapping[int, str]) -> str:
    """Explain why every candidate was vetoed."""
    reasons = "; ".join(f"“{one_line(texts[index], 40)}”: {fall.reason}" for index, fall in list(vetoed.items())[:3])
    return one_line(f"No candidate stands: {reasons}.", _LONGEST)


def one_line(text: str, longest: int) -> str:
    """Remove line breaks, and cut at `longest` characters."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
