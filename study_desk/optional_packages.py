"""What the study desk uses where it is installed, and says how to get where it is not."""

from importlib import import_module
from typing import Any

from norm_core.runtime.errors import TactfulError


class ExtraMissingError(TactfulError, RuntimeError):
    """A package of the extra `study` is not installed."""

    exit_code = 3


def require_package(module: str, package: str, purpose: str) -> Any:
    """The module, or an error that names what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ExtraMissingError(
            f"{purpose} needs {package}, which the default set-up leaves out; install it with ./tactful setup study"
        ) from error
