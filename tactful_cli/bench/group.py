"""`tactful bench`: the papers' benchmarks, run through the same nodes as a robot, and scored."""

from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from norm_core.runtime.config import check_config
from norm_core.runtime.wording import count_of
from norm_monitor.judge.deployment_context import DeploymentContext, PictureRules
from sim_replays.examples import suite_data
from sim_replays.runs import execute
from sim_replays.runs.execute import ENCODER, files_for
from sim_replays.runs.items.suite_items import SETTINGS
from sim_replays.runs.results.run_folder import RunError
from sim_replays.runs.results.tables import FORMATS
from sim_replays.runs.run_config import Frames, Precedents, RunConfig, ids_in, is_named
from sim_replays.suites.catalogue import SUITES, suite_called
from sim_replays.suites.predictions import read_predictions
from sim_replays.suites.report import report
from sim_replays.suites.target import SuiteError
from tactful_cli.bench import calibration, comparison, labelled_bags, monitor_bench, runs
from tactful_cli.bench.runs import How, Spread
from tactful_cli.bench.show import show_report
from tactful_cli.verb import AsJson, group

app = group("Run the papers' benchmarks through the robot's nodes, score answers, and compare runs.")


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
Pictures = Annotated[
    Path | None, typer.Option(help="Folder of pictures, videos and sound, where they lie apart from the data.")
]
FrameForm = Annotated[str, typer.Option("--frames", help=f"How a video is shown: {', '.join(get_args(Frames))}.")]
Drawn = Annotated[
    str,
    typer.Option(
        "--precedents",
        metavar="NAME|INDEX",
        help="EgoNormia: best-5, random-5 or none, of the half that is not asked; or what `tactful norms index` wrote.",
    ),
]
Whisper = Annotated[str, typer.Option(help="CTranslate2 model for the setting whisper; the packaged one if empty.")]
Only = Annotated[Path | None, typer.Option(help="Ask the ids in this file alone, as of a split: a list, or lines.")]
Sampling = Annotated[str, typer.Option(help="robot: tiles of at most 448 px; paper: as they are.")]
Seed = Annotated[int, typer.Option(help="Shuffles options and frames, and draws swapped others and halves.")]


