"""The pages that a reader of the project meets, and their headings, links and shell blocks."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_FENCE = re.compile(r"^ *(?P<fence>`{3,}|~{3,})(?P<language>[\w-]*).*$")
_HEADING = re.compile(r"^#{1,6} +(?P<title>.+?) *#*$")
_LINK = re.compile(r"\]\((?P<target>[^()\s]+(?:\([^()\s]*\)[^()\s]*)*)(?: \"[^\"]*\")?\)")


@dataclass(frozen=True)
class Line:
    """A line of a page; language is that of the fenced block around it, None outside of blocks."""

    number: int
    text: str
    language: str | None


@dataclass(frozen=True)
class Block:
    """A fenced block: the number of its first line, and its text."""

    number: int
    text: str


def pages() -> list[Path]:
    """Return every Markdown page at the root and under docs/."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def lines(page: Path) -> list[Line]:
    """Return the lines of a page without the fences of its blocks."""
    found = []
    closing, language = None, None
    for number, text in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(text)
        if closing is None and fence:
            closing, language = fence["fence"], fence["language"]
        elif closing is not None and text.strip() == closing:
            closing, language = None, None
        else:
            found.append(Line(number, text, language))
    return found


def bash_blocks(page: Path) -> list[Block]:
    """Return the blocks fenced as ```bash: those that a reader can run, in their order."""
    blocks: list[Block] = []
    before = None
    for line in lines(page):
        if line.language == "bash":
            if before is not None and line.number == before + 1:
                blocks[-1] = Block(blocks[-1].number, f"{blocks[-1].text}\n{line.text}")
            else:
                blocks.append(Block(line.number, line.text))
            before = line.number
    return blocks


def links(page: Path) -> list[tuple[int, str]]:
    """Return the line number and the target of each link and picture."""
    return [
        (line.number, match["target"])
        for line in lines(page)
        if line.language is None
        for match in _LINK.finditer(re.sub(r"`[^`]*`", "``", line.text))
    ]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as repository hosts and the site make them."""
    found: set[str] = set()
    for line in lines(page):
        heading = _HEADING.match(line.text) if line.language is None else None
        if heading is None:
            continue
        title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading["title"])
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        copies = [anchor, *(f"{anchor}-{count}" for count in range(1, 100))]
        found.add(next(copy for copy in copies if copy not in found))
    return found
