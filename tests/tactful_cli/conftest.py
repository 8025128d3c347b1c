"""Call the command line with models of a test's own."""

from pathlib import Path
from typing import Any

import pytest

from tests.command_line import tactful
from tests.norm_core.models.hub_server import REPOSITORY

TINY = f"""
name: tiny-vl
task: vision-language
engine: transformers
source: {{hub: {REPOSITORY}}}
quantization: bf16
parameters_million: 100
precise_million: 10
kv_bytes_per_token: 1000
context_tokens: 1000
licence: MIT
"""


@pytest.fixture
def models(tmp_path: Path) -> Any:
    """Calls the verb with a store and manifests of its own; gives its code, output and complaints."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own/tiny-vl.yaml").write_text(TINY)

    def call(*arguments: str, **environment: str) -> tuple[int, str, str]:
        given = {
            "COLUMNS": "160",
            "TACTFUL_MODELS": str(tmp_path / "own"),
            "TACTFUL_WEIGHTS": str(tmp_path / "store"),
            "TACTFUL_STATE": str(tmp_path / "state"),
        }
        shown = tactful(*arguments, **{**given, **environment})
        assert "Traceback" not in shown.stderr, shown.stderr
        return shown.returncode, shown.stdout, shown.stderr

    return call
