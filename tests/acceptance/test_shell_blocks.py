"""The shell lines of the pages work as written.

The blocks that are fenced as ```bash run in the order of their page, in one shell and one empty folder per page.
The folder holds links to what a checkout holds: a page may name shipped files, and leaves its own files beside them.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.markdown_pages import ROOT, Block, bash_blocks, name_of, pages
from tests.patience import PATIENCE_S

PAGES = [page for page in pages() if page.is_relative_to(ROOT / "docs") and bash_blocks(page)]

# The script has a stand-in, and what pages write stays out of the real checkout.
NOT_LINKED = ("tactful", "scratch", "build", "dist")

pytestmark = [pytest.mark.ros, pytest.mark.thorough]


def _script(page: str, blocks: Iterable[Block]) -> str:
    """Return the blocks of a page as one script, which stops at the first failure and prints its place."""
    parts = [
        "set -euo pipefail",
        "trap 'echo \"failed: $block: $BASH_COMMAND\" >&2' ERR",
        "trap 'kill $(jobs -p) 2> /dev/null || :' EXIT",  # a node left behind would hold the pipe of this test
    ]
    for block in blocks:
        parts += [f"block={shlex.quote(f'{page}:{block.number}')}", block.text]
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
    done = _run(_script(name_of(page), bash_blocks(page)), checkout)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


def test_a_failing_block_waits_for_no_background_node(checkout: Path) -> None:
    done = _run(_script("a.md", [Block(1, "sleep infinity &"), Block(2, "false")]), checkout)
    assert done.returncode == 1
    assert done.stderr == "failed: a.md:2: false\n"


def _run(script: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "HOME": str(checkout.parent),
        "COLUMNS": "120",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
    }
    return subprocess.run(
        ["bash", "-c", script],
        cwd=checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
