"""`tactful bench`: the papers' benchmarks, run through the same nodes as a robot, and scored."""

from pathlib import Path
from typing import Annotated

import typer

from sim_replays.suites.catalogue import SUITES, suite_called
from sim_replays.suites.predictions import read_predictions
from sim_replays.suites.report import report
from tactful_cli.bench_shown import show_report

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Run the papers' benchmarks through the robot's nodes, score answers, and compare runs.",
)


@app.callback()
def bench() -> None:
    """Run and score the papers' benchmarks."""


SuiteName = Annotated[str, typer.Argument(metavar="SUITE", help=f"One of {', '.join(SUITES)}.")]
Data = Annotated[Path, typer.Option("--data", help="The dataset's file, or the folder that holds it.")]
Style = Annotated[str, typer.Option(help="Prompt style of EgoGapBench: default, egoplan or exclusion.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON alone.")]


@app.command()
def score(
    suite: SuiteName,
    data: Data,
    predictions: Annotated[
        Path, typer.Option(metavar="FILE.jsonl", help="A line an answer: {id, task, answer, outcome}.")
    ],
    style: Style = "default",
    as_json: AsJson = False,
) -> None:
    """Score predictions without a model. Whatever was not answered counts as wrong, and is counted by outcome."""
    chosen = suite_called(suite)
    targets = chosen.read(data, style)
    show_report(chosen, report(chosen, targets, read_predictions(predictions, targets)), as_json)
