"""The command that installs an optional extra."""

from importlib.metadata import PackageNotFoundError, distribution


def install_command(extra: str) -> str:
    """Return the command for this installation: the script of a checkout, or pip where Tactful is a package."""
    try:
        distribution("tactful")
    except PackageNotFoundError:
        return f"./tactful setup {extra}"
    return f"pip install 'tactful[{extra}]'"
