"""The name of the command line, for messages that name a command, and the commit of the checkout."""

import subprocess
from importlib.metadata import distributions

from norm_core.files.data_files import shipped_file

# Whether Tactful is installed as a package; otherwise it runs in a checkout.
IS_PACKAGE = any(distributions(name="tactful"))
PROGRAM = "tactful" if IS_PACKAGE else "./tactful"


def read_checkout_commit() -> str:
    """Return the commit of the checkout, with -dirty if files differ from it; empty where Tactful is installed."""
    if IS_PACKAGE:
        return ""
    folder = str(shipped_file("norm_core"))
    command = ["git", "-C", folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # without git
        return ""
