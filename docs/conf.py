"""The settings of the site that Sphinx makes of these pages."""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from typer.cli import get_docs_for_click
from typer.main import get_command

from tactful_cli.main import app as command_line

project = "Tactful"
author = "The Tactful authors"
copyright = "2026, the Tactful authors"  # noqa: A001

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
default_role = "code"
autodoc_typehints = "signature"
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Tactful"
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]

# Anchors as repository hosts make them, so that one link works on both.
myst_heading_anchors = 4

_DOCS = Path(__file__).parent
_RELATIVE_LINK = re.compile(r"(?<!!)\[(?P<text>[^]]*)\]\((?P<path>[^():#]+)(?:#[^()]*)?\)")


def _carry_repository_files(app: Sphinx, name: str, source: list[str]) -> None:
    """Let each link to a file outside docs/ open a copy of it that the site holds."""
    folder = (_DOCS / name).parent

    def replacement(link: re.Match[str]) -> str:
        is_page = (folder / link["path"]).resolve().is_relative_to(_DOCS)
        return link[0] if is_page else f"{{download}}`{link['text']} <{link['path']}>`"

    source[0] = _RELATIVE_LINK.sub(replacement, source[0])


def _list_verbs(app: Sphinx, name: str, source: list[str]) -> None:
    """Write every verb with its options into the page of the command line."""
    if name == "reference/cli":
        command: Any = get_command(command_line)
        context = command.make_context("./tactful", [], resilient_parsing=True)
        source[0] += "\n" + get_docs_for_click(obj=command, ctx=context, indent=1, name="./tactful")


def setup(app: Sphinx) -> None:
    """Register the source filters that Sphinx calls for each page."""
    app.connect("source-read", _carry_repository_files)
    app.connect("source-read", _list_verbs)
