"""Questions to a coder about a segment of human-robot talk, in the terms of HSRI; the judge's prefix comes first."""

from norm_core.engines.prompt import Question, Text
from norm_core.engines.prompt_file import load_prompt_file
from norm_monitor.judge import questions as judge

_FILE = load_prompt_file("segments", "sim_replays.suites")
VERSION, _TEXTS = _FILE.version, _FILE.texts
KINDS = tuple(_TEXTS["known"])


def is_error() -> Question:
    """Ask for yes or no, in this order."""
    return Question(parts=(Text(text=_TEXTS["is_error"]),), options=("yes", "no"))


def attributes(kind: str) -> list[Question]:
    """Ask for yes or no on each attribute, in order: the judge's own questions, with the kind of segment stated."""
    return [
        Question(parts=(Text(text=_TEXTS["known"][kind]), *question.parts), options=question.options)
        for question in judge.ask_attributes()
    ]


def several(kind: str) -> Question:
    """Ask for yes or no, in this order."""
    meant = "; ".join(judge.list_meanings())
    return Question(
        parts=(Text(text=_TEXTS["known"][kind]), Text(text=_TEXTS["several"].format(meant))), options=("yes", "no")
    )


def choice(task: str, options: tuple[str, ...]) -> Question:
    """Ask what came before or after, why it is an error, or what was right to do; `task` is an HSRI task."""
    return Question(parts=(Text(text=_TEXTS["choices"][task]),), options=options)
