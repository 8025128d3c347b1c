"""Questions about a segment of human-robot talk, in the terms of HSRI. They follow the prefix of the judge."""

from norm_core.engines.prompt import Question, Text
from norm_core.engines.prompt_file import load_prompt_file
from norm_monitor.judge import questions as judge

_FILE = load_prompt_file("segments", "sim_replays.suites")
VERSION = _FILE.version
_TEXTS = _FILE.texts
KINDS = tuple(_TEXTS["known"])  # of segments whose kind the question states


def ask_whether_error() -> Question:
    """Ask whether the segment has an error: yes or no, in this order."""
    return Question(parts=(Text(text=_TEXTS["is_error"]),), options=("yes", "no"))


def ask_attributes(kind: str) -> list[Question]:
    """Ask for yes or no on each attribute, in order: the questions of the judge, with the kind of the segment."""
    return [
        Question(parts=(Text(text=_TEXTS["known"][kind]), *question.parts), options=question.options)
        for question in judge.ask_attributes()
    ]


def ask_whether_several(kind: str) -> Question:
    """Ask whether the segment has several attributes: yes or no, in this order."""
    meanings = "; ".join(judge.list_meanings())
    return Question(
        parts=(Text(text=_TEXTS["known"][kind]), Text(text=_TEXTS["several"].format(meanings))), options=("yes", "no")
    )


def ask_choice(task: str, options: tuple[str, ...]) -> Question:
    """Ask what came before or after, why it is an error, or what was right to do; `task` is an HSRI task."""
    return Question(parts=(Text(text=_TEXTS["choices"][task]),), options=options)
