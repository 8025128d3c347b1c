"""`tactful bench`: run the published benchmarks through the robot's own nodes, and score them."""

from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from norm_core.runtime.config import check_config
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.wording import count_of
from norm_monitor.judge.deployment_context import DeploymentContext, PictureRules
from norm_monitor.senses.speech.whisper import WhisperConfig
from sim_replays.examples import suite_data
from sim_replays.runs import execute
from sim_replays.runs.execute import ENCODER, files_for
from sim_replays.runs.items.suite_items import SETTINGS
from sim_replays.runs.results.run_folder import RunError
from sim_replays.runs.results.tables import FORMATS
from sim_replays.runs.run_config import Frames, Precedents, RunConfig, ids_in, is_named
from sim_replays.scenarios.library import SPLITS
from sim_replays.suites.catalogue import SUITES, suite_called
from sim_replays.suites.predictions import read_predictions
from sim_replays.suites.report import report
from sim_replays.suites.target import SuiteError
from tactful_cli.bench import calibration, comparison, labelled_bags, monitor_bench, runs
from tactful_cli.bench.runs import How, Spread
from tactful_cli.bench.show import show_report
from tactful_cli.verb import WHISPER_HELP, AsJson, Language, WhisperModel, group

app = group("Run the papers' benchmarks through the robot's nodes, score answers, and compare runs.")


@app.callback()
def bench() -> None:
    """Run and score the published benchmarks."""


SuiteName = Annotated[str, typer.Argument(metavar="SUITE", help=f"One of {', '.join(SUITES)}.")]
Data = Annotated[Path, typer.Option("--data", help="File of the dataset, or its folder.")]
Style = Annotated[str, typer.Option(help="Prompt style of EgoGapBench: default, egoplan or exclusion.")]
Setting = Annotated[
    str, typer.Option(help="; ".join(f"{name}: {', '.join(names)}" for name, names in SETTINGS.items()))
]
Limit = Annotated[int, typer.Option(min=0, help="Number of items to ask, from the first; 0: all.")]
Pictures = Annotated[Path | None, typer.Option(help="Folder of images, videos and sound, if apart from the data.")]
FrameForm = Annotated[str, typer.Option("--frames", help=f"How a video is shown: {', '.join(get_args(Frames))}.")]
Drawn = Annotated[
    str,
    typer.Option(
        "--precedents",
        metavar="NAME|INDEX",
        help="EgoNormia: best-5, random-5 or none, from the half not asked; or an index of `tactful norms index`.",
    ),
]
Whisper = Annotated[str, typer.Option(help="For the setting whisper: " + WHISPER_HELP)]
Only = Annotated[Path | None, typer.Option(help="File with the ids to ask, as a JSON list or lines; default: all.")]
Sampling = Annotated[str, typer.Option(help="robot: tiles of at most 448 px; paper: original size.")]
Seed = Annotated[int, typer.Option(help="Random seed of option and frame order, swapped others and halves.")]


@app.command()
def score(  # noqa: PLR0917
    suite: SuiteName,
    data: Data,
    predictions: Annotated[
        Path, typer.Option(metavar="FILE.jsonl", help="Predictions, one per line: {id, task, answer, outcome}.")
    ],
    style: Style = "default",
    only: Only = None,
    as_json: AsJson = False,
) -> None:
    """Score predictions without a model. An item without an answer counts as wrong, and its outcome is counted."""
    chosen = suite_called(suite)
    targets = chosen.read(data, style)
    read = read_predictions(predictions, targets)
    if only:
        wanted = ids_in(only)
        targets = [target for target in targets if is_named(target.id, wanted)]
        if not targets:
            raise SuiteError(f"{only}: has no id of {data}; write one id a line")
    show_report(chosen, report(chosen, targets, read), as_json)


@app.command()
def example(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="hsri or videonorms; their data is available on request only.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="New folder to write.")],
) -> None:
    """Write an example folder of a suite from the shipped encounters. Its scores are no benchmark results."""
    count = suite_data.write(suite, folder)
    print(f"{folder}: {count} annotations, made of encounters that this project invented")
    print(f"Try: tactful bench run {suite} --data {folder} --setting text --out {folder}-run")


@app.command()
def build(  # noqa: PLR0917
    suite: SuiteName,
    data: Data,
    setting: Setting,
    out: Annotated[Path, typer.Option("--out", metavar="BAG", help="Bag to write.")],
    limit: Limit = 0,
    style: Style = "default",
    pictures: Pictures = None,
    sampling: Sampling = "robot",
    frames: FrameForm = "discrete",
    precedents: Drawn = "",
    whisper: Whisper = "",
    only: Only = None,
    seed: Seed = 0,
) -> None:
    """Write a suite's items to a bag, one episode per item. The labels go into a separate file."""
    asking = _asking(
        suite, data, setting, limit=limit, style=style, pictures=pictures, sampling=sampling, frames=frames,
        precedents=_drawn(precedents), whisper=whisper, only=only, seed=seed,
    )  # fmt: skip
    print(runs.make(out, asking))