@app.command()
def score(  # noqa: PLR0917
    suite: SuiteName,
    data: Data,
    predictions: Annotated[
        Path, typer.Option(metavar="FILE.jsonl", help="A line an answer: {id, task, answer, outcome}.")
    ],
    style: Style = "default",
    only: Only = None,
    as_json: AsJson = False,
) -> None:
    """Score predictions without a model. Whatever was not answered counts as wrong, and is counted by outcome."""
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
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="hsri or videonorms, which are given on request only.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder to make.")],
) -> None:
    """Make a folder of a suite from the shipped encounters, to try the suite on: no figure of the benchmark."""
    count = suite_data.write(suite, folder)
    print(f"{folder}: {count} annotations, made of encounters that this project invented")
    print(f"Try: tactful bench run {suite} --data {folder} --setting text --out {folder}-run")


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
    frames: FrameForm = "discrete",
    precedents: Drawn = "",
    whisper: Whisper = "",
    only: Only = None,
    seed: Seed = 0,
) -> None:
    """Write a bag of a suite's items, an episode each; what is right lies beside it, never in it."""
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
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The run's folder; one begun before goes on.")],
    model: Annotated[
        str, typer.Option(help=f"{ENCODER}: the packaged sentence encoder; else a manifest's name.")
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
    precedents: Drawn = "",
    fitted: Annotated[
        Path | None, typer.Option(metavar="ARTEFACT", help="What `bench fit` wrote; such a run is shown apart.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help=f"A step to leave out, to see what it adds: {', '.join(execute.STEPS_LESS)}."),
    ] = None,
    pictures_may_leave: Annotated[
        bool, typer.Option("--pictures-may-leave", help="Send pictures to a model that is not on this machine.")
    ] = False,
    context: Annotated[
        DeploymentContext,
        typer.Option(
            "--deployment-context",
            help="Where the clips were taken; only home, public and health let emotions be inferred from pictures.",
        ),
    ] = DeploymentContext.UNSPECIFIED,
    blind: Annotated[
        bool, typer.Option("--with-blind", help="Ask the same with nothing shown or told as well, in OUT/blind.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Build a suite's bag, play it to the selector, and score what was answered. Interrupted, it goes on."""
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
    judge: Annotated[str, typer.Option(help="The model that grades: a manifest's name.")],
    as_json: AsJson = False,
) -> None:
    """Let a model grade what was written, from 1 to 5, against every reference. Interrupted, it goes on."""
    runs.grade(run, judge, as_json)


@app.command()
def fit(
    suite: SuiteName,
    data: Data,
    out: Annotated[Path, typer.Option("--out", metavar="ARTEFACT", help="The file to write.")],
    setting: Setting = "blind",
    style: Style = "default",
) -> None:
    """Fit weights on a suite's labels, by folds of images, for `bench run --fitted`: no evidence of perception."""
    made = execute.fit(_asking(suite, data, setting, style=style), out)
    print(
        f"{out}: fitted on {count_of(made.items, 'item')} of "
        f"{count_of(len(made.images), 'image')}, {count_of(len(made.folds), 'fold')} by image"
    )


@app.command()
def calibrate(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    wanted: Annotated[
        list[float] | None, typer.Option("--wanted", help="Share of sets that are to hold the right option; repeat it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how often the options that could be right hold the right one, cross-validated by picture or video."""
    for share in wanted or []:
        if not 0 < share < 1:
            raise RunError(f"--wanted {share}: is a share between 0 and 1")
    calibration.show_calibration(folder, wanted or [0.8, 0.9, 0.95], as_json)


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of another run of the same questions.")],
    parity: Annotated[bool, typer.Option("--parity", help="End with 1 unless the two are the same.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two runs in pairs (McNemar, bootstrap over pictures or videos), and name their first difference."""
    if not comparison.show_comparison(first, second, as_json) and parity:
        raise typer.Exit(1)


@app.command()
def show(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs of one suite.")],
    form: Annotated[str, typer.Option("--format", help=f"terminal, {', '.join(FORMATS)}.")] = "terminal",
    by: Annotated[str, typer.Option(help="A row a group as well: norm, activity, culture, show or category.")] = "",
    plot: Annotated[
        Path | None, typer.Option(metavar="OUT.svg", help="Draw one run's calibration and confusion.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score runs again from their raw answers, without any model, and show them as a table."""
    if plot and len(runs) > 1:
        raise RunError("--format: a plot shows one run; name one folder")
    comparison.show_runs(runs, _form(form), as_json, by=by)
    if plot:
        comparison.draw(runs[0], plot)


@app.command()
def leaderboard(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs of one suite.")],
    form: Annotated[str, typer.Option("--format", help=f"terminal, {', '.join(FORMATS)}.")] = "markdown",
    table: Annotated[str, typer.Option(help="Which of the paper's tables; the main one where left out.")] = "",
) -> None:
    """Show runs above the rows that the suite's paper reports, with their source."""
    comparison.show_runs(runs, _form(form), False, table=table)


@app.command()
def monitor(  # noqa: PLR0917
    split: Annotated[str, typer.Option(help="Scripted encounters to watch: development or held_out.")] = "development",
    limit: Limit = 0,
    seed: Annotated[int, typer.Option(help="Stretches the gaps between turns, and draws clean talk.")] = 0,
    source: Annotated[
        monitor_bench.BenchSource,
        typer.Option("--from", help="script: its words and times; audio: what ears and camera make of them."),
    ] = monitor_bench.BenchSource.SCRIPT,
    kept: Annotated[
        Path, typer.Option(metavar="DIR", help="Where what was heard is kept; an interrupted run goes on from it.")
    ] = Path("runs/heard"),
    clean_s: Annotated[
        float, typer.Option(min=0, max=36_000, help="Count false alarms in so many seconds of clean talk instead.")
    ] = 0,
    model: Annotated[str, typer.Option(help="Ask this model too, and show what it adds to the cues.")] = "",
    judge_every_s: Annotated[
        float, typer.Option(min=0, help="The judge's slow beat; 0: cues alone trigger it.")
    ] = 30.0,
    triggering: Annotated[
        bool, typer.Option("--triggering", help="Measure instead what asking the judge only at times loses.")
    ] = False,
    bag: Annotated[
        list[Path] | None, typer.Option(help="Watch this bag in place of the scripts; may be given several times.")
    ] = None,
    labels: Annotated[
        list[Path] | None, typer.Option(metavar="FILE.csv", help="A bag's labels: class, onset_s, offset_s a line.")
    ] = None,
    topic: Annotated[str, typer.Option(help="Audio topic of the bags; the only one where it is left out.")] = "",
    language: Annotated[str, typer.Option(help="Language code of the bags' speech, as en or zh.")] = "en",
    as_json: AsJson = False,
) -> None:
    """Watch scripted encounters with the norm monitor and measure its flags, beside baselines that watch less."""
    if bag or labels:
        labelled_bags.evaluate(bag or [], labels or [], topic, language, as_json)
    elif triggering:
        monitor_bench.show_triggering(split, limit, seed, as_json)
    elif clean_s:
        monitor_bench.count_false_alarms(clean_s, seed, as_json)
    else:
        monitor_bench.evaluate(split, limit, seed, source, kept, model, judge_every_s, as_json)


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
    """The name where it is one; else a folder was meant."""
    return precedents if precedents in get_args(Precedents) else ""
