"""Show rows in a terminal, with a board below them, or as plain lines in a log."""

import os
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.text import Text

from tactful_cli.watch.graph_view import GraphView, KnownFlag, attributes, kind, tone
from tactful_cli.watch.node_view import NodeBeat, Tone, WatchRow

MAX_CHARACTERS = 500
TIME_WIDTH, LABEL_WIDTH = 8, 9
LEAST_TEXT = 30  # columns; where fewer are left beside a label, the text goes on below it

_JOINERS = "\u200c\u200d"  # which Persian, Hindi and emoji need
_WIDE_EMOJI = "\ufe0f"
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_WRAPPER = Console()  # Text asks one how to wrap; nothing is printed on it


def plain(text: str) -> str:
    """Replace what a terminal would obey, turn around or hide, and cut what is too long."""
    cut = text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."
    return "".join(_plain_character(character) for character in cut)


def row_lines(row: WatchRow, when: str, width: int | None) -> Iterator[Text]:
    """Lay a row out; without a width, each text stays on one line. No line ends in spaces."""
    label = (f"{plain(row.label):{LABEL_WIDTH}} ", row.tone.value)
    yield from hanging(Text.assemble((f"{when:{TIME_WIDTH}} ", "dim"), label), row.text, width)
    for name, value in row.details:
        indent = " " * (TIME_WIDTH + 1 + LABEL_WIDTH + 1)
        yield from hanging(Text.assemble(indent, (f"{name:{LABEL_WIDTH}} ", "dim")), value, width)


def hanging(head: Text, text: str, width: int | None) -> Iterator[Text]:
    """Put a text beside its head, and what is left of it below, as far right where there is room."""
    body = Text(plain(text))
    if width is None:
        yield Text.assemble(head, body)
        return
    indent = cell_len(head.plain)
    if width - indent < LEAST_TEXT:
        head, body, indent = Text(), Text.assemble(head, body), 0
    for line in body.wrap(_WRAPPER, width - indent):
        line.rstrip()
        yield Text.assemble(head, line)
        head = Text(" " * indent)


def cut(text: Text, width: int) -> Text:
    """Return a text on one line that no terminal takes for wider."""
    columns, kept = 0, 0
    for index, character in enumerate(text.plain):
        # Terminals disagree on joined characters: at most, each takes its own columns, and a selector one more.
        columns += max(cell_len(character), character == _WIDE_EMOJI)
        if columns > width:
            return text[:kept] + Text("\u2026")
        if columns < width:
            kept = index + 1
    return text


def _plain_character(character: str) -> str:
    if character in "\t\n\r":
        return " "
    is_hidden = unicodedata.category(character) in _HIDDEN and character not in _JOINERS
    return "\ufffd" if is_hidden else character


SHOWN_FLAGS = 5
NODES_SHARE = 3  # the nodes take at most this part of the terminal's height; the events tell the rest


