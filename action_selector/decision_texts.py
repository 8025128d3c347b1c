"""One line that tells a person what is recommended and why, or why nothing is."""

from collections.abc import Mapping, Sequence

from action_selector.veto.vetoes import Vetoed
from norm_core.records.decision import Veto

_LONGEST = 300
# What of those that fell a person would ask about first.
_TELLING = (Veto.HARD_RULE, Veto.SINGLETON, Veto.OFF_VANTAGE, Veto.PRECONDITION)


def explain_choice(action: str, reason: str, fallen: Mapping[int, Vetoed], texts: Mapping[int, str]) -> str:
    """What is recommended, the reason, and the most telling of what fell."""
    what = one_line(action, 140).rstrip(".") if action.strip() else "None of what was offered"
    because = f": {one_line(reason, 110).rstrip('.')}" if reason.strip() else ""
    index = min(fallen, key=lambda index: _TELLING.index(fallen[index].veto), default=None)
    told = "" if index is None else f" (not “{one_line(texts[index], 80)}”: {fallen[index].reason})"
    return one_line(f"{what}{because}.{told}", _LONGEST)


def explain_uncertainty(actions: Sequence[str], advice: str) -> str:
    """Which candidates could be right, and what is done about it."""
    shown = " or ".join(f"“{one_line(action, 60) or 'none of them'}”" for action in actions[:3])
    more = f" or {len(actions) - 3} more" if len(actions) > 3 else ""
    return one_line(f"{advice}: {shown}{more} could be right.", _LONGEST)


def explain_no_candidate(fallen: Mapping[int, Vetoed], texts: Mapping[int, str]) -> str:
    """Why every candidate fell."""
    told = "; ".join(f"“{one_line(texts[index], 40)}”: {fall.reason}" for index, fall in list(fallen.items())[:3])
    return one_line(f"No candidate stands: {told}.", _LONGEST)


def one_line(text: str, longest: int) -> str:
    """Text without line breaks, cut at longest."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
