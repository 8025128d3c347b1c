"""`tactful bench monitor`: score the monitor on scripted encounters with the measures of online detection."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.progress import track
from rich.table import Table as Shown

from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.flag import Polarity
from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of, in_words
from norm_monitor.context.meaning import Concepts, Meaning, Meanings
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.judge.judge import Judge
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.drivers.script_driver import monitor_from_sound, monitor_script
from sim_replays.monitor_bench.event_metrics import (
    MEASURED,
    READINGS,
    TIMING_CUES,
    TOLERANCES_S,
    EventSession,
    OnlineScores,
    alarms_of_cues,
    events_resting_on,
    prior_alarms,
    score_online,
    without_alarms,
)
from sim_replays.monitor_bench.false_alarms import false_alarms
from sim_replays.monitor_bench.judge_triggering import (
    CUES_ALONE_S,
    EVERY_WINDOW_S,
    SLOW_BEAT_S,
    JudgeStandIn,
    measure_triggering,
    run_with_judge,
)
from sim_replays.monitor_bench.sensed_cache import sense_encounter
from sim_replays.scenarios.clean_talk import clean_talk
from sim_replays.scenarios.encounter import Basis, Encounter
from sim_replays.scenarios.library import encounters
from sim_replays.suites.target import SuiteError
from tactful_cli.console import err, print_json, print_table

_HEADLINE = "2"  # the tolerance, in seconds, whose confidence interval is shown
_UNMEASURED = frozenset(Basis) - MEASURED


class BenchSource(StrEnum):
    """What the benchmark plays: the script's records, or its speech through the ears."""

    SCRIPT = "script"
    AUDIO = "audio"


def evaluate(  # noqa: PLR0917
    split: str, limit: int, seed: int, source: BenchSource, kept: Path, model: str, judge_every_s: float, as_json: bool
) -> None:
    """Print one row per detector and polarity, events by whether a cue exists for them, and attributes."""
    if model and source is BenchSource.AUDIO:
        raise TactfulError("--model: a model reads the words of the scripts; leave out --from audio, or --model")
    clock = WallClock()
    engine = open_engine_by_name(model, clock) if model else None  # first, so that a missing model fails at once
    chosen = encounters(split)[: limit or None]
    meaning, table = load_meaning(), ThresholdTable.shipped()
    sessions = _sessions(chosen, meaning, table, seed, source, kept)
    detectors = _detectors(sessions)
    asked: dict[str, Any] = {}
    if engine:
        asking = JudgeStandIn(Judge(engine), clock)
        try:
            shown = track(chosen, f"asking {model}", console=err)
            found = run_with_judge(shown, meaning, table, asking, seed, judge_every_s)
        finally:
            engine.close()
        asked = _told_of(asking, model)
        detectors = {"monitor": sessions, f"monitor and {model}": found, **detectors}
    rows = {
        f"{name}, {polarity.value}s": score_online(found, polarity)
        for name, found in detectors.items()
        for polarity in Polarity
    }
    if as_json:
        head = {
            "split": split, "from": source.value, "encounters": len(chosen), "table": table.version, "tolerance_s": 2.0
        }  # fmt: skip
        print_json({**head, **asked, "rows": {name: to_plain(row) for name, row in rows.items()}})
        return
    show_rows(rows)
    print(f"{count_of(len(chosen), 'encounter')} of {split}, from {source.value}; precision, recall and latency at 2 s")
    for polarity in Polarity:
        row = rows[f"monitor, {polarity.value}s"]
        by_basis = ", ".join(f"{basis} {value:.0f}" for basis, value in row.by_basis.items())
        print(f"recall of {polarity.value}s by basis: {by_basis}")
        print(f"F1 of {polarity.value}s by attribute (macro {row.macro_f1_by_attribute:.1f}):")
        for name, value in row.by_attribute.items():
            print(f"  {name} {_with_interval(value, row.by_attribute_interval[name])}")
    if asked:
        outcomes = ", ".join(f"{count} {in_words(outcome)}" for outcome, count in asked["outcomes"].items())
        spent = ", ".join(f"{name} {value:.2f} s" for name, value in asked["latency_s"].items())
        print(
            f"{model} was asked about {count_of(asked['windows'], 'window')}, by their words alone: {outcomes}; {spent}"
        )
        for reason, count in asked["reasons"].items():
            print(f"  {count_of(count, 'time')}: {reason}")


def show_rows(rows: Mapping[str, OnlineScores]) -> None:
    """Print a table with one row per detector."""
    tolerances = "/".join(f"{tolerance_s:g}" for tolerance_s in TOLERANCES_S)
    shown = Shown("detector", f"F1 at {tolerances} s", "at 2 s", "prec.", "recall", "false/h", "p50 s", "n", "alarms")
    for name, row in rows.items():
        shown.add_row(name, *_cells(row))
    print_table(shown)


