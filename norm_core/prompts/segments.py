"""Questions to a coder about a segment of human-robot talk, in the terms of HSRI; the judge's prefix comes first."""

from norm_core.engines.prompt import Question, Text
from norm_core.prompts import judge

VERSION = "segments-2"
KINDS = ("error", "competence")
_IS_ERROR = "Does the robot's conduct show a social error?"
_KNOWN = {
    "error": "This stretch was marked as a social error of the robot.",
    "competence": "This stretch was marked as a social competence of the robot.",
}
_SEVERAL = "Does what the robot does right or wrong here concern more than one of these at once: {}?"
_CHOICES = {
    "pre": (
        "The robot's words are given, and the person's are left out. The robot behaves well here. Which of these had "
        "the person said, so that what the robot says is a fitting answer?"
    ),
    "post": (
        "The person's words are given, and the robot's are left out. The robot behaves well here. With which of these "
        "did the robot answer?"
    ),
    "rationale": "This stretch was marked as a social error of the robot. Which of these is the reason?",
    "correction": "This stretch was marked as a social error of the robot. What should it have done instead?",
}


def detection() -> Question:
    """Ask for error, competence or neither: the judge's own first question."""
    return judge.detection()


def is_error() -> Question:
    """Ask for yes or no, in this order."""
    return Question(parts=(Text(text=_IS_ERROR),), options=("yes", "no"))


def attributes(kind: str) -> list[Question]:
    """Ask for yes or no on each attribute, in order: the judge's own questions, with the kind of segment stated."""
    return [
        Question(parts=(Text(text=_KNOWN[kind]), *question.parts), options=question.options)
        for question in judge.attributes()
    ]


def several(kind: str) -> Question:
    """Ask for yes or no, in this order."""
    meant = "; ".join(judge.meanings())
    return Question(parts=(Text(text=_KNOWN[kind]), Text(text=_SEVERAL.format(meant))), options=("yes", "no"))


def choice(task: str, options: tuple[str, ...]) -> Question:
    """Ask what came before or after, why it is an error, or what was right to do; `task` is an HSRI task."""
    return Question(parts=(Text(text=_CHOICES[task]),), options=options)
