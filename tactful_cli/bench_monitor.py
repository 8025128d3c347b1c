"""`tactful bench monitor`: the norm monitor on scripted encounters, by the measures of an online detector."""

from rich.progress import track
from rich.table import Table as Shown

from norm_core.engines.sentences import SentenceEncoder
from norm_core.flag import Polarity
from norm_core.jsonl import to_plain
from norm_monitor.cues.table import Table
from norm_monitor.meaning import Concepts, Meanings
from sim_replays.monitoring import TIMING_CUES, TOLERANCES_S, Online, Session, online, only, prior, silent, watched
from sim_replays.scenarios.library import encounters
from tactful_cli.console import err, out, print_json

_HEADLINE = "2"  # the tolerance in seconds whose interval is shown


def evaluate(split: str, limit: int, seed: int, as_json: bool) -> None:
    """Prints one row a detector and polarity."""
    chosen = encounters(split)[: limit or None]
    meaning, table = Meanings(SentenceEncoder(remembered=50_000), Concepts.shipped()), Table.shipped()
    sessions = [watched(one, meaning, table, seed) for one in track(chosen, "watching", console=err)]
    rows = {
        f"{name}, {polarity.value}s": online(found, polarity)
        for name, found in _detectors(sessions).items()
        for polarity in Polarity
    }
    if as_json:
        head = {"split": split, "encounters": len(chosen), "table": table.version, "tolerance_s": 2.0}
        print_json({**head, "rows": {name: to_plain(row) for name, row in rows.items()}})
        return
    tolerances = "/".join(f"{tolerance_s:g}" for tolerance_s in TOLERANCES_S)
    shown = Shown("detector", f"F1 at {tolerances} s", "at 2 s", "prec.", "recall", "false/h", "p50 s", "n", "alarms")
    for name, row in rows.items():
        shown.add_row(name, *_cells(row))
    out.print(shown)
    cues = rows["monitor, errors"]
    print(f"{len(chosen)} encounters of {split}; precision, recall and latency at 2 s")
    print("recall of errors by basis:", ", ".join(f"{basis} {value:.0f}" for basis, value in cues.by_basis.items()))
    for polarity in Polarity:
        row = rows[f"monitor, {polarity.value}s"]
        named = ", ".join(f"{name} {value:.0f}" for name, value in row.by_attribute.items())
        print(f"F1 of {polarity.value}s by attribute (macro {row.macro_f1_by_attribute:.1f}): {named}")


def _detectors(sessions: list[Session]) -> dict[str, list[Session]]:
    return {
        "monitor": sessions,
        "speech timing alone": only(sessions, lambda alarm: alarm.cue_id in TIMING_CUES),
        "prior": prior(sessions),
        "always no": silent(sessions),
    }


def _cells(row: Online) -> list[str]:
    at_each = "/".join(f"{value:.0f}" for value in row.f1.values())
    low, high = row.f1_interval[_HEADLINE]
    latency = f"{row.latency_s['p50']:.1f}" if row.latency_s else "-"
    shares = [f"{row.precision:.0f}", f"{row.recall:.0f}", f"{row.false_alarms_per_hour:.0f}"]
    return [at_each, f"[{low:.0f}, {high:.0f}]", *shares, latency, str(row.events), str(row.alarms)]
