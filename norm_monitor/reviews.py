"""Reviewers' verdicts on flags, added to a file one line each and never taken back."""

import os
from pathlib import Path

from norm_core.flag import Attribute, Polarity, Verdict
from norm_core.jsonl import to_json
from norm_core.record import record


@record
class Review:
    """What one reviewer says of one event; a later one does not erase an earlier."""

    stamp_ns: int
    event_id: str
    reviewer: str
    verdict: Verdict
    polarity: Polarity
    attributes: tuple[Attribute, ...]
    comment: str = ""

    def __post_init__(self) -> None:
        if not self.reviewer:
            raise ValueError("a verdict needs a reviewer: give a pseudonym")
        if self.verdict is Verdict.RELABEL and not self.attributes:
            raise ValueError("a relabelled event needs at least one attribute")


class Reviews:
    """The file; each line is on the disk before add returns."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, review: Review) -> None:
        line = to_json(review) + "\n"
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
