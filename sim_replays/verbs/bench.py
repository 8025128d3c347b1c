"""`tactful bench`: run the published benchmarks through the robot's own nodes, and score them."""

from pathlib import Path
from typing import Annotated

import typer

from norm_core.runtime.errors import TactfulError
from norm_monitor.encounters.library import SPLITS
from sim_replays.runs.robot_config import ENCODER
from sim_replays.suites.item_check import HUMAN, MODEL
from sim_replays.suites.suite import load_suites
from sim_replays.verbs import item_sets, monitor_bench, suite_runs
from tactful_cli.flags import JUDGE, AskLater, JudgeAnswers, LaterJudge
from tactful_cli.verb_options import AsJson, make_group

app = make_group("Run the papers' benchmarks through the robot's nodes, score answers, and compare runs.")


@app.callback()
def bench() -> None:
    """Run and score benchmarks."""


SuiteName = Annotated[
    str, typer.Argument(metavar="SUITE", help=f"One of {', '.join(load_suites())}, or a folder with suite.py.")
]
Data = Annotated[Path, typer.Option("--data", help="File of the dataset, or its folder.")]
Limit = Annotated[int, typer.Option(min=0, help="Number of items to ask, from the first; 0 asks all.")]


@app.command()
def run(
    suite: SuiteName,
    *,
    data: Data,
    variants: Annotated[
        list[str] | None,
        typer.Option("-T", metavar="NAME=VALUE", help="Argument of the task, such as setting=blind; repeatable."),
    ] = None,
    engine: Annotated[
        str, typer.Option(help=f"Model inside the robot: {ENCODER}, the packaged one, or one that you added.")
    ] = ENCODER,
    model: Annotated[
        str, typer.Option(help="Ask this inspect_ai model alone, as in the paper, instead of the robot.")
    ] = "",
    dds: Annotated[bool, typer.Option("--dds", help="Run the robot's nodes in separate processes.")] = False,
    hosts: Annotated[int, typer.Option(min=1, max=64, help="Number of items that are played at the same time.")] = 1,
    limit: Limit = 0,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the logs.")] = Path("logs"),
    as_json: AsJson = False,
) -> None:
    """Run a suite by inspect_ai, and print the gain of the robot, or of a model alone, over its control.

    The robot's control uses the same steps with a model that answers at random. A model's control chooses at random.
    """
    log, control = suite_runs.run(
        suite, suite_runs.read_task_arguments(data, variants or ()), engine=engine, model=model, dds=dds, hosts=hosts,
        limit=limit, out=out,
    )  # fmt: skip
    suite_runs.score([log], control, as_json)


@app.command()
def score(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="One or two logs of inspect_ai, or predictions: a file of JSON lines."),
    ],
    *,
    control: Annotated[
        Path | None, typer.Option(metavar="LOG", help="Log of a control, to print the gain over it.")
    ] = None,
    suite: Annotated[str, typer.Option(help="Suite of predictions, or a folder with suite.py.")] = "",
    data: Annotated[Path | None, typer.Option(help="File or folder of their dataset.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the figures of a run with intervals; two runs of the same questions are compared item by item.

    Predictions, one `{id, task, answer, outcome}` a line, are scored without a model. A question without an answer
    counts as wrong, and its outcome is counted.
    """
    if suite and data and len(files) == 1:
        suite_runs.score_predictions(files[0], suite, data, as_json)
        return
    if suite or data or len(files) > 2:
        raise TactfulError("score: cannot use this; name one or two logs, or predictions with --suite and --data")
    suite_runs.score(files, control, as_json)


@app.command("check-items")
def check_items(
    data: Annotated[Path, typer.Argument(metavar="FILE", help="File or folder of items, yours or a published set.")],
    suite: Annotated[
        str, typer.Option(help=f"One of {', '.join(load_suites())}, or a folder with suite.py; default: by the file.")
    ] = "",
    human: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Answers of a person, as predictions: {id, task, answer}.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Answers of your model, as predictions.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what scores on a set of items without seeing the scene, beside people, a model and the published rows.

    A warning names each control that is above chance or comes near the model. Exits with 1 if there is a warning.
    """
    item_sets.check_set(data, suite, {HUMAN: human, MODEL: answers}, as_json=as_json)


@app.command()
def monitor(  # noqa: PLR0917
    split: Annotated[str, typer.Option(help=f"Shipped encounters: {' or '.join(SPLITS)} (default: development).")] = "",
    folder: Annotated[
        Path | None, typer.Option("--encounters", metavar="FOLDER", help="Folder of encounters instead of a split.")
    ] = None,
    limit: Limit = 0,
    seed: Annotated[int, typer.Option(help="Random seed of the gaps between turns.")] = 0,
    sound: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Hear synthetic voices speak the script (needs flite), and keep what was heard in this folder.",
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="Model of a judge; shows what it adds to the cues.")] = "",
    ask_later: AskLater = None,
    answers: JudgeAnswers = None,
    as_json: AsJson = False,
) -> None:
    """Compare the monitor's flags on scripted encounters with the labels and with flags at random."""
    if split and folder:
        raise TactfulError("--split and --encounters: exclude each other; give one")
    bench_input = monitor_bench.BenchInput(split=split, folder=folder, limit=limit, seed=seed, heard=sound)
    if ask_later:
        later = LaterJudge(ask_later, answers, model or JUDGE)
        monitor_bench.write_questions(bench_input, later)
        return
    answered = LaterJudge(None, answers) if answers else None
    monitor_bench.evaluate(bench_input, as_json, model=model, later=answered)
    if answered and answered.fits_nothing:
        raise typer.Exit(1)
