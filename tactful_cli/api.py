"""`tactful api`: the pages of docs/reference and sections of others, generated from the code."""

import difflib
from pathlib import Path
from typing import Annotated

import typer

from norm_core.runtime.errors import TactfulError
from tactful_cli.console import complain
from tactful_cli.reference.pages import PAGES, SECTIONS, with_last_section
from tactful_cli.verb import single

app = single()

DOCS = Path(__file__).resolve().parents[1] / "docs"


@app.command()
def api(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail where a page is out of date.")] = False,
) -> None:
    """Write the generated pages and sections in docs from the code they describe."""
    outdated = [name for name, generate in PAGES.items() if _update(DOCS / "reference" / name, generate(), check=check)]
    for name, generate in SECTIONS.items():
        path = DOCS / name
        if _update(path, with_last_section(path.read_text(encoding="utf-8"), generate()), check=check):
            outdated.append(name)
    if check and outdated:
        complain(f"docs: {', '.join(outdated)} out of date; run ./tactful api")
        raise typer.Exit(1)


def _update(path: Path, new: str, *, check: bool) -> bool:
    """Write the page, or only print what differs; return whether it was out of date."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if check:
        lines = difflib.unified_diff(old.splitlines(), new.splitlines(), path.name, "the code", lineterm="")
        print("".join(f"{line}\n" for line in lines), end="")
    elif old != new:
        try:
            path.write_text(new, encoding="utf-8")
        except OSError as error:
            raise TactfulError(f"{path} cannot be written: {error.strerror}; check its folder's permissions") from error
    return old != new
