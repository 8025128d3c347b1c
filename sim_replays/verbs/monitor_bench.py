"""`tactful bench monitor`: score the monitor on scripted encounters."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.progress import track
from rich.table import Table

from norm_core.engines.engine_factory import open_engine
from norm_core.models.catalogue import Catalogue
from norm_core.records.json_codec import to_plain
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, WallClock, s_to_ns
from norm_core.runtime.wording import count_of, to_words
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit_model import Sensitivity
from norm_monitor.context.meaning import EncoderMatcher, TextMatcher
from norm_monitor.encounters.encounter import Encounter, make_talk_name
from norm_monitor.encounters.library import encounters, load_folder
from norm_monitor.judge.judge import Judge, JudgeConfig
from norm_monitor.judge.triggers import NO_CEILING
from norm_monitor.monitor import MonitorConfig
from norm_monitor.replay.judge_stand_in import Attend, JudgeStandIn, attend_nothing
from norm_monitor.senses.speech.whisper import WhisperConfig
from sim_replays.monitor_bench.event_metrics import (
    TOLERANCE_S,
    Bounds,
    EncounterScores,
    EventSession,
    Harmless,
    OnlineScores,
    draw_prior_alarms,
    score_encounters,
)
from sim_replays.monitor_bench.script_driver import BenchSource, monitor_script, run_monitor, sense_encounter
from tactful_cli.console import err, print_json, print_table, show
from tactful_cli.flag_watch import load_whisper
from tactful_cli.flags import LaterJudge

DEFAULT_SPLIT = "development"
BALANCED = f"monitor, {Sensitivity.BALANCED}"
DEADLINE_S = JudgeConfig().deadline_s  # of a live monitor
NO_FIGURE = "–"  # a share of nothing
NO_INTERVAL = "note: there is no interval over one {0}: each is a bootstrap over {0}s"
_SHARES = (f"F1 %\nat {TOLERANCE_S:g} s", "any\nattribute", "precision\n%", "recall\n%")

Scores = Mapping[str, EncounterScores]
Cells = Mapping[str, tuple[str, int]]  # a figure and its number of events, by group
AttendOf = Callable[[Encounter], Attend]  # returns what attends to the monitor of an encounter


def show_scores(monitor: Scores, baselines: Scores) -> None:
    """Print one table per polarity, then recall by basis, F1 by attribute and harmless talk."""
    rows = {**monitor, **baselines}
    show_rows({name: row.errors for name, row in rows.items()}, "errors")
    show_rows({name: row.competences for name, row in rows.items()}, "competences")
    scores = next(iter(monitor.values()))
    _show_groups("recall % by basis", _list_by_basis(scores.errors), _list_by_basis(scores.competences))
    _show_groups("F1 % by attribute", _list_by_attribute(scores.errors), _list_by_attribute(scores.competences))
    _show_harmless(rows)


def show_rows(rows: Mapping[str, OnlineScores], title: str) -> None:
    """Print a table with one row per detector."""
    shown = make_table(title, *_SHARES, "events", "flags", "false\nflags", "median\ndelay s")
    for name, row in rows.items():
        latency = f"{row.latency_s['p50']:.1f}" if row.latency_s else NO_FIGURE
        counts = str(row.events), str(row.flags), str(row.false)
        shown.add_row(name, *_format_shares(row, row.flags), *counts, latency)
    print_table(shown)
    show("")


def show_judge(asked: Mapping[str, Any]) -> None:
    """Print what became of the judge's questions."""
    outcomes = ", ".join(f"{count} {to_words(outcome)}" for outcome, count in asked["outcomes"].items())
    spent = ", ".join(f"{name} {value:.2f} s" for name, value in asked["latency_s"].items())
    units = count_of(asked["units"], "unit")
    show(f"{asked['model']} was asked about {units}, by their words alone: {outcomes}; {spent}")
    if asked["late"]:
        late = count_of(asked["late"], "unit")
        show(f"  {late} took longer than judge.deadline_s, {asked['deadline_s']:g} s, and would time out on a robot")
    for reason, count in asked["reasons"].items():
        show(f"  {count_of(count, 'time')}: {reason}")


