"""`tactful study agreement`: compare coders in tables."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_monitor.session_log.recording import Recording, check_distinct, open_recording
from norm_monitor.session_log.study_folder import Study, is_study
from study_desk.coding.agreement import Agreement, measure_agreement
from study_desk.coding.labels import ALL, ANY, collect_sessions
from study_desk.coding.reliability import (
    ALPHA,
    ANY_TWO,
    EVENT_F1,
    EVENT_KAPPA,
    KAPPA,
    MIN_SESSIONS,
    SEVERITY,
    AgreementRow,
    Estimate,
)
from tactful_cli.console import print_result, titled_table
from tactful_cli.progress import show_progress
from tactful_cli.verb_options import AsJson

app = typer.Typer()

_LEGEND = (
    "Kappa, events: Cohen's, of events matched within 1 s. Kappa and alpha, frames: Cohen's and Krippendorff's. "
    "Alpha, any two: over all coders, also with sessions missing. F1: onsets matched within the seconds named. "
    "Kappa, severity: linear weights, of events that both labelled alike. n: events that either marked; two with "
    "onsets within the seconds named count once. Below each figure its 95 % interval; – with fewer than "
    f"{MIN_SESSIONS} sessions that hold the label, and where a figure is undefined. %: resamples without a figure, "
    "which the interval leaves out. Any attribute: labels of one onset count once, and need not share an attribute."
)
# The heads of columns, in two lines.
_COLUMNS = {
    EVENT_KAPPA: "kappa\nevents",
    KAPPA: "kappa\nframes",
    ALPHA: "alpha\nframes",
    ANY_TWO: "alpha\nany two",
    SEVERITY: "kappa\nseverity",
}
# The columns of measures beyond chance, which come first.
_BEYOND_CHANCE = ("kappa\nevents", "kappa\nframes", "alpha\nany two", "alpha\nframes")


def make_agreement_tables(result: Agreement) -> Iterator[Table]:
    """Yield the shared sessions, then a table for each pair of humans, for all, and for the monitor with each human."""
    yield _make_shared_table(result)
    groups: dict[tuple[str, tuple[str, ...]], list[AgreementRow]] = {}
    for row in result.rows:
        groups.setdefault((row.comparison, row.coders), []).append(row)
    for (comparison, coders), rows in groups.items():
        yield _make_table(f"{comparison}: {', '.join(coders)}", rows)


def _make_shared_table(result: Agreement) -> Table:
    table = titled_table("sessions coded by both", "coders", numbers=("sessions", "minutes"))
    for pair in result.shared:
        table.add_row(", ".join(pair.coders), str(pair.sessions), f"{pair.minutes:.1f}")
    return table


def _make_table(title: str, rows: list[AgreementRow]) -> Table:
    columns = sorted(dict.fromkeys(map(_name_column, rows)), key=lambda column: column not in _BEYOND_CHANCE)
    labels: dict[str, dict[str, AgreementRow]] = {}
    for row in rows:
        labels.setdefault(_name_label(row), {})[_name_column(row)] = row
    # The events of the first F1 are counted in a column of their own.
    first_f1 = next((row for row in rows if row.measure == EVENT_F1), None)
    count_columns = [f"n\n{first_f1.tolerance_s:g} s"] if first_f1 else []
    table = titled_table(title, "label", numbers=[*count_columns, *columns])
    for label, by_column in labels.items():
        counts = [str(by_column[_name_column(first_f1)].units)] if first_f1 else []
        cells = (_format_estimate(by_column[name].estimate) if name in by_column else "" for name in columns)
        table.add_row(label, *counts, *cells)
    return table


def _name_label(row: AgreementRow) -> str:
    if row.attribute == ANY:
        return f"{row.polarity}, any attribute"
    return ALL if row.attribute == ALL else f"{row.polarity} {row.attribute.replace('_', ' ')}"


def _name_column(row: AgreementRow) -> str:
    return f"F1\n{row.tolerance_s:g} s" if row.measure == EVENT_F1 else _COLUMNS[row.measure]


def _format_estimate(estimate: Estimate) -> str:
    if estimate.value is None:
        return "–"
    bounds = [_format_short(bound) for bound in (estimate.low, estimate.high) if bound is not None]
    interval = "–".join(bounds) or "–"
    undefined = f"\n{max(1, round(100 * estimate.undefined))} %" if estimate.undefined else ""
    return f"{_format_short(estimate.value)}\n{interval}{undefined}"


def _format_short(value: float) -> str:
    """Format without the leading zero, as is usual for values of at most 1."""
    return f"{value:.2f}".replace("0.", ".", 1)


@app.command()
def agreement(
    sources: Annotated[
        list[Path], typer.Argument(metavar="LOG|STUDY...", help="Logs of different sessions, or folder of a study.")
    ],
    resamples: Annotated[
        int, typer.Option(min=1, max=100_000, help="Number of bootstrap samples of whole sessions.")
    ] = 1000,
    seed: Annotated[int, typer.Option(help="Random seed of the bootstrap.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compute agreement between human coders, and between the monitor and each of them."""
    recordings: list[Recording] = []
    left_out: list[str] = []
    for source in sources:
        if is_study(source):
            by_session, remarks = Study(source).recordings()
            recordings += by_session.values()
            left_out += remarks
        elif (recording := open_recording(source)).missing:
            left_out.append(f"{source}: {recording.missing}, so is left out")
        else:
            recordings.append(recording)
    check_distinct(recordings)
    sessions = collect_sessions(recordings)
    if not sessions and left_out:
        raise TactfulError(f"agreement: no session is left to compare: {'; '.join(left_out)}")
    with show_progress("computing agreement") as update_progress:
        result = measure_agreement(sessions, resamples=resamples, seed=seed, progress=update_progress)
    result = replace(result, remarks=(*left_out, *result.remarks))
    print_result(to_plain(result), *make_agreement_tables(result), as_json=as_json, notes=(_LEGEND, *result.remarks))
