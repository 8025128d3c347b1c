"""What pages say of verbs, options, defaults and addresses is what the code has."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from tactful_cli.main import app
from tests.markdown_pages import ROOT, lines, name_of, pages

ROOT_COMMAND: Any = get_command(app)
CONTEXT: Any = ROOT_COMMAND.make_context("./tactful", [], resilient_parsing=True)
PROSE = [page for page in pages() if page.name != "CHANGELOG.md"]  # it names what is gone
CALL = re.compile(r"(?:\./)?tactful ([^|;&`#]*)")
# A parameter with its value, as in "`robot_lateness_ms` (300)" and "30 s ... (`fusion.open_s`)".
STATED = (
    re.compile(r"`(?P<name>[\w.]+_\w+)` \((?P<value>[\d.]+)\)"),
    re.compile(r"(?P<value>[\d.]+) s [^(`|]*\(`(?P<name>[\w.]+_s)`"),
)


def commands(words: list[str]) -> Iterator[Any]:
    """Yield the commands that the first words of a call name: a group and its verb."""
    command = ROOT_COMMAND
    for word in words:
        names = command.list_commands(CONTEXT) if hasattr(command, "list_commands") else []
        if word not in names:
            return
        command = command.get_command(CONTEXT, word)
        yield command


def spans() -> Iterator[tuple[str, list[str]]]:
    """Yield the calls of verbs in prose, link texts and blocks, each with its place."""
    for page in PROSE:
        for line in lines(page):
            texts = [line.text] if line.language in ("console", "sh") else re.findall(r"`([^`]+)`", line.text)
            for text in texts if line.language in (None, "console", "sh") else ():
                call = CALL.search(text)
                words = (call[1] if call else text if line.language is None else "").split()
                if next(commands(words), None):
                    yield f"{name_of(page)}:{line.number}: {text}", words


def test_verbs_and_options_exist() -> None:
    unknown = []
    for place, words in spans():
        path = list(commands(words))
        options = {option for command in path[-1:] for parameter in command.params for option in parameter.opts}
        rest = words[len(path) :]
        is_verb_missing = hasattr(path[-1], "list_commands") and rest and re.fullmatch(r"[a-z][a-z-]+", rest[0])
        named = [word.partition("=")[0] for word in rest if word.startswith("--")]
        if is_verb_missing or {*named} - options - {"--help"}:
            unknown.append(place)
    assert unknown == []


def test_defaults_on_pages_are_those_of_the_code() -> None:
    rows = re.findall(
        r"^\| `([\w.]+)` \| \w+ \| `([\d.]+)` \|", (ROOT / "docs/reference/parameters.md").read_text(), re.M
    )
    defaults: dict[str, set[float]] = {}
    for name, value in rows:
        defaults.setdefault(name, set()).add(float(value))
    stated = [
        (f"{name_of(page)}: {match[0]}", match["name"], float(match["value"]))
        for page in PROSE
        for pattern in STATED
        for match in pattern.finditer(" ".join(page.read_text(encoding="utf-8").split()))
        if match["name"] in defaults
    ]
    assert [place for place, name, value in stated if value not in defaults[name]] == []
    assert stated


@pytest.mark.parametrize("option", ["--host", "--http"])
def test_every_address_that_a_server_can_bind_stands_on_the_security_page(option: str) -> None:
    table = (
        (ROOT / "docs/how-to/harden.md").read_text(encoding="utf-8").partition("## Servers")[2].partition("\n## ")[0]
    )
    groups = [([], ROOT_COMMAND)]
    servers = []
    for path, command in groups:
        if hasattr(command, "list_commands"):
            groups += [([*path, name], command.get_command(CONTEXT, name)) for name in command.list_commands(CONTEXT)]
        elif any(option in parameter.opts for parameter in command.params):
            servers.append(" ".join(path))
    rows = [next((row for row in table.splitlines() if row.startswith(f"| `{name}")), "") for name in servers]
    assert servers
    assert [name for name, row in zip(servers, rows, strict=True) if option not in row] == []
