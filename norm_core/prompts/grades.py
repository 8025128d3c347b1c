"""The question to a grader: how near a model's text comes to a person's, from 1 to 5."""

from norm_core.engines.prompt import Prompt, Question, Quoted, Text
from norm_core.prompts.texts import prompt_file

_FILE = prompt_file("grades")
VERSION, _TEXTS = _FILE.version, _FILE.texts
KINDS = tuple(_TEXTS["rubric"])
GRADES = ("1", "2", "3", "4", "5")


def pair(kind: str, reference: str, written: str) -> Prompt:
    """Return the two texts and the meaning of each grade for texts of that kind."""
    return Prompt(
        version=VERSION,
        parts=(
            Text(text=_TEXTS["task"]),
            Text(text=_TEXTS["rubric"][kind]),
            Quoted(text=reference, label="reference"),
            Quoted(text=written, label="to be graded"),
        ),
    )


def grade() -> Question:
    """Ask for a grade, lowest first."""
    return Question(parts=(Text(text="Which grade does the text get?"),), options=GRADES)
