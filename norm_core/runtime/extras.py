"""The command that installs an optional extra."""

from norm_core.runtime.program import IS_PACKAGE, PROGRAM


def install_command(extra: str) -> str:
    """Return the command for this installation: the script of a checkout, or pip where Tactful is a package."""
    return f"pip install 'tactful[{extra}]'" if IS_PACKAGE else f"{PROGRAM} setup {extra}"