def board(view: GraphView, width: int, height: int) -> Text:
    """Return what holds now, in a few lines of the terminal."""
    lines = [*_nodes(view.nodes.nodes, width, max(1, height // NODES_SHARE)), *_flags(view.flags.open, width)]
    now = "; ".join(filter(None, (view.speech.partial, "the robot speaks" if view.speech.robot_speaks else "")))
    facts = [*view.summary(), f"now: {now or 'nobody speaks'}"]
    lines += [cut(Text(plain(fact)), width) for fact in facts]
    rule = Text("-" * width, style="dim")
    return Text("\n", no_wrap=True).join([rule, *lines][: max(1, height - 1)])


def _nodes(nodes: dict[str, NodeBeat], width: int, most: int) -> list[Text]:
    """Return the nodes that lack something with its remedy, and all others together."""
    lacking: list[tuple[str, Tone, str]] = []
    well: dict[tuple[str, Tone], list[str]] = {}
    for name, beat in nodes.items():
        if beat.status.reasons:
            lacking.append((beat.state, beat.tone, f"{name}: {'; '.join(beat.status.reasons)}"))
        else:
            well.setdefault((beat.state, beat.tone), []).append(name)
    rows = lacking + [
        (state, tone_of_state, ", ".join(sorted(names))) for (state, tone_of_state), names in well.items()
    ]
    column = max((len(state) for state, *_ in rows), default=0)
    blocks = [list(hanging(Text(f"{state:{column}} ", style=style), text, width)) for state, style, text in rows]
    return _fit(blocks, width, most)


def _fit(blocks: list[list[Text]], width: int, most: int) -> list[Text]:
    """Cut each block to its part of the lines, and leave out what has no room at all."""
    if sum(map(len, blocks)) > most:
        part = max(1, most // len(blocks))
        blocks = [block if len(block) <= part else _shortened(block, width, part) for block in blocks]
    if len(blocks) > most:
        blocks = [*blocks[: most - 1], [Text(f"and {len(blocks) - most + 1} more nodes")]]
    return [line for block in blocks for line in block]


def _shortened(block: list[Text], width: int, part: int) -> list[Text]:
    last = block[part - 1]
    last.truncate(width - 3)
    return [*block[: part - 1], last + Text("...")]


def _flags(known: list[KnownFlag], width: int) -> list[Text]:
    names = [f"#{each.number} {kind(each.flag)}" for each in known[-SHOWN_FLAGS:]]
    column = max(map(len, names), default=0)
    lines = [
        cut(
            Text.assemble(
                (f"{name:{column}} ", tone(each.flag).value),
                f"{each.flag.probability:.2f} {attributes(each.flag)}: {plain(each.flag.rationale)}",
            ),
            width,
        )
        for name, each in zip(names, known[-SHOWN_FLAGS:], strict=True)
    ]
    return lines + [Text(f"and {len(known) - SHOWN_FLAGS} more")] * (len(known) > SHOWN_FLAGS)


# How often a log, which cannot be drawn anew, gets a summary.
LOG_SUMMARY_S = 60.0


class LogScreen:
    """One line an event, for what is no terminal that can be drawn on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next_s = time.monotonic() + LOG_SUMMARY_S
        self._last: list[str] = []

    def print(self, rows: Iterable[WatchRow], when: str) -> None:
        """Print rows with a time of day."""
        for row in rows:
            for line in row_lines(row, when, None):
                self._console.print(line, soft_wrap=True)

    def refresh(self, view: GraphView) -> None:
        """Print the summary at times, where it changed."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + LOG_SUMMARY_S
        lines = view.summary()
        if lines != self._last:
            self._last = lines
            self.print([WatchRow(label="summary", text="; ".join(lines))], time.strftime("%H:%M:%S"))

    def close(self) -> None:
        """Nothing is left to print."""


class TerminalScreen:
    """Events scroll by; below them, a board of what holds now is drawn anew. The scrollback stays a log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._size = console.size
        self._live = self._open()

    def print(self, rows: Iterable[WatchRow], when: str) -> None:
        """Print rows with a time of day, wrapped at the width of the terminal."""
        if lines := [line for row in rows for line in row_lines(row, when, self._console.width)]:
            self._console.print(Text("\n").join(lines), soft_wrap=True)

    def refresh(self, view: GraphView) -> None:
        """Draw the board anew."""
        if self._size != self._console.size:
            self._live.stop()
            self._size, self._live = self._console.size, self._open()
        width, height = self._size
        self._live.update(board(view, width, height), refresh=True)

    def close(self) -> None:
        """Remove the board."""
        self._live.stop()

    def _open(self) -> Live:
        # A board that only the caller sees is no place for what goes to a file.
        live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=sys.stderr.isatty(),
        )
        live.start()
        return live


Screen = LogScreen | TerminalScreen


def open_screen(console: Console) -> Screen:
    """Return the screen that fits the output."""
    is_dumb = os.environ.get("TERM", "dumb") in {"dumb", "unknown"}
    return TerminalScreen(console) if console.is_terminal and not is_dumb else LogScreen(console)
