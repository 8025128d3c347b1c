"""The optional extras: which are installed, and the command that installs one."""

import os
import sys
from importlib.metadata import distributions
from pathlib import Path

from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import IS_PACKAGE, PROGRAM

# The packages by which an extra counts as installed.
_PACKAGES = {
    "gpu": ("onnxruntime-gpu",),
    "transformers": ("torch", "transformers"),
}


class ExtraMissingError(TactfulError, RuntimeError):
    """A package of an extra is not installed."""

    exit_code = 3


def format_install_command(extra: str) -> str:
    """Return the command that installs an extra: the script of a checkout, or pip if Tactful is a package."""
    return f"pip install 'tactful[{extra}]'" if IS_PACKAGE else f"{PROGRAM} setup {extra}"


def find_installed_extras() -> tuple[str, ...]:
    """List the extras whose packages are installed here; `serve` lives in an environment of its own."""
    here = [extra for extra, packages in _PACKAGES.items() if all(map(is_installed, packages))]
    vllm = Path(os.environ.get("TACTFUL_SERVE_VENV") or sys.prefix, "bin/vllm")
    return (*here, "serve") if vllm.is_file() else tuple(here)


def is_installed(package: str) -> bool:
    """Return whether a package is installed."""
    return any(distributions(name=package))
