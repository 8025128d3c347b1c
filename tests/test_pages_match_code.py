"""What pages say of verbs, options, defaults and addresses is what the code has."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from typer.main import get_command

from tactful_cli.main import app
from tests.markdown_pages import ROOT, lines, name_of, pages

VERBS: Any = get_command(app)
CONTEXT: Any = VERBS.make_context("./tactful", [], resilient_parsing=True)
PROSE = [page for page in pages() if page.name != "CHANGELOG.md"]  # it names what is gone
CALL = re.compile(r"(?:\./)?tactful ([^|;&`#]*)")
# As in "`robot_lateness_ms` (300)" and "30 s ... (`fusion.open_s`)".
STATED = (
    re.compile(r"`(?P<name>[\w.]+_\w+)` \((?P<value>[\d.]+)\)"),
    re.compile(r"(?P<value>[\d.]+) s [^(`|]*\(`(?P<name>[\w.]+_s)`"),
)


@cache
def verbs_below(command: Any) -> dict[str, Any]:
    names = command.list_commands(CONTEXT) if hasattr(command, "list_commands") else []
    return {name: command.get_command(CONTEXT, name) for name in names}


def calls() -> Iterator[tuple[str, list[str]]]:
    """Yield the words of each call of a verb in prose, link texts and blocks, with their place."""
    for page in PROSE:
        for line in lines(page):
            is_block = line.language in ("console", "sh")
            for text in [line.text] if is_block else re.findall(r"`([^`]+)`", line.text) if not line.language else ():
                call = CALL.search(text)
                words = (call[1] if call else "" if is_block else text).split()
                if words and words[0] in verbs_below(VERBS):
                    yield f"{name_of(page)}:{line.number}: {text}", words


def test_verbs_and_options_exist() -> None:
    unknown = []
    for place, words in calls():
        command, rest = VERBS, words
        while rest and (below := verbs_below(command).get(rest[0])):
            command, rest = below, rest[1:]
        options = {"--help", *(option for parameter in command.params for option in parameter.opts)}
        is_verb_missing = verbs_below(command) and rest and re.fullmatch(r"[a-z][a-z-]+", rest[0])
        if is_verb_missing or {word.partition("=")[0] for word in rest if word.startswith("--")} - options:
            unknown.append(place)
    assert unknown == []


def test_defaults_on_pages_are_those_of_the_code() -> None:
    table = (ROOT / "docs/reference/parameters.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.]+)` \| \w+ \| `([\d.]+)` \|", table, re.M)
    texts = [" ".join(page.read_text(encoding="utf-8").split()) for page in PROSE]
    stated = [match for text in texts for pattern in STATED for match in pattern.finditer(text)]
    known = [match for match in stated if match["name"] in dict(rows)]
    assert known
    assert [
        match[0] for match in known if (match["name"], float(match["value"])) not in {(n, float(v)) for n, v in rows}
    ] == []


def test_the_page_about_own_cues_shows_the_example() -> None:
    page = (ROOT / "docs/how-to/own_cue.md").read_text(encoding="utf-8")
    example = (ROOT / "examples/custom_cue/speaks_too_fast.py").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert [block for block in blocks if block not in example] == []
    assert len(blocks) == 2


def test_the_security_page_names_each_address_that_a_server_can_bind() -> None:
    table = (
        (ROOT / "docs/how-to/harden.md").read_text(encoding="utf-8").partition("## Servers")[2].partition("\n## ")[0]
    )
    pairs = [(name, verb) for name, verb in verbs_below(VERBS).items()]
    pairs += [(f"{group} {name}", verb) for group, verbs in pairs for name, verb in verbs_below(verbs).items()]
    servers = [name for name, verb in pairs if any("--host" in parameter.opts for parameter in verb.params)]
    assert servers
    assert [name for name in servers if not re.search(rf"^\| `{name}.*--host", table, re.M)] == []
