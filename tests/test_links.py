"""Every relative link of a page leads to a file and a heading that exist."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.markdown_pages import ROOT, anchors, links, name_of, pages


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_resolve(page: Path) -> None:
    assert [f"{name_of(page)}:{number}: {target}" for number, target in links(page) if _is_broken(page, target)] == []


def _is_broken(page: Path, target: str) -> bool:
    if target.startswith(("http://", "https://", "mailto:")):
        return False
    path, _, anchor = unquote(target).partition("#")
    found = (page.parent / path).resolve() if path else page
    if not found.exists() or not found.is_relative_to(ROOT):
        return True
    return bool(anchor) and found.suffix == ".md" and anchor not in anchors(found)


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_no_line_is_a_comment_to_the_site(page: Path) -> None:
    """MyST leaves out a line that begins with a percent sign, such as a figure's."""
    assert [line for line in page.read_text(encoding="utf-8").splitlines() if line.lstrip().startswith("%")] == []


def test_every_page_has_a_link_to_it() -> None:
    """The index and the entry pages lead to each page of docs/."""
    linked = {(page.parent / target.partition("#")[0]).resolve() for page in pages() for _, target in links(page)}
    assert [name_of(page) for page in ROOT.glob("docs/**/*.md") if page not in linked and page.stem != "index"] == []


def test_symbols_of_the_stories_are_in_their_files() -> None:
    stories = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Find your way")[2].partition("\n## ")[0]
    )
    lines = re.findall(r"^(\d+)\. \[.*?\]\((.*?)\): (.*)$", stories, re.M)
    symbols = [
        (path, part) for _, path, text in lines for name in re.findall(r"`([\w.]+)`", text) for part in name.split(".")
    ]
    sources = {path: (ROOT / path).read_text(encoding="utf-8") for _, path, _ in lines}
    assert [(path, name) for path, name in symbols if not re.search(rf"\b{name}\b", sources[path])] == []
    assert max(int(number) for number, _, _ in lines) <= 15
