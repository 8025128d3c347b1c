"""The board below the events: nodes that lack something, open flags, and what all of it takes."""

from itertools import zip_longest

from rich.text import Text

from tactful_cli.watch.flag_view import KnownFlag, attributes, kind, tone
from tactful_cli.watch.graph_view import GraphView
from tactful_cli.watch.node_view import NodeBeat
from tactful_cli.watch.rows import Tone
from tactful_cli.watch.text_layout import cut, hanging, plain

WIDE = 120  # columns, from which nodes and flags stand side by side
GAP = 2
SHOWN_FLAGS = 5
NODES_SHARE = 3  # the nodes take at most this part of the terminal's height; the events tell the rest


def board(view: GraphView, width: int, height: int) -> Text:
    """Return what holds now, in a few lines of the terminal."""
    is_wide = width >= WIDE
    half = (width - GAP) // 2 if is_wide else width
    nodes = _nodes(view.nodes.nodes, half, max(1, height // NODES_SHARE))
    flags = _flags(view.flags.open, half)
    lines = [*nodes, *flags]
    if is_wide:
        pairs = zip_longest(nodes, flags, fillvalue=Text())
        lines = [Text.assemble(cut(left, half + GAP, pad=True), right) for left, right in pairs]
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