def _show_groups(title: str, errors: Cells, competences: Cells) -> None:
    shown = make_table(title, "errors", "events", "competences", "events")
    for name in sorted({*errors, *competences}):
        cells = [cell for by in (errors, competences) for cell in by.get(name, (NO_FIGURE, 0))]
        shown.add_row(to_words(name), *map(str, cells))
    print_table(shown)
    show("")


def _show_harmless(rows: Scores) -> None:
    harmless: Harmless = next(iter(rows.values())).harmless
    if not harmless.encounters:
        show("Each encounter has a labelled error: false errors in harmless talk are not measured")
        return
    of = f"{count_of(harmless.encounters, 'encounter')}, {harmless.minutes:.1f} minutes"
    shown = make_table(f"harmless talk ({of})", "false\nerrors", "an hour")
    for name, row in rows.items():
        an_hour = format_with_interval(row.harmless.false_errors_per_hour, row.harmless.false_errors_per_hour_interval)
        shown.add_row(name, str(row.harmless.false_errors), an_hour)
    print_table(shown)
    show("")


def _list_by_basis(row: OnlineScores) -> Cells:
    return {name: (f"{value:.0f}", row.events_by_basis[name]) for name, value in row.by_basis.items()}


def _list_by_attribute(row: OnlineScores) -> Cells:
    return {
        name: (format_with_interval(value, row.by_attribute_interval[name]), row.events_by_attribute[name])
        for name, value in row.by_attribute.items()
    }


def _format_shares(row: OnlineScores, labels: int) -> tuple[str, ...]:
    """Format F1, F1 for any attribute, precision and recall; a share of no flags or events is undefined."""
    f1 = format_with_interval(row.f1, row.f1_interval) if row.events or labels else NO_FIGURE
    return (
        f1,
        f"{row.any_attribute:.0f}" if row.events or labels else NO_FIGURE,
        f"{row.precision:.0f}" if labels else NO_FIGURE,
        f"{row.recall:.0f}" if row.events else NO_FIGURE,
    )


def make_table(title: str, *columns: str) -> Table:
    """Return a table whose first column holds names, the others figures."""
    shown = Table(title, box=SIMPLE, padding=0, show_edge=False)
    for name in columns:
        shown.add_column(name, justify="right")
    return shown


def format_with_interval(value: float, interval: Bounds) -> str:
    """Return a figure with its 95 % interval."""
    bounds = f"{interval[0]:.0f}, {interval[1]:.0f}" if interval else NO_FIGURE
    return f"{value:.0f} [{bounds}]"


@record
class BenchInput:
    """The encounters to measure on, a shipped split or a folder."""

    split: str = ""
    folder: Path | None = None
    limit: int = 0  # 0: all
    seed: int = 0
    heard: Path | None = None  # folder of what the senses heard; None: the script's words

    @property
    def name(self) -> str:
        """The folder or the split."""
        return str(self.folder or self.split or DEFAULT_SPLIT)

    def read(self) -> tuple[Encounter, ...]:
        """Read the encounters."""
        every = load_folder(self.folder) if self.folder else encounters(self.split or DEFAULT_SPLIT)
        return every[: self.limit or None]


def write_questions(talks: BenchInput, later: LaterJudge) -> None:
    """Write the questions of a judge about the encounters."""
    _run_monitor(
        talks,
        talks.read(),
        load_meaning(),
        Sensitivity.BALANCED,
        lambda encounter: later.attend(make_talk_name(encounter)),
    )
    later.conclude()


