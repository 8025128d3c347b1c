"""The files of a log, which hold what people said: for their owner and the owner's group alone."""

import os
from pathlib import Path
from typing import BinaryIO

MODE = 0o640


def create(path: Path) -> BinaryIO:
    """A new file at path, in place of whatever is there, that others cannot read."""
    path.unlink(missing_ok=True)  # or it would keep its mode
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "wb")
