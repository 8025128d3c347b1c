"""`tactful items`: make items from one's own recordings, and check sets of items."""

from pathlib import Path
from typing import Annotated

import typer

from norm_core.engines.sentences.sentence_encoder import MODEL as ENCODER_MODEL
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.runtime.time import WallClock
from sim_replays.own_items.check import ItemCheck, check_items, read_items, suite_name_of
from sim_replays.runs.asked_model import ModelOptions, open_asked_models
from sim_replays.runs.execute import ENCODER
from sim_replays.suites.suite import suite_called, suites
from tactful_cli.console import complain, err, print_json, print_table, titled_table
from tactful_cli.later_judge import PicturesMayLeave
from tactful_cli.verb import AsJson, group

app = group("Make items for a suite from your own recordings, and check whether a set is a good benchmark.")


@app.callback()
def items() -> None:
    """Make and check items."""


@app.command()
def check(  # noqa: PLR0917
    data: Annotated[Path, typer.Argument(metavar="FILE", help="File or folder of items, yours or a published one.")],
    suite: Annotated[
        str, typer.Option(help=f"One of {', '.join(suites())}, or a folder with suite.py; default: by the file.")
    ] = "",
    model: Annotated[list[str] | None, typer.Option(help=f"Model to ask as well as the {ENCODER}. Repeatable.")] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="Folder of the pictures, for a model that sees: its own and another item's.")
    ] = None,
    human: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Answers of a person, as predictions: {id, task, answer}.")
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(metavar="FILE.jsonl", help="Answers of the model that you report, as answers.jsonl of a run."),
    ] = None,
    pictures_may_leave: PicturesMayLeave = False,
    as_json: AsJson = False,
) -> None:
    """Show what scores on a set of items without seeing the scene, beside people, a model and the published rows.

    A warning tells where a control is above chance or comes near the model. Exits with 1 if there is one.
    """
    chosen = suite_called(suite or suite_name_of(data))
    asked = read_items(chosen, data, pictures)
    models = {
        name: open_asked_models(ENCODER_MODEL if name == ENCODER else name, WallClock(), ModelOptions())[0]
        for name in (ENCODER, *(model or ()))
    }
    with err.status("reading") as status:
        checked = check_items(
            chosen,
            asked,
            SentenceEncoder(),
            models,
            human=human,
            answers=answers,
            pictures_may_leave=pictures_may_leave,
            progress=lambda name: status.update(f"asking: {name}"),
        )
    _show(checked, as_json)
    if checked.warnings:
        raise typer.Exit(1)


def _show(checked: ItemCheck, as_json: bool) -> None:
    columns, table = checked.suite.columns, checked.published
    if as_json:
        rows = {
            name: {
                c: {"value": f.value, "low": f.low, "high": f.high, "n": f.count} for c, f in figures.items() if f.count
            }
            for name, figures in checked.rows.items()
        }
        published = (
            {name: dict(zip(table.columns, row, strict=True)) for name, row in table.rows.items()} if table else {}
        )
        print_json(
            {
                "suite": checked.suite.name,
                "items": checked.items,
                "rows": rows,
                "published": published,
                "published_source": table.source if table else "",
                "warnings": list(checked.warnings),
            }
        )
        return
    shown = titled_table(f"{checked.suite.name}, {checked.items} items", "", numbers=columns)
    for name, figures in checked.rows.items():
        shown.add_row(name, *(str(figures[column]) for column in columns))
    if table:
        shown.add_section()
        for name in table.rows:
            shown.add_row(f"published: {name}", *table.cells(name, columns))
    print_table(shown)
    if table:
        print(f"published: {table.source}")
    for warning in checked.warnings:
        complain(warning)
