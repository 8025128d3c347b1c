"""The question to a grader: how near a model's text comes to a person's, from 1 to 5."""

from norm_core.engines.prompt import Prompt, Question, Quoted, Text

VERSION = "grades-1"
KINDS = ("norm", "verbal", "nonverbal")
GRADES = ("1", "2", "3", "4", "5")

_TASK = (
    "Two texts about one scene are quoted below: a reference that a person wrote, and a text to be graded. Grade how "
    "well the second says what the reference says. Wording does not matter, nor length."
)
_RUBRIC = {
    "norm": (
        "1: neither the situation nor the norm is the reference's. 2: part of the norm, for quite another situation. "
        "3: part of the norm and of the situation. 4: the situation and what matters of the norm, with small "
        "differences. 5: the situation and the whole norm, and nothing that is not so."
    ),
    "verbal": (
        "1: neither what was said nor the reasoning is the reference's. 2: like reasoning, without what was said. "
        "3: what was said on the whole, without reasoning. 4: what was said on the whole, with like reasoning. "
        "5: just what was said, with like reasoning, and nothing that was not said."
    ),
    "nonverbal": (
        "1: neither what was done or shown nor the reasoning is the reference's. 2: like reasoning, without what was "
        "done or shown. 3: what was done or shown on the whole, without reasoning. 4: what was done or shown on the "
        "whole, with like reasoning. 5: just what was done or shown, with like reasoning, and nothing that was not."
    ),
}


def pair(kind: str, reference: str, written: str) -> Prompt:
    """Return the two texts and the meaning of each grade for texts of that kind."""
    return Prompt(
        version=VERSION,
        parts=(
            Text(text=_TASK),
            Text(text=_RUBRIC[kind]),
            Quoted(text=reference, label="reference"),
            Quoted(text=written, label="to be graded"),
        ),
    )


def grade() -> Question:
    """Ask for a grade, lowest first."""
    return Question(parts=(Text(text="Which grade does the text get?"),), options=GRADES)
