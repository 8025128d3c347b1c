"""Create a log's files, which hold people's words, readable for owner and group alone."""

import os
from pathlib import Path
from typing import BinaryIO

MODE = 0o640


def create(path: Path) -> BinaryIO:
    """Create a private file at `path`, and replace any existing file."""
    path.unlink(missing_ok=True)  # an existing file would keep its mode
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "wb")