@app.command()
def run(  # noqa: PLR0917
    suite: SuiteName,
    data: Data,
    setting: Setting,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the run; an unfinished run resumes.")],
    model: Annotated[
        str, typer.Option(help=f"{ENCODER}: the packaged sentence encoder; otherwise the name of a model.")
    ] = ENCODER,
    limit: Limit = 0,
    style: Style = "default",
    pictures: Pictures = None,
    sampling: Sampling = "robot",
    frames: FrameForm = "discrete",
    whisper: Whisper = "",
    only: Only = None,
    seed: Seed = 0,
    transport: Annotated[
        How, typer.Option(help="dds: the selector node in its own process; direct: in this process.")
    ] = How.DDS,
    rate: Annotated[
        float, typer.Option(min=0, help="Multiple of the bag's pace, over DDS; 0: wait for every answer.")
    ] = 0.0,
    shards: Annotated[int, typer.Option(min=1, max=256, help="Number of processes that share the episodes.")] = 1,
    ray: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Ray cluster for the processes; local: start one here.")
    ] = "",
    when_unsure: Annotated[
        str, typer.Option(help="best_effort, ask_human or do_nothing; the latter two abstain.")
    ] = "best_effort",
    precedents: Drawn = "",
    fitted: Annotated[
        Path | None, typer.Option(metavar="ARTEFACT", help="Weights of `bench fit`; such a run is listed separately.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help=f"Step to leave out (ablation): {', '.join(execute.STEPS_LESS)}."),
    ] = None,
    pictures_may_leave: Annotated[
        bool, typer.Option("--pictures-may-leave", help="Allow sending images to a model on another machine.")
    ] = False,
    context: Annotated[
        DeploymentContext,
        typer.Option(
            "--deployment-context",
            help="Where the clips were taken; only home, public and health allow inferring emotions from images.",
        ),
    ] = DeploymentContext.UNSPECIFIED,
    blind: Annotated[
        bool, typer.Option("--with-blind", help="Also ask every question without any input, in OUT/blind.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Build a suite's bag, play it to the selector and score the answers. Resumes an interrupted run."""
    asking = _asking(
        suite, data, setting, limit=limit, style=style, pictures=pictures, sampling=sampling, frames=frames,
        precedents=_drawn(precedents), whisper=whisper, only=only, seed=seed,
    )  # fmt: skip
    index = "" if _drawn(precedents) or not precedents else str(Path(precedents).resolve())
    weights = str(fitted.resolve()) if fitted else ""
    files = files_for(
        model,
        asking,
        when_unsure=when_unsure,
        precedents_index=index,
        fitted=weights,
        without=without or (),
        rules=PictureRules(pictures_may_leave=pictures_may_leave, deployment_context=context),
    )
    spread = Spread(shards=shards, ray=ray)
    runs.run(out, asking, files, spread, how=transport, rate=rate, blind=blind, as_json=as_json)


@app.command()
def grade(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run of videonorms.")],
    judge: Annotated[str, typer.Option(help="Name of the model that grades.")],
    as_json: AsJson = False,
) -> None:
    """Let a model grade written answers from 1 to 5 against every reference. Resumes an interrupted run."""
    runs.grade(run, judge, as_json)


@app.command()
def fit(
    suite: SuiteName,
    data: Data,
    out: Annotated[Path, typer.Option("--out", metavar="ARTEFACT", help="File to write.")],
    setting: Setting = "blind",
    style: Style = "default",
) -> None:
    """Fit weights on a suite's labels, in folds by image, for `bench run --fitted`: no evidence of perception."""
    made = execute.fit(_asking(suite, data, setting, style=style), out)
    print(
        f"{out}: fitted on {count_of(made.items, 'item')} of "
        f"{count_of(len(made.images), 'image')}, {count_of(len(made.folds), 'fold')} by image"
    )


@app.command()
def calibrate(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    wanted: Annotated[
        list[float] | None,
        typer.Option("--wanted", help="Share of sets that should hold the right option. Repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how often the calibrated set holds the right option, cross-validated by image or video."""
    for share in wanted or []:
        if not 0 < share < 1:
            raise RunError(f"--wanted {share}: is a share between 0 and 1")
    calibration.show_calibration(folder, wanted or [0.8, 0.9, 0.95], as_json)


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of another run of the same questions.")],
    parity: Annotated[bool, typer.Option("--parity", help="Exit with 1 unless both runs are equal.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two runs item by item (McNemar, bootstrap over images or videos), and show the first difference."""
    if not comparison.show_comparison(first, second, as_json) and parity:
        raise typer.Exit(1)


@app.command()
def show(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs of one suite.")],
    form: Annotated[str, typer.Option("--format", help=f"terminal, {', '.join(FORMATS)}.")] = "terminal",
    by: Annotated[
        str, typer.Option(help="Also show one row per group: norm, activity, culture, show or category.")
    ] = "",
    plot: Annotated[
        Path | None, typer.Option(metavar="OUT.svg", help="Draw one run's calibration and confusion.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score runs again from their raw answers, without a model, and print a table."""
    if plot and len(runs) > 1:
        raise RunError("--format: a plot shows one run; name one folder")
    comparison.show_runs(runs, _form(form), as_json, by=by)
    if plot:
        comparison.draw(runs[0], plot)


@app.command()
def leaderboard(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs of one suite.")],
    form: Annotated[str, typer.Option("--format", help=f"terminal, {', '.join(FORMATS)}.")] = "markdown",
    table: Annotated[str, typer.Option(help="Table of the paper; default: the main one.")] = "",
) -> None:
    """Show runs above the rows that the suite's paper reports, with their source."""
    comparison.show_runs(runs, _form(form), False, table=table)


@app.command()
def monitor(  # noqa: PLR0917
    split: Annotated[str, typer.Option(help=f"Shipped encounters: {' or '.join(SPLITS)} (default: development).")] = "",
    folder: Annotated[
        Path | None, typer.Option("--encounters", metavar="FOLDER", help="Folder of encounters instead of a split.")
    ] = None,
    limit: Limit = 0,
    seed: Annotated[int, typer.Option(help="Random seed of the gaps between turns.")] = 0,
    source: Annotated[
        monitor_bench.BenchSource,
        typer.Option(
            "--from", help="script: use the script's words and times; audio: use the output of ears and camera."
        ),
    ] = monitor_bench.BenchSource.SCRIPT,
    cache_folder: Annotated[
        Path, typer.Option(metavar="DIR", help="Cache of the senses' output; an interrupted run resumes from it.")
    ] = Path("scratch/sensed"),
    second_coder: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv", help="Another coder's events (encounter, polarity, attributes, onset): show agreement."
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="Judge model to add; shows what it adds to the cues.")] = "",
    calls_per_hour: Annotated[
        float, typer.Option(min=0, max=36_000, help="The most units that the judge is asked about in an hour.")
    ] = 240.0,
    triggering: Annotated[
        bool, typer.Option("--triggering", help="Measure which events the judge's triggers miss instead.")
    ] = False,
    bag: Annotated[list[Path] | None, typer.Option(help="Bag to use instead of the scripts. Repeatable.")] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.csv", help="Labels of a bag, one per line: class, onset_s, offset_s. Repeatable."),
    ] = None,
    topic: Annotated[str, typer.Option(help="Audio topic of the bags; default: the only one.")] = "",
    language: Language = "en",
    whisper: WhisperModel = "",
    as_json: AsJson = False,
) -> None:
    """Measure the monitor's flags on scripted encounters, beside baselines that use less input."""
    source_of_talk = {"--split": split, "--encounters": folder, "--bag": bag or labels}
    given = [name for name, value in source_of_talk.items() if value]
    if len(given) > 1:
        raise TactfulError(f"{' and '.join(given)}: exclude each other; give one")
    if second_coder and (bag or labels or triggering):
        raise TactfulError("--second-coder: compares labels of encounters; leave out --bag and --triggering")
    talks = monitor_bench.Talks(split=split, folder=folder, limit=limit, seed=seed)
    if bag or labels:
        labelled_bags.evaluate(bag or [], labels or [], topic, WhisperConfig(model=whisper, language=language), as_json)
    elif triggering:
        monitor_bench.show_triggering(talks, as_json)
    else:
        senses = monitor_bench.SenseInput(source=source, cache_folder=cache_folder)
        judge = monitor_bench.AddedJudge(model=model, calls_per_hour=calls_per_hour)
        monitor_bench.evaluate(talks, senses, judge, second_coder, as_json)


def _form(name: str) -> str:
    if name not in {"terminal", *FORMATS}:
        raise RunError(f"there is no format {name!r}; the formats are terminal, {', '.join(FORMATS)}")
    return name


def _asking(suite: str, data: Path, setting: str, **given: Any) -> RunConfig:
    suite_called(suite)
    plain = {name: str(value.resolve()) if isinstance(value, Path) else value for name, value in given.items()}
    plain = {name: value for name, value in plain.items() if value is not None}
    return check_config(
        RunConfig, {"suite": suite, "data": str(data.resolve()), "setting": setting, **plain}, "options"
    )


def _drawn(precedents: str) -> str:
    """Accept a method name as it is, and check anything else as a folder."""
    return precedents if precedents in get_args(Precedents) else ""
