"""The tables of `tactful bench` in a terminal: a run's score beside its control, and two runs beside each other."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from norm_core.records.outcome import Outcome
from norm_core.runtime.wording import count_of, to_words
from sim_replays.suites.report import KINDS, MODEL_KIND, Headline, Report, published_results
from sim_replays.suites.report import to_plain as report_plain
from sim_replays.suites.suite import Suite
from tactful_cli.console import complain, print_json, print_table, show

if TYPE_CHECKING:  # it needs inspect_ai
    from sim_replays.evals.logs import Difference


def show_report(
    suite: Suite,
    scores: Report,
    as_json: bool = False,
    *,
    answered_by: str = "",
    control: str = "",
    variant: Mapping[str, Any] | None = None,
) -> None:
    """Print the gain over a control, the figures with intervals, the paper's rows of this variant, and notes.

    With JSON, notes also go to standard error.
    """
    if as_json:
        for note in scores.notes:
            complain(note)
        print_json(report_plain(scores))
        return
    if scores.headline:
        show(_headline(scores.headline, control))
    kind = f"{KINDS[scores.kind]}: {answered_by}: " if scores.kind else ""
    title = f"{suite.name}, {kind}{count_of(scores.items, 'item')}"
    table = Table("figure", "value", suite.ranges, "n", *scores.controls, title=title)
    for name in suite.columns:
        figure = scores.figures[name]
        unit = "" if figure.unit == "%" else f" {figure.unit}"
        shown = (f"{figure.value:.1f}{unit}", f"{figure.low:.1f} to {figure.high:.1f}") if figure.count else ("-", "-")
        beside = [control[name] for control in scores.controls.values()]
        table.add_row(
            name, *shown, str(figure.count), *(f"{column.value:.1f}" if column.count else "-" for column in beside)
        )
    print_table(table)
    show(f"{count_of(scores.questions, 'question')}: {_counts(scores.outcomes)}")
    for task, outcomes in scores.outcomes_by_task.items():
        if len(scores.outcomes_by_task) > 1 and outcomes[Outcome.ANSWERED] < sum(outcomes.values()):
            show(f"  {task}: {_counts(outcomes)}")
    if scores.kind == MODEL_KIND:
        _show_published(suite, variant)
    for note in scores.notes:
        show(f"note: {note}")


def _counts(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {to_words(name)}" for name, count in outcomes.items() if count)


def _headline(headline: Headline, control: str) -> str:
    gain = headline.difference
    beside = f"{headline.value.value:.1f} against {headline.control.value:.1f} %"
    return (
        f"over the control, {control}: {headline.name} {gain.value:+.1f} points "
        f"[{gain.low:+.1f}, {gain.high:+.1f}] ({beside})"
    )


def show_differences(first: str, second: str, differences: Sequence["Difference"]) -> None:
    """Print the second run's difference to the first, for each task."""
    table = Table("task", "n", first, second, "difference", "95 % interval", "only 1st", "only 2nd", "p")
    for row in differences:
        values = (f"{row.first:.1f}", f"{row.second:.1f}", f"{row.difference:+z.1f}")
        interval = f"{row.low:+z.1f} to {row.high:+z.1f}"
        counts = (str(row.only_first_right), str(row.only_second_right))
        table.add_row(row.task, str(row.count), *values, interval, *counts, f"{row.p:.3g}")
    print_table(table)


def _show_published(suite: Suite, variant: Mapping[str, Any] | None) -> None:
    """Print the rows of the suite's paper, which asks models alone."""
    for published in published_results(suite, variant):
        table = Table("published", *published.columns, title=published.source)
        for name in published.rows:
            table.add_row(name, *published.cells(name, published.columns))
        print_table(table)
