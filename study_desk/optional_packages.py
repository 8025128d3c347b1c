"""Import the optional packages of the study desk, or say how to install them."""

from importlib import import_module
from typing import Any

from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import install_command


class ExtraMissingError(TactfulError, RuntimeError):
    """A package of the extra `study` is not installed."""

    exit_code = 3


def require_package(module: str, package: str, purpose: str) -> Any:
    """Import a module. Raises ExtraMissingError, which names the package to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ExtraMissingError(
            f"{purpose} needs {package}, which the default set-up leaves out; "
            f"install it with {install_command('study')}"
        ) from error
