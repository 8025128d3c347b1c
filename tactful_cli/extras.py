"""`tactful setup`: install optional extras. The ./tactful script does the installation."""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import find_installed_extras, is_installed
from tactful_cli.console import print_result
from tactful_cli.verb_options import PARTS, AsJson, make_app

app = make_app()

ROOT = Path(__file__).resolve().parents[1]


@cache
def _project() -> dict[str, Any]:
    if not (ROOT / "pyproject.toml").is_file():
        raise TactfulError("setup: this is an installed package; install an extra with pip, as tactful[study]")
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _packages() -> dict[str, list[str]]:
    extras: dict[str, list[str]] = _project()["project"]["optional-dependencies"]
    of_parts = {extra: _needed_by(part) for part, extra in PARTS.items() if extra in extras}
    return {
        name: [re.split(r"[^\w.-]", requirement)[0] for requirement in of_parts.get(name, listed)]
        for name, listed in extras.items()
    }


def _needed_by(part: str) -> list[str]:
    """List what a part needs from others; the part itself is in the checkout."""
    project = tomllib.loads((ROOT / part / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [requirement for requirement in project["dependencies"] if not requirement.startswith("tactful")]


def _missing(extra: str, packages: list[str]) -> list[str]:
    if extra in find_installed_extras():  # also in an environment of its own
        return []
    return [package for package in packages if not is_installed(package)]


@app.command()
def setup(
    extras: Annotated[
        list[str] | None,
        typer.Argument(metavar="EXTRA", help="Extras to install.", autocompletion=lambda: list(_packages())),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Install extras, or list them if none is named. A rebuilt environment keeps them."""
    purposes = _project()["tool"]["tactful"]["extras"]
    packages = _packages()
    rows = [
        {"extra": name, "for": purposes[name], "packages": packages[name], "missing": _missing(name, packages[name])}
        for name in packages
        if not extras or name in extras
    ]
    table = Table("extra", "", "for")
    for row in rows:
        lacks = f"lacks {', '.join(row['missing'])}"
        table.add_row(row["extra"], lacks if row["missing"] else "installed", row["for"])
    print_result({"extras": rows}, table, as_json=as_json)
    if extras and any(row["missing"] for row in rows):
        raise TactfulError(f"setup: the ./tactful script installs extras; run ./tactful setup {' '.join(extras)}")
