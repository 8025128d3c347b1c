"""The judge's note: one claim of at most 30 words, one quote that was really said, and a correction."""

from pydantic import BaseModel

from norm_core.records.flag import Polarity
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import sentences, tokens, word_count
from norm_monitor.cues.finding import quote
from norm_monitor.units.unit import Unit, UnitKind
from norm_monitor.units.unit_view import UnitView

MOST_WORDS = 30
_NO_CORRECTION = "Review this moment: the model gave no correction."


class Note(BaseModel):
    """A coder's note on what the robot did, as the model writes it."""

    rationale: str = ""
    quote: str = ""
    correction: str = ""


def rationale_of(note: Note, view: UnitView, polarity: Polarity) -> str:
    """Return the first claim of the note; without one, what the model judged."""
    claim = next(iter(sentences(" ".join(note.rationale.split()))), "")
    if claim:
        return claim if word_count(claim) <= MOST_WORDS else f"{' '.join(claim.split()[:MOST_WORDS])} …"
    return f"The model takes {_named(view)} for a social {polarity.value}."


def correction_of(note: Note) -> str:
    """Return what the robot should do instead; an error is never without it."""
    return " ".join(note.correction.split()) or _NO_CORRECTION


def quote_of(note: Note, view: UnitView) -> str:
    """Return the note's quote if it was said, else the words of the unit's own turn, if it has any."""
    wanted = tokens(note.quote)
    said = any(_contains(tokens(turn.text), wanted) for turn in view.turns) if wanted else False
    own = _own_turn(view)
    return " ".join(note.quote.split()) if said else own.text if own else ""


def _named(view: UnitView) -> str:
    own = _own_turn(view)
    match view.unit.kind:
        case UnitKind.ROBOT_TURN if own:
            return f"the robot's {quote(own)}"
        case UnitKind.PERSON_TURN if own:
            return f"the robot's conduct during {quote(own)}"
        case UnitKind.SILENCE if own:
            return f"the robot's silence after {quote(own)}"
        case _:
            return "the robot's conduct at this moment"


def _own_turn(view: UnitView) -> Turn | None:
    """Return the unit's turn, or the turn that a silence follows."""
    turns = [turn for turn in view.turns if _is_of(turn, view.unit)]
    return turns[-1] if turns else None


def _is_of(turn: Turn, unit: Unit) -> bool:
    return unit.unit_id in {Unit.of_turn(turn).unit_id, Unit.of_silence(turn, None).unit_id}


def _contains(words: list[str], wanted: list[str]) -> bool:
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))
