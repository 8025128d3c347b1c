"""`python -m calibration.reference_judge`: what a large language model's recorded answers add to the fusion."""

from collections.abc import Iterable

from rich.progress import track

from calibration.command import run_command
from calibration.reference_judge.evaluation import CEILINGS, PlayedEncounter, ReaderFigures, figures, play_all
from norm_core.records.flag import Polarity
from norm_core.records.json_codec import to_plain
from norm_core.runtime.wording import count_of, to_words
from sim_replays.verbs.monitor_bench import NO_FIGURE, format_with_interval, make_table
from tactful_cli.console import err, print_json, print_table, show
from tactful_cli.verb_options import AsJson

_READERS = 3  # without a ceiling of calls: fusion, judge, both
_SEEN = (
    "The judge saw no label of these encounters; the shipped weights have seen them, which flatters the fusion. "
    "docs/results/monitor.md has the rows of writers left out."
)


def show_reference_judge(*, as_json: AsJson = False) -> None:
    """Print the figures of the fusion, the judge and both, under each ceiling of calls and in each form."""
    by_talk = play_all("talk", CEILINGS, _followed)
    rows = {reader: figures(reader, by_talk) for reader in by_talk[0].sessions}
    if by_unit := play_all("unit", track=_followed):
        names = {answer.name for answer in by_unit}
        of, same = f", {count_of(len(names), 'encounter')}", [answer for answer in by_talk if answer.name in names]
        readers = list(by_unit[0].sessions)
        rows |= {f"{reader}, a request a moment{of}": figures(reader, by_unit) for reader in readers}
        rows |= {f"{reader}, a request a minute{of}": figures(reader, same) for reader in readers}
    if as_json:
        print_json(to_plain(rows))
        return
    for polarity in Polarity:
        _show(rows, polarity)
    harmless, count = next((row.scores.harmless, len(row.encounters)) for row in rows.values())
    talk = f"{count_of(harmless.encounters, 'encounter')}, {harmless.minutes:.0f} minutes"
    show(f"{count_of(count, 'encounter')}; error-free talk: {talk}. {_SEEN}")


def _followed(played: Iterable[PlayedEncounter], count: int) -> Iterable[PlayedEncounter]:
    return track(played, "running the monitor", total=count, console=err)


def _show(rows: dict[str, ReaderFigures], polarity: Polarity) -> None:
    """Print a row for each reader; then recall by evidence type and F1 by attribute, a column for each reader."""
    columns = "F1 %", "any\nattribute", "precision\n%", "recall\n%", "average\nprecision", "asked\nan hour"
    table = make_table(f"{polarity}s", *columns, "false errors an hour\nof error-free talk")
    for name, row in rows.items():
        scores, precision, harmless = row.scores.of(polarity), row.average_precision.get(polarity), row.scores.harmless
        false = format_with_interval(harmless.false_errors_per_hour, harmless.false_errors_per_hour_interval)
        table.add_row(
            name,
            format_with_interval(scores.f1, scores.f1_interval),
            f"{scores.any_attribute:.0f}",
            f"{scores.precision:.0f}",
            f"{scores.recall:.0f}",
            NO_FIGURE if precision is None else f"{precision:.2f}",
            f"{row.asked_per_hour:.0f}",
            false if polarity is Polarity.ERROR else "",
        )
    print_table(table)
    show("")
    shown = {name: row.scores.of(polarity) for name, row in list(rows.items())[:_READERS]}
    table = make_table(f"{polarity}s: recall % by evidence type, F1 % by attribute", "labelled", *shown)
    first = next(iter(shown.values()))
    for basis, count in first.events_by_basis.items():
        table.add_row(basis, str(count), *(f"{scores.by_basis[basis]:.0f}" for scores in shown.values()))
    for name, count in first.events_by_attribute.items():
        table.add_row(to_words(name), str(count), *(f"{scores.by_attribute[name]:.0f}" for scores in shown.values()))
    print_table(table)
    show("")


if __name__ == "__main__":
    run_command(show_reference_judge)