def evaluate(
    talks: BenchInput,
    as_json: bool,
    *,
    model: str = "",
    later: LaterJudge | None = None,
) -> None:
    """Print the scores of the monitor beside its baselines, and with a judge: a model, or one that has answered."""
    clock = WallClock()
    engine = open_engine(Catalogue().read_manifest(model), clock) if model else None  # a missing model fails at once
    chosen, meaning = talks.read(), load_meaning()
    by_sensitivity = {
        sensitivity: _run_monitor(talks, chosen, meaning, sensitivity)
        for sensitivity in (Sensitivity.BALANCED, Sensitivity.QUIET, Sensitivity.KEEN)  # the default comes first
    }
    sessions = by_sensitivity[Sensitivity.BALANCED]
    rows = {
        f"monitor, {sensitivity}": score_encounters(encounter_scores)
        for sensitivity, encounter_scores in by_sensitivity.items()
    }
    asked: dict[str, Any] = {}
    if engine:
        stand_in = JudgeStandIn(Judge(engine), clock)
        try:
            judged = _run_monitor(talks, chosen, meaning, Sensitivity.BALANCED, lambda encounter: stand_in)
        finally:
            engine.close()
        asked = _collect_judge_figures(stand_in, model)
        rows[f"monitor and {model}"] = score_encounters(judged)
    if later:
        judged = _run_monitor(
            talks, chosen, meaning, Sensitivity.BALANCED, lambda encounter: later.attend(make_talk_name(encounter))
        )
        asked = _collect_judge_figures(later.stand_in, later.model)
        rows[f"monitor and {later.model}"] = score_encounters(judged)
    baselines = {"prior": score_encounters(draw_prior_alarms(sessions))}
    if as_json:
        scores: dict[str, Any] = to_plain(rows[BALANCED])
        report: dict[str, Any] = {
            "split": None if talks.folder else talks.name,
            "folder": str(talks.folder) if talks.folder else None,
            "encounters": len(chosen),
            "table": ThresholdTable.shipped().version,
            "source": BenchSource.AUDIO if talks.heard else BenchSource.SCRIPT,
            "reader": meaning.has_reader,
            "tolerance_s": TOLERANCE_S,
            **scores,
            "sensitivities": {
                sensitivity.value: to_plain(rows[f"monitor, {sensitivity}"]) for sensitivity in by_sensitivity
            },
            "baselines": {name: to_plain(row) for name, row in baselines.items()},
        }
        if asked:
            report["judge"] = {**asked, **to_plain(rows[f"monitor and {asked['model']}"])}
        print_json(report)
        return
    show_scores(rows, baselines)
    minutes = sum(session.truth.end_ns - session.truth.start_ns for session in sessions) / NS_PER_S / 60
    show(f"{count_of(len(chosen), 'encounter')} of {talks.name}, {minutes:.1f} minutes")
    show(f"read {'line by line by the talk reader' if meaning.has_reader else 'by sentences, without a talk reader'}")
    if len(chosen) == 1:
        show(NO_INTERVAL.format("encounter"))
    if asked:
        show_judge(asked)


def load_meaning() -> EncoderMatcher:
    """Load the shipped concepts, with a cache large enough for all encounters."""
    return EncoderMatcher.shipped(remembered=50_000)


def _collect_judge_figures(asking: JudgeStandIn, model: str) -> dict[str, Any]:
    return {
        "model": model,
        "units": len(asking.spent_s),
        "outcomes": dict(asking.outcomes),
        "reasons": dict(asking.reasons.most_common(3)),
        "latency_s": asking.latency_s(),
        "deadline_s": DEADLINE_S,
        "late": asking.count_late(s_to_ns(DEADLINE_S)),
    }


def _run_monitor(
    talks: BenchInput,
    chosen: Sequence[Encounter],
    meaning: TextMatcher,
    sensitivity: Sensitivity,
    attend_of: AttendOf | None = None,
) -> list[EventSession]:
    """Run the monitor on each encounter, with what attends to it, if anything does."""
    table, fusion = ThresholdTable.shipped(), FusionConfig(sensitivity=sensitivity)
    about = " and a judge" if attend_of else f", {sensitivity}"
    per_hour = NO_CEILING if attend_of else 0.0
    attend_of = attend_of or (lambda encounter: attend_nothing)

    def run(encounter: Encounter) -> EventSession:
        attend = attend_of(encounter)
        if not talks.heard:
            return monitor_script(encounter, meaning, table, talks.seed, attend, per_hour, fusion=fusion)
        sensed = sense_encounter(encounter, talks.heard, load_whisper(WhisperConfig()), talks.seed)
        config = MonitorConfig.for_replay(sensed.sources, calls_per_hour=per_hour, fusion=fusion)
        return run_monitor(sensed.records, sensed.truth, config, meaning, table, attend)

    return [run(encounter) for encounter in track(chosen, f"running the monitor{about}", console=err)]