def show_triggering(split: str, limit: int, seed: int, as_json: bool) -> None:
    """Print which labelled events a judge would miss, one row per trigger and kind of event."""
    chosen = encounters(split)[: limit or None]
    meaning, table = load_meaning(), ThresholdTable.shipped()
    ways = {"cues alone": CUES_ALONE_S, "and every 30 s": SLOW_BEAT_S, "every window": EVERY_WINDOW_S}
    found = {
        name: measure_triggering(track(chosen, name, console=err), meaning, table, every_s, seed)
        for name, every_s in ways.items()
    }
    if as_json:
        head = {"split": split, "encounters": len(chosen), "table": table.version}
        print_json({**head, "ways": {name: to_plain(way) for name, way in found.items()}})
        return
    shown = Shown("judged", "calls/h", "events", "n", "never shown %", "not whole %")
    for name, way in found.items():
        for kind, missed in way.missed.items():
            shares = f"{missed.unseen:.1f}", f"{missed.not_whole:.1f}"
            shown.add_row(name, f"{way.calls_per_hour:.0f}", kind, str(missed.events), *shares)
    print_table(shown)
    print(f"{count_of(len(chosen), 'encounter')} of {split}; a call is a window that a judge would be asked about")


def count_false_alarms(length_s: float, seed: int, as_json: bool) -> None:
    """Print how many errors are flagged in clean talk."""
    talks = track(list(clean_talk(length_s, seed)), "watching", console=err)
    found = false_alarms(talks, load_meaning(), ThresholdTable.shipped(), seed)
    if as_json:
        print_json(to_plain(found))
        return
    an_hour = f"{found.per_hour:.1f} an hour [{found.per_hour_interval[0]:.1f}, {found.per_hour_interval[1]:.1f}]"
    by_cue = ", ".join(f"{name} {count}" for name, count in found.by_cue.items())
    print(
        f"{count_of(found.count, 'error')} flagged in {found.hours:.2f} hours of clean talk, {an_hour}"
        + (f": {by_cue}" * bool(by_cue))
    )


def load_meaning() -> Meanings:
    """Load the shipped concepts, with a cache large enough for all encounters."""
    return Meanings(SentenceEncoder(remembered=50_000), Concepts.shipped())


def _told_of(asking: JudgeStandIn, model: str) -> dict[str, Any]:
    """Summarize the outcomes of the judge's questions."""
    return {
        "model": model,
        "windows": len(asking.spent_s),
        "outcomes": dict(asking.outcomes),
        "reasons": dict(asking.reasons.most_common(3)),
        "latency_s": asking.latency_s(),
    }


def _sessions(  # noqa: PLR0917
    chosen: Sequence[Encounter], meaning: Meaning, table: ThresholdTable, seed: int, source: BenchSource, kept: Path
) -> list[EventSession]:
    followed = track(chosen, "watching", console=err)
    if source is BenchSource.SCRIPT:
        return [monitor_script(one, meaning, table, seed) for one in followed]
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SuiteError(f"{kept}: cannot hold what is heard: {error.strerror}") from error
    whisper = Whisper(WhisperConfig())
    return [monitor_from_sound(sense_encounter(one, kept, whisper, seed), meaning, table) for one in followed]


def _detectors(sessions: list[EventSession]) -> dict[str, list[EventSession]]:
    return {
        "monitor": sessions,
        "where a row exists": events_resting_on(sessions, MEASURED),
        "only rows' false alarms": events_resting_on(sessions, MEASURED, lambda alarm: alarm.cue_id not in READINGS),
        "where none does": events_resting_on(sessions, _UNMEASURED),
        "only readings' false alarms": events_resting_on(sessions, _UNMEASURED, lambda alarm: alarm.cue_id in READINGS),
        "speech timing alone": alarms_of_cues(sessions, lambda alarm: alarm.cue_id in TIMING_CUES),
        "prior": prior_alarms(sessions),
        "always no": without_alarms(sessions),
    }


def _cells(row: OnlineScores) -> list[str]:
    at_each = "/".join(f"{value:.0f}" for value in row.f1.values())
    latency = f"{row.latency_s['p50']:.1f}" if row.latency_s else "-"
    shares = [f"{row.precision:.0f}", f"{row.recall:.0f}", f"{row.false_alarms_per_hour:.0f}"]
    headline = _with_interval(row.f1[_HEADLINE], row.f1_interval[_HEADLINE])
    return [at_each, headline, *shares, latency, str(row.events), str(row.alarms)]


def _with_interval(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.0f} [{interval[0]:.0f}, {interval[1]:.0f}]"
