"""Open only regular files, because a pipe or device that a setting names could block a node for ever."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_plain_file(path: Path, max_bytes: int) -> BinaryIO:
    """Open a regular file to read, without waiting. Raises OSError for anything else, or for a larger file."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        fault = OSError(errno.EINVAL, "is not a regular file", str(path))
    elif status.st_size > max_bytes:
        fault = OSError(errno.EFBIG, f"is larger than {max_bytes >> 20} MB", str(path))
    else:
        return file
    file.close()
    raise fault


def read_plain_file(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a regular file. Raises OSError as `open_plain_file` does."""
    with open_plain_file(path, max_bytes) as file:
        content = file.read(max_bytes + 1) or b""
    if len(content) > max_bytes:  # the file states no size, or grows
        raise OSError(errno.EFBIG, f"is larger than {max_bytes >> 20} MB", str(path))
    return content
