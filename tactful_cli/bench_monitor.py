"""`tactful bench monitor`: the norm monitor on scripted encounters, by the measures of an online detector."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from rich.progress import track

from norm_core.engines.sentences import SentenceEncoder
from norm_core.flag import Polarity
from norm_core.jsonl import to_plain
from norm_monitor.cues.table import Table
from norm_monitor.meaning import Concepts, Meaning, Meanings
from norm_monitor.senses.whisper import Whisper, WhisperConfig
from sim_replays.false_alarms import false_alarms
from sim_replays.heard import sensed
from sim_replays.monitoring import (
    MEASURED,
    TIMING_CUES,
    Online,
    Session,
    online,
    only,
    prior,
    resting_on,
    silent,
    watched,
    watched_from_sound,
)
from sim_replays.scenarios.clean_talk import clean_talk
from sim_replays.scenarios.encounter import Basis, Encounter
from sim_replays.scenarios.library import encounters
from tactful_cli.console import err, print_json

_HEADLINE = "2"  # the tolerance in seconds whose interval is shown
_UNMEASURED = frozenset(Basis) - MEASURED


class Source(StrEnum):
    SCRIPT = "script"
    AUDIO = "audio"


def evaluate(split: str, limit: int, seed: int, source: Source, kept: Path, as_json: bool) -> None:  # noqa: PLR0917
    """Prints one row a detector and polarity, the events told apart by whether the table can have a row, attributes."""
    chosen = encounters(split)[: limit or None]
    meaning, table = _meaning(), Table.shipped()
    sessions = list(_sessions(chosen, meaning, table, seed, source, kept))
    rows = {
        f"{name}, {polarity.value}s": online(found, polarity)
        for name, found in _detectors(sessions).items()
        for polarity in Polarity
    }
    if as_json:
        head = {
            "split": split, "from": source.value, "encounters": len(chosen), "table": table.version, "tolerance_s": 2.0
        }  # fmt: skip
        print_json({**head, "rows": {name: to_plain(row) for name, row in rows.items()}})
        return
    print("detector | F1 at 0.5/1/2/5 s | at 2 s [95 %] | precision | recall | false an hour | p50 s | events | alarms")
    for name, row in rows.items():
        print(" | ".join([name, *_cells(row)]))
    print(f"{len(chosen)} encounters of {split}, from {source.value}; precision, recall and latency at 2 s")
    for polarity in Polarity:
        row = rows[f"monitor, {polarity.value}s"]
        print(
            f"recall of {polarity.value}s by basis:", ", ".join(f"{b} {value:.0f}" for b, value in row.by_basis.items())
        )
        print(f"F1 of {polarity.value}s by attribute (macro {row.macro_f1_by_attribute:.1f}):")
        for name, value in row.by_attribute.items():
            print(f"  {name} {_with_interval(value, row.by_attribute_interval[name])}")


def count_false_alarms(length_s: float, seed: int, as_json: bool) -> None:
    """Prints how many errors are flagged in clean talk."""
    talks = track(list(clean_talk(length_s, seed)), "watching", console=err)
    found = false_alarms(talks, _meaning(), Table.shipped(), seed)
    if as_json:
        print_json(to_plain(found))
        return
    an_hour = f"{found.per_hour:.1f} an hour [{found.per_hour_interval[0]:.1f}, {found.per_hour_interval[1]:.1f}]"
    by_cue = ", ".join(f"{name} {count}" for name, count in found.by_cue.items())
    print(
        f"{found.count} errors flagged in {found.hours:.2f} hours of clean talk, {an_hour}"
        + (f": {by_cue}" * bool(by_cue))
    )


def _meaning() -> Meaning:
    return Meanings(SentenceEncoder(remembered=50_000), Concepts.shipped())


def _sessions(  # noqa: PLR0917
    chosen: tuple[Encounter, ...], meaning: Meaning, table: Table, seed: int, source: Source, kept: Path
) -> Iterator[Session]:
    followed = track(chosen, "watching", console=err)
    if source is Source.SCRIPT:
        yield from (watched(one, meaning, table, seed) for one in followed)
        return
    kept.mkdir(parents=True, exist_ok=True)
    whisper = Whisper(WhisperConfig())
    yield from (watched_from_sound(sensed(one, kept, whisper, seed), meaning, table) for one in followed)


def _detectors(sessions: list[Session]) -> dict[str, list[Session]]:
    return {
        "monitor": sessions,
        "where a row exists": resting_on(sessions, MEASURED),
        "where none does": resting_on(sessions, _UNMEASURED),
        "speech timing alone": only(sessions, lambda alarm: alarm.cue_id in TIMING_CUES),
        "prior": prior(sessions),
        "always no": silent(sessions),
    }


def _cells(row: Online) -> list[str]:
    at_each = "/".join(f"{value:.0f}" for value in row.f1.values())
    latency = f"{row.latency_s['p50']:.1f}" if row.latency_s else "-"
    shares = [f"{row.precision:.0f}", f"{row.recall:.0f}", f"{row.false_alarms_per_hour:.0f}"]
    headline = _with_interval(row.f1[_HEADLINE], row.f1_interval[_HEADLINE])
    return [at_each, headline, *shares, latency, str(row.events), str(row.alarms)]


def _with_interval(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.0f} [{interval[0]:.0f}, {interval[1]:.0f}]"
