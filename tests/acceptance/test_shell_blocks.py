"""The shell lines of the pages work as written.

The blocks that are fenced as ```bash run in the order of their page, in one shell and one empty folder per page.
The folder holds links to what a checkout holds: a page may name shipped files, and leaves its own files beside them.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.markdown_pages import ROOT, bash_blocks, name_of, pages
from tests.patience import PATIENCE_S

PAGES = [page for page in pages() if page.is_relative_to(ROOT / "docs") and bash_blocks(page)]

# The script has a stand-in, and what pages write stays out of the real checkout.
NOT_LINKED = ("tactful", "scratch", "build", "dist")

pytestmark = [pytest.mark.ros, pytest.mark.slow]


def _script(page: Path) -> str:
    """Return the blocks of a page as one script, which stops at the first failure and prints its place."""
    parts = ["set -euo pipefail", "trap 'echo \"failed: $block: $BASH_COMMAND\" >&2' ERR"]
    for block in bash_blocks(page):
        parts += [f"block={shlex.quote(f'{name_of(page)}:{block.number}')}", block.text]
    return "\n".join(parts) + "\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder like a fresh clone that is set up, whose ./tactful runs in this environment; its env prints nothing."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for entry in ROOT.iterdir():
        if not entry.name.startswith(".") and entry.name not in NOT_LINKED:
            (folder / entry.name).symlink_to(entry)
    script = folder / "tactful"
    python = shlex.quote(sys.executable)
    script.write_text(f'#!/bin/sh\n[ "$1" = env ] || exec {python} -m tactful_cli "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return folder


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_run_as_written(page: Path, checkout: Path, domain_id: int) -> None:
    environment = {
        **os.environ,
        "HOME": str(checkout.parent),
        "COLUMNS": "120",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
    }
    done = subprocess.run(
        ["bash", "-c", _script(page)],
        cwd=checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
