"""The tables of `tactful bench monitor` in a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from norm_core.runtime.wording import count_of, in_words
from sim_replays.monitor_bench.event_metrics import AT_S, Bounds, EncounterScores, Harmless, OnlineScores
from tactful_cli.console import print_table

NO_FIGURE = "–"  # a share of nothing
NO_INTERVAL = "note: there is no interval over one {0}: each is a bootstrap over {0}s"
_SHARES = (f"F1 %\nat {AT_S:g} s", "any\nattribute", "precision\n%", "recall\n%")

Scores = Mapping[str, EncounterScores]
Cells = Mapping[str, tuple[str, int]]  # a figure and its number of events, by group


def show_scores(monitor: Scores, parts: Scores, baselines: Scores) -> None:
    """Print one table per polarity, then recall by basis, F1 by attribute and harmless talk."""
    rows = {**monitor, **{f"  {name}": part for name, part in parts.items()}, **baselines}
    show_rows({name: row.errors for name, row in rows.items()}, "errors")
    show_rows({name: row.competences for name, row in rows.items()}, "competences")
    found = next(iter(monitor.values()))
    _show_groups("recall % by basis", _by_basis(found.errors), _by_basis(found.competences))
    _show_groups("F1 % by attribute", _by_attribute(found.errors), _by_attribute(found.competences))
    for title, of in (("errors", found.errors), ("competences", found.competences)):
        _show_confusion(title, of.attribute_confusion)
    _show_harmless({**monitor, **baselines})


def show_rows(rows: Mapping[str, OnlineScores], title: str) -> None:
    """Print a table with one row per detector."""
    shown = table_of(title, *_SHARES, "events", "flags", "false\nflags", "median\ndelay s")
    for name, row in rows.items():
        latency = f"{row.latency_s['p50']:.1f}" if row.latency_s else NO_FIGURE
        counts = str(row.events), str(row.flags), str(row.false)
        shown.add_row(name, *_shares(row, row.flags), *counts, latency)
    print_table(shown)
    print()


def show_judge(asked: Mapping[str, Any]) -> None:
    """Print what became of the judge's questions."""
    outcomes = ", ".join(f"{count} {in_words(outcome)}" for outcome, count in asked["outcomes"].items())
    spent = ", ".join(f"{name} {value:.2f} s" for name, value in asked["latency_s"].items())
    units = count_of(asked["units"], "unit")
    print(f"{asked['model']} was asked about {units}, by their words alone: {outcomes}; {spent}")
    if asked["late"]:
        late = count_of(asked["late"], "unit")
        print(f"  {late} took longer than judge.deadline_s, {asked['deadline_s']:g} s, and would time out on a robot")
    for reason, count in asked["reasons"].items():
        print(f"  {count_of(count, 'time')}: {reason}")


def _show_groups(title: str, errors: Cells, competences: Cells) -> None:
    shown = table_of(title, "errors", "events", "competences", "events")
    for name in sorted({*errors, *competences}):
        cells = [cell for by in (errors, competences) for cell in by.get(name, (NO_FIGURE, 0))]
        shown.add_row(in_words(name), *map(str, cells))
    print_table(shown)
    print()


def _show_confusion(title: str, confusion: Mapping[str, Mapping[str, int]]) -> None:
    """Print how often flags name an attribute of the columns, of events with an attribute of the rows."""
    shown = table_of(f"attributes of {title}: events down, their flags across", *map(in_words, confusion))
    for name, row in confusion.items():
        shown.add_row(in_words(name), *map(str, row.values()))
    print_table(shown)
    print()


def _show_harmless(rows: Scores) -> None:
    harmless: Harmless = next(iter(rows.values())).harmless
    if not harmless.encounters:
        print("Each encounter has a labelled error: false errors in harmless talk are not measured")
        return
    of = f"{count_of(harmless.encounters, 'encounter')}, {harmless.minutes:.1f} minutes"
    shown = table_of(f"harmless talk ({of})", "false\nerrors", "an hour")
    for name, row in rows.items():
        an_hour = with_interval(row.harmless.false_errors_per_hour, row.harmless.false_errors_per_hour_interval)
        shown.add_row(name, str(row.harmless.false_errors), an_hour)
    print_table(shown)
    print()


def _by_basis(row: OnlineScores) -> Cells:
    return {name: (f"{value:.0f}", row.events_by_basis[name]) for name, value in row.by_basis.items()}


def _by_attribute(row: OnlineScores) -> Cells:
    return {
        name: (with_interval(value, row.by_attribute_interval[name]), row.events_by_attribute[name])
        for name, value in row.by_attribute.items()
    }


def _shares(row: OnlineScores, labels: int) -> tuple[str, ...]:
    """Give F1, that for any attribute, precision and recall; a share of no flags or events is undefined."""
    f1 = with_interval(row.f1, row.f1_interval) if row.events or labels else NO_FIGURE
    return (
        f1,
        f"{row.any_attribute:.0f}" if row.events or labels else NO_FIGURE,
        f"{row.precision:.0f}" if labels else NO_FIGURE,
        f"{row.recall:.0f}" if row.events else NO_FIGURE,
    )


def table_of(title: str, *columns: str) -> Table:
    """Return a table whose first column holds names, the others figures."""
    shown = Table(title, box=SIMPLE, padding=0, show_edge=False)
    for name in columns:
        shown.add_column(name, justify="right")
    return shown


def with_interval(value: float, interval: Bounds) -> str:
    """Return a figure with its 95 % interval."""
    bounds = f"{interval[0]:.0f}, {interval[1]:.0f}" if interval else NO_FIGURE
    return f"{value:.0f} [{bounds}]"
