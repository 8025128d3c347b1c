"""What a person reads of one event of the graph, before it is laid out."""

from enum import StrEnum

from norm_core.records.record import record


class Tone(StrEnum):
    """The style of a row's label."""

    PLAIN = ""
    GOOD = "green"
    NOTE = "yellow"
    BAD = "bold red"
    SPEECH = "cyan"


@record
class WatchRow:
    """A label and a text, with details below it. The text may hold words of strangers."""

    label: str
    text: str
    tone: Tone = Tone.PLAIN
    details: tuple[tuple[str, str], ...] = ()
