"""The page of the command line, from the commands themselves."""

from collections.abc import Iterator
from textwrap import fill
from typing import Any

from typer.main import get_command

from tactful_cli.main import app

# The ./tactful script answers this verb itself.
ENV = """## env

```text
eval "$(./tactful env)"
```

Print the shell lines that enter the environment of Tactful, for this shell to evaluate.
"""


def cli_page() -> str:
    """Generate the page; click's types are Any, because typer may bring its own click."""
    root: Any = get_command(app)
    context = root.make_context("./tactful", [], resilient_parsing=True)
    lines = ["", _paragraph(root.epilog), ""]
    for name in root.list_commands(context):
        lines += [ENV] if name == "env" else _section(root.get_command(context, name), context, level=2)
    return "\n".join(lines).rstrip() + "\n"


def _section(command: Any, parent: Any, level: int) -> Iterator[str]:
    """Describe a command, and below it those that it groups."""
    context = command.make_context(command.name, [], parent=parent, resilient_parsing=True)
    path = context.command_path
    yield from (f"{'#' * level} {path.removeprefix('./tactful ')}", "")
    inner = getattr(command, "commands", None)
    if not inner:
        yield from ("```text", " ".join((path, *command.collect_usage_pieces(context))), "```", "")
    yield from (_paragraph(command.help or ""), "")
    if inner:
        for one in inner.values():
            yield from _section(one, context, level + 1)
        return
    rows = [record for one in command.params if (record := one.get_help_record(context))]
    if rows:
        yield from ("| argument or option | meaning |", "|---|---|")
        yield from (f"| `{_cell(name)}` | {_cell(meaning)} |" for name, meaning in rows)
        yield ""
    if command.epilog:
        yield from (_paragraph(command.epilog), "")


def _paragraph(text: str) -> str:
    return fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
