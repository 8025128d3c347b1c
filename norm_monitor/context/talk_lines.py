"""The lines of a talk for the talk reader."""

from collections.abc import Iterable, Iterator

from norm_core.engines.talk_reader import PERSON, ROBOT

# The speaker where people are not distinguished.
ANYBODY = "person"
# A longer line is cut, because a reader's context is bounded.
MAX_CHARACTERS = 800


def talk_lines(turns: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a line for each turn, a pair of the speaker (empty for the robot) and the words.

    People are numbered from the second on, in the order in which they first speak.
    """
    people: dict[str, str] = {}
    for speaker, text in turns:
        name = ROBOT
        if speaker:
            new_name = f"{PERSON} {len(people) + 1}" if people else PERSON
            name = people.setdefault(speaker, new_name)
        yield f"{name}: {' '.join(text.split())[:MAX_CHARACTERS]}\n"
