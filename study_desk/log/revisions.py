"""Revised codings: a log keeps every version, and its readers use the latest."""

from collections.abc import Sequence
from typing import Any

from study_desk.log.schema import Coding, Label


def without_superseded(records: Sequence[Any]) -> list[Any]:
    """Leave out labels that a later revision by their coder replaces."""
    revised = _latest_revisions(records)
    return [
        each
        for number, each in enumerate(records)
        if not (isinstance(each, Label) and number < revised.get(each.coder, 0))
    ]


def revision_counts(records: Sequence[Any]) -> dict[str, int]:
    """Count how often each coder revised their coding. A retraction is no revision."""
    coders = [each.coder for each in records if isinstance(each, Coding) and each.replaces and not each.retracts]
    return {coder: coders.count(coder) for coder in sorted({*coders})}


def incomplete_revisions(records: Sequence[Any]) -> dict[str, tuple[int, int]]:
    """Find coders whose latest revision lacks labels: those in the log, and those that it announced."""
    found = {}
    for coder, number in _latest_revisions(records).items():
        written = sum(isinstance(each, Label) and each.coder == coder for each in records[number:])
        if written < records[number].labels:
            found[coder] = (written, records[number].labels)
    return found


def _latest_revisions(records: Sequence[Any]) -> dict[str, int]:
    return {each.coder: number for number, each in enumerate(records) if isinstance(each, Coding) and each.replaces}
