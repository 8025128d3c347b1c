"""JSONL files whose last line may be truncated."""

from pathlib import Path


def drop_cut_line(path: Path) -> None:
    """Remove what follows the last complete line, as a killed run or a full disk leaves it."""
    if path.is_file() and (text := path.read_bytes()) and not text.endswith(b"\n"):
        with path.open("r+b") as file:
            file.truncate(text.rfind(b"\n") + 1)
