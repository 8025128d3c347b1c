"""Sphinx makes the site of docs/ without a warning, so that its links and its table of contents hold."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.markdown_pages import ROOT
from tests.patience import PATIENCE_S


@pytest.mark.thorough
@pytest.mark.skipif(find_spec("sphinx") is None, reason="Sphinx is missing: run ./tactful setup docs")
def test_site_has_no_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(ROOT / "docs"), str(tmp_path)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "index.html").is_file()
