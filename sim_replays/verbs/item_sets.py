"""`tactful bench check-items`: check a set of items."""

from collections.abc import Mapping
from pathlib import Path

import typer

from norm_core.engines.sentences.sentence_encoder import MODEL as ENCODER_MODEL
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.json_codec import to_plain
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from sim_replays.runs.players import open_model
from sim_replays.suites.item_check import ItemCheck, check_items, name_suite, read_items
from sim_replays.suites.suite import Suite, find_suite
from tactful_cli.console import complain, err, print_json, print_table, show, titled_table


def check_set(data: Path, suite_name: str, answers: Mapping[str, Path | None], *, as_json: bool) -> None:
    """Print the scores of the controls of a set, and exit with 1 if there is a warning."""
    suite = find_suite(suite_name or name_suite(data))
    with err.status("reading") as status:
        checked = check_items(
            suite,
            read_items(suite, data),
            SentenceEncoder(),
            open_model(ENCODER_MODEL, WallClock()),
            answers=answers,
            progress=lambda control: status.update(f"asking: {control}"),
        )
    if as_json:
        print_json(to_plain(checked))
    else:
        _show_check(suite, checked)
    if checked.warnings:
        raise typer.Exit(1)


def _show_check(suite: Suite, checked: ItemCheck) -> None:
    """Print a row for each control and each published model, then the warnings."""
    published = checked.published
    table = titled_table(f"{suite.name}, {count_of(checked.items, 'item')}", "", numbers=suite.columns)
    for name, figures in checked.rows.items():
        table.add_row(name, *(str(figures[column]) for column in suite.columns))
    if published:
        for name in published.rows:
            table.add_row(f"published: {name}", *published.format_cells(name, suite.columns))
    print_table(table)
    show(f"published: {published.source}" if published else "no published rows")
    for warning in checked.warnings:
        complain(warning)
