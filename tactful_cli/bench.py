"""`tactful bench`: the papers' benchmarks, run through the same nodes as a robot, and scored."""

from pathlib import Path
from typing import Annotated

import typer

from norm_core.config import check
from sim_replays.runs.asked import SETTINGS, Asking
from sim_replays.runs.folder import RunError
from sim_replays.runs.go import ENCODER, selector_files
from sim_replays.runs.tables import FORMATS
from sim_replays.suites.catalogue import SUITES, suite_called
from sim_replays.suites.predictions import read_predictions
from sim_replays.suites.report import report
from tactful_cli import bench_compare, bench_monitor, bench_run
from tactful_cli.bench_run import How, Spread
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
Setting = Annotated[
    str, typer.Option(help="; ".join(f"{name}: {', '.join(names)}" for name, names in SETTINGS.items()))
]
Limit = Annotated[int, typer.Option(min=0, help="Ask the first so many items alone; 0 for all.")]
Pictures = Annotated[Path | None, typer.Option(help="Folder of the pictures, where they lie apart from the data.")]
Sampling = Annotated[str, typer.Option(help="robot: tiles of at most 448 px; paper: as they are.")]
Seed = Annotated[int, typer.Option(help="Shuffles EgoNormia's options, and draws whose others are swapped.")]
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


@app.command()
def build(  # noqa: PLR0917
    suite: SuiteName,
    data: Data,
    setting: Setting,
    out: Annotated[Path, typer.Option("--out", metavar="BAG", help="The bag to make.")],
    limit: Limit = 0,
    style: Style = "default",
    pictures: Pictures = None,
    sampling: Sampling = "robot",
    seed: Seed = 0,
) -> None:
    """Write a bag of a suite's items, an episode each; what is right lies beside it, never in it."""
    print(bench_run.make(out, _asking(suite, data, setting, limit, style, pictures, sampling, seed)))


@app.command()
def run(  # noqa: PLR0917
    suite: SuiteName,
    data: Data,
    setting: Setting,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The run's folder; one begun before goes on.")],
    model: Annotated[
        str, typer.Option(help=f"{ENCODER}: the packaged sentence encoder; else a manifest's name.")
    ] = ENCODER,
    limit: Limit = 0,
    style: Style = "default",
    pictures: Pictures = None,
    sampling: Sampling = "robot",
    seed: Seed = 0,
    transport: Annotated[
        How, typer.Option(help="dds: the selector's node in its own process; direct: in this one.")
    ] = How.DDS,
    rate: Annotated[float, typer.Option(min=0, help="Times the bag's pace, over DDS; 0 waits for every answer.")] = 0.0,
    shards: Annotated[int, typer.Option(min=1, max=256, help="Processes that share the episodes.")] = 1,
    ray: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Ray cluster that they run on; local begins one here.")
    ] = "",
    when_unsure: Annotated[
        str, typer.Option(help="best_effort, ask_human or do_nothing; the latter two abstain.")
    ] = "best_effort",
    precedents: Annotated[Path | None, typer.Option(metavar="INDEX", help="What `tactful norms index` wrote.")] = None,
    as_json: AsJson = False,
) -> None:
    """Build a suite's bag, play it to the selector, and score what was answered. Interrupted, it goes on."""
    files = selector_files(
        model, when_unsure=when_unsure, precedents_index=str(precedents.resolve()) if precedents else ""
    )
    asking = _asking(suite, data, setting, limit, style, pictures, sampling, seed)
    bench_run.run(out, asking, files, Spread(shards=shards, ray=ray), how=transport, rate=rate, as_json=as_json)


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of another run of the same questions.")],
    parity: Annotated[bool, typer.Option("--parity", help="End with 1 unless the two are the same.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two runs in pairs (McNemar, bootstrap over pictures or videos), and name their first difference."""
    if not bench_compare.show_comparison(first, second, as_json) and parity:
        raise typer.Exit(1)


@app.command()
def show(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs of one suite.")],
    form: Annotated[str, typer.Option("--format", help=f"terminal, {', '.join(FORMATS)}.")] = "terminal",
    as_json: AsJson = False,
) -> None:
    """Score runs again from their raw answers, without any model, and show them as a table."""
    bench_compare.show_runs(runs, _form(form), as_json, with_published=False)


@app.command()
def leaderboard(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs of one suite.")],
    form: Annotated[str, typer.Option("--format", help=f"terminal, {', '.join(FORMATS)}.")] = "markdown",
) -> None:
    """Show runs above the rows that the suite's paper reports, with their source."""
    bench_compare.show_runs(runs, _form(form), False, with_published=True)


@app.command()
def monitor(
    split: Annotated[str, typer.Option(help="Scripted encounters to watch: development or held_out.")] = "development",
    limit: Limit = 0,
    seed: Annotated[int, typer.Option(help="Stretches the gaps between turns.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Watch scripted encounters with the norm monitor and measure its flags, beside baselines that watch less."""
    bench_monitor.evaluate(split, limit, seed, as_json)


def _form(name: str) -> str:
    if name not in {"terminal", *FORMATS}:
        raise RunError(f"there is no format {name!r}; the formats are terminal, {', '.join(FORMATS)}")
    return name


def _asking(  # noqa: PLR0917
    suite: str, data: Path, setting: str, limit: int, style: str, pictures: Path | None, sampling: str, seed: int
) -> Asking:
    suite_called(suite)
    plain = {
        "suite": suite,
        "data": str(data.resolve()),
        "setting": setting,
        "style": style,
        "pictures": str(pictures.resolve()) if pictures else "",
        "sampling": sampling,
        "seed": seed,
        "limit": limit,
    }
    return check(Asking, plain, "options")
