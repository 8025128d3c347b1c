"""The name of the command line, for messages that name a command."""

from importlib.metadata import PackageNotFoundError, distribution


def _is_package() -> bool:
    try:
        distribution("tactful")
    except PackageNotFoundError:
        return False
    return True


IS_PACKAGE = _is_package()  # whether Tactful is installed; otherwise it runs in a checkout
PROGRAM = "tactful" if IS_PACKAGE else "./tactful"
