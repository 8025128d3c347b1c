"""The meaning of each status counter, from counters.yaml; a name that ends in * stands for a family."""

from collections.abc import Iterable

from norm_core.files.data_files import shipped_file
from norm_core.records.status import Counter
from norm_core.runtime.config import load_yaml

MEANINGS: dict[str, str] = load_yaml(shipped_file("norm_core.health", "counters.yaml"))

# A replay of a recorded run does not count these, because it waits for every record and loses none.
_OUTSIDE_PARITY = {
    "messages_lost": "messages lost",
    "windows_late": "windows closed late",
    "entries_left_out": "records too late for any window",
    "robot_speech_late": "late messages of robot speech",
    "segments_not_transcribed": "speech segments not transcribed",
    "judge_timed_out": "answers of the judge timed out",
    "units_not_judged": "units that the judge was too slow for",
    "judge_note_timed_out": "notes of the judge timed out",
    "notes_after_close": "notes of the judge after the close",
    "judgements_after_close": "answers of the judge after the close",
    "findings_without_timing": "findings held back as clocks lie apart",
}


def describe_parity(counters: Iterable[Counter], dropped: int) -> str:
    """Say why a replay of the same input may decide otherwise; return "" if nothing was late, lost or dropped."""
    counts = {counter.name: counter.count for counter in counters}
    reasons = [f"{counts[name]} {reason}" for name, reason in _OUTSIDE_PARITY.items() if counts.get(name)]
    reasons += [f"{dropped} records dropped from a full queue"] if dropped else []
    return f"outside parity: a replay of this run may flag otherwise, after {', '.join(reasons)}" if reasons else ""


def find_meaning(name: str) -> str:
    """Return the meaning of a counter or of its family; "" if neither is listed."""
    if name in MEANINGS:
        return MEANINGS[name]
    families = [family for family in MEANINGS if family.endswith("*") and name.startswith(family[:-1])]
    return MEANINGS[max(families, key=len)] if families else ""


def describe(counters: Iterable[Counter]) -> list[str]:
    """Return a line for each counter above zero: its name, count and meaning."""
    return [f"{counter.name}: {counter.count} ({find_meaning(counter.name)})" for counter in counters if counter.count]
