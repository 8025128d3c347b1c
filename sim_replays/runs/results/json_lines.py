"""Files of a line an entry, of which the last may have been cut short."""

from pathlib import Path


def drop_cut_line(path: Path) -> None:
    """Takes away what follows the last whole line, as a run that was killed or a full disk leaves it."""
    if path.is_file() and (text := path.read_bytes()) and not text.endswith(b"\n"):
        with path.open("r+b") as file:
            file.truncate(text.rfind(b"\n") + 1)
