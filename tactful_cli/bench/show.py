"""Print a score in the terminal."""

from rich.table import Table

from norm_core.runtime.wording import count_of, in_words
from sim_replays.suites.report import Report, to_plain
from sim_replays.suites.target import Suite
from tactful_cli.console import complain, print_json, print_table


def show_report(suite: Suite, found: Report, as_json: bool = False) -> None:
    """Print the figures with intervals, then outcomes and notes. With JSON, notes also go to standard error."""
    if as_json:
        for note in found.notes:
            complain(note)
        print_json(to_plain(found))
        return
    table = Table(
        "figure", "value", suite.ranges, "n", *found.controls, title=f"{suite.name}: {count_of(found.items, 'item')}"
    )
    for name in suite.columns:
        figure = found.figures[name]
        unit = "" if figure.unit == "%" else f" {figure.unit}"
        shown = (f"{figure.value:.1f}{unit}", f"{figure.low:.1f} to {figure.high:.1f}") if figure.count else ("-", "-")
        beside = [one[name] for one in found.controls.values()]
        table.add_row(name, *shown, str(figure.count), *(f"{one.value:.1f}" if one.count else "-" for one in beside))
    print_table(table)
    counts = ", ".join(f"{count} {in_words(name)}" for name, count in found.outcomes.items() if count)
    print(f"{count_of(found.questions, 'question')}: {counts}")
    for note in found.notes:
        print(f"note: {note}")
