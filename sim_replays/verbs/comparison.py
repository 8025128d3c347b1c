"""The tables of `tactful bench` in a terminal: a score beside its control, and the comparison of two runs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from norm_core.records.outcome import Outcome
from norm_core.runtime.wording import count_of, to_words
from sim_replays.suites.report import KINDS, MODEL_KIND, Headline, Report, load_published_tables, report_to_plain
from sim_replays.suites.suite import Suite
from tactful_cli.console import complain, print_json, print_table, show

if TYPE_CHECKING:  # it needs inspect_ai
    from sim_replays.evals.logs import Difference


def show_report(
    suite: Suite,
    report: Report,
    as_json: bool = False,
    *,
    answered_by: str = "",
    control: str = "",
    variant: Mapping[str, Any] | None = None,
) -> None:
    """Print the gain over a control, the figures with intervals, the rows of the paper of this variant, and notes.

    With JSON, notes also go to standard error.
    """
    if as_json:
        for note in report.notes:
            complain(note)
        print_json(report_to_plain(report))
        return
    if report.headline:
        show(_format_headline(report.headline, control))
    kind = f"{KINDS[report.kind]}: {answered_by}: " if report.kind else ""
    title = f"{suite.name}, {kind}{count_of(report.items, 'item')}"
    table = Table("figure", "value", suite.interval_label, "n", *report.controls, title=title)
    for name in suite.columns:
        figure = report.figures[name]
        unit = "" if figure.unit == "%" else f" {figure.unit}"
        value = f"{figure.value:.1f}{unit}" if figure.count else "-"
        interval = f"{figure.low:.1f} to {figure.high:.1f}" if figure.count else "-"
        of_controls = [figures[name] for figures in report.controls.values()]
        cells = [f"{control.value:.1f}" if control.count else "-" for control in of_controls]
        table.add_row(name, value, interval, str(figure.count), *cells)
    print_table(table)
    show(f"{count_of(report.questions, 'question')}: {_format_counts(report.outcomes)}")
    for task, outcomes in report.outcomes_by_task.items():
        if len(report.outcomes_by_task) > 1 and outcomes[Outcome.ANSWERED] < sum(outcomes.values()):
            show(f"  {task}: {_format_counts(outcomes)}")
    if report.kind == MODEL_KIND:
        _show_published(suite, variant)
    for note in report.notes:
        show(f"note: {note}")


def _format_counts(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {to_words(name)}" for name, count in outcomes.items() if count)


def _format_headline(headline: Headline, control: str) -> str:
    gain = headline.difference
    values = f"{headline.value.value:.1f} against {headline.control.value:.1f} %"
    return (
        f"over the control, {control}: {headline.name} {gain.value:+.1f} points "
        f"[{gain.low:+.1f}, {gain.high:+.1f}] ({values})"
    )


def show_differences(first: str, second: str, differences: Sequence["Difference"]) -> None:
    """Print the difference of the second run to the first, for each task."""
    table = Table("task", "n", first, second, "difference", "95 % interval", "only 1st", "only 2nd", "p")
    for row in differences:
        values = (f"{row.first:.1f}", f"{row.second:.1f}", f"{row.difference:+z.1f}")
        interval = f"{row.low:+z.1f} to {row.high:+z.1f}"
        counts = (str(row.only_first_right), str(row.only_second_right))
        table.add_row(row.task, str(row.count), *values, interval, *counts, f"{row.p:.3g}")
    print_table(table)


def _show_published(suite: Suite, variant: Mapping[str, Any] | None) -> None:
    """Print the tables of the paper, which asks models alone."""
    for published in load_published_tables(suite, variant):
        table = Table("published", *published.columns, title=published.source)
        for name in published.rows:
            table.add_row(name, *published.format_cells(name, published.columns))
        print_table(table)
