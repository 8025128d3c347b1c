"""`tactful bench`: run the published benchmarks through the robot's own nodes, and score them."""

from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from norm_core.bags.topic import TopicNames
from norm_core.models.manifest import Prices
from norm_core.records.outcome import Outcome
from norm_core.runtime.config import check_config
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.wording import count_of
from norm_monitor.judge.coding import Form
from norm_monitor.judge.deployment_context import DeploymentContext, PictureRules
from norm_monitor.senses.speech.whisper import WhisperConfig
from sim_replays.drivers.script_driver import BenchSource
from sim_replays.runs import execute
from sim_replays.runs.asked_model import TIMEOUT_S, ModelOptions
from sim_replays.runs.execute import ENCODER, files_for
from sim_replays.runs.results.run_folder import open_run
from sim_replays.runs.results.run_page import write_page
from sim_replays.runs.run_config import Frames, Precedents, RunConfig, ids_in, is_named
from sim_replays.scenarios.library import SPLITS
from sim_replays.suites.own import check_known_answer
from sim_replays.suites.report import report
from sim_replays.suites.suite import suite_called, suites
from sim_replays.suites.target import SuiteError, read_predictions
from tactful_cli.bench import comparison, monitor_bench
from tactful_cli.bench import runs as suite_runs
from tactful_cli.bench.runs import How
from tactful_cli.console import err
from tactful_cli.flag_watch import FlagOptions
from tactful_cli.flags import JUDGE, AskLater, JudgeAnswers, LaterJudge, PicturesMayLeave, Price, QuestionForm
from tactful_cli.verb import (
    WHISPER_HELP,
    AsJson,
    Language,
    RobotTopics,
    TopicRules,
    WhisperModel,
    WordsTopics,
    group,
)

app = group("Run the papers' benchmarks through the robot's nodes, score answers, and compare runs.")


@app.callback()
def bench() -> None:
    """Run and score the published benchmarks."""


SuiteName = Annotated[
    str, typer.Argument(metavar="SUITE", help=f"One of {', '.join(suites())}, or a folder with suite.py.")
]
Data = Annotated[Path, typer.Option("--data", help="File of the dataset, or its folder.")]
Style = Annotated[str, typer.Option(help="Prompt style of EgoGapBench: default, egoplan or exclusion.")]
Limit = Annotated[int, typer.Option(min=0, help="Number of items to ask, from the first; 0: all.")]
Only = Annotated[Path | None, typer.Option(help="File with the ids to ask, as a JSON list or lines; default: all.")]
Timeout = Annotated[float, typer.Option("--timeout-s", min=0.001, help="Time for one question with all its requests.")]
UseCache = Annotated[bool, typer.Option("--cache/--no-cache", help="Use and keep the model's answers across runs.")]
MaxFailures = Annotated[
    int, typer.Option(min=0, help="Number of failures in a row that stop the run, with exit code 1; 0: none.")
]
AnswerForm = Annotated[
    str,
    typer.Option(
        "--answer-form",
        metavar="FORM",
        help="What options are scored from, on a server: logprobs, text, or auto: logprobs where it has them. "
        "Default: the manifest's setting, else auto.",
    ),
]
ReasonsFirst = Annotated[
    bool, typer.Option("--reasons-first", help="Let the model reason in text before its answer; implies text.")
]


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
    comparison.show_report(chosen, report(chosen, targets, read), as_json)


@app.command()
def run(  # noqa: PLR0917
    suite: SuiteName,
    data: Data,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the run; an unfinished run resumes.")],
    setting: Annotated[
        str,
        typer.Option(
            help="; ".join(
                f"{name}: {', '.join(names)}"
                for name, names in ((name, suite.settings) for name, suite in suites().items())
            )
        ),
    ] = "",
    bare: Annotated[
        bool,
        typer.Option("--bare", help="Ask the model alone, as the paper does, and not in the robot's steps."),
    ] = False,
    model: Annotated[
        str, typer.Option(help=f"{ENCODER}: the packaged sentence encoder; otherwise the name of a model.")
    ] = ENCODER,
    limit: Limit = 0,
    style: Style = "default",
    pictures: Annotated[
        Path | None, typer.Option(help="Folder of images, videos and sound, if apart from the data.")
    ] = None,
    sampling: Annotated[
        str, typer.Option(help="robot: tiles of at most 448 px; paper: original size (default with --bare).")
    ] = "",
    frames: Annotated[str, typer.Option("--frames", help=f"How a video is shown: {', '.join(get_args(Frames))}.")] = "",
    whisper: Annotated[str, typer.Option(help="For the setting whisper: " + WHISPER_HELP)] = "",
    only: Only = None,
    seed: Annotated[int, typer.Option(help="Random seed of option and frame order, swapped others and halves.")] = 0,
    transport: Annotated[
        How | None,
        typer.Option(help="dds: the robot's node in its own process (default); direct: in this process (with --bare)."),
    ] = None,
    shards: Annotated[int, typer.Option(min=1, max=256, help="Number of processes that share the episodes.")] = 1,
    ray: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Ray cluster for the processes; local: start one here.")
    ] = "",
    precedents: Annotated[
        str,
        typer.Option(
            "--precedents",
            metavar="NAME|FILE",
            help="EgoNormia: best-5, random-5 or none, from the half not asked; or JSONL of precedents.",
        ),
    ] = "",
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again what failed or timed out.")] = False,
    retry_refused: Annotated[bool, typer.Option("--retry-refused", help="Ask again what was refused.")] = False,
    max_failures: MaxFailures = 20,
    timeout_s: Timeout = TIMEOUT_S,
    concurrency: Annotated[
        int, typer.Option(min=1, max=256, help="Number of episodes side by side, for a model behind a server.")
    ] = 1,
    cache: UseCache = True,
    answer_form: AnswerForm = "",
    reasons_first: ReasonsFirst = False,
    ask_later: AskLater = None,
    answers: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Score the service's answers to such a batch.")
    ] = None,
    extract_with: Annotated[
        str, typer.Option(metavar="MODEL", help="Model that reads which option a reply chooses, where no parser can.")
    ] = "",
    max_tokens: Annotated[int, typer.Option(min=0, help="Tokens after which the run stops; 0: no limit.")] = 0,
    max_cost: Annotated[float, typer.Option(min=0, help="Cost after which the run stops; 0: no limit.")] = 0.0,
    price: Annotated[
        str, typer.Option(metavar="IN,OUT", help="Prices of a million tokens read and written, not the manifest's.")
    ] = "",
    without: Annotated[
        list[str] | None,
        typer.Option(help=f"Step to leave out (ablation): {', '.join(execute.STEPS_LESS)}."),
    ] = None,
    pictures_may_leave: PicturesMayLeave = False,
    context: Annotated[
        DeploymentContext,
        typer.Option(
            "--deployment-context",
            help="Where the clips were taken; only home, public and health allow inferring emotions from images.",
        ),
    ] = DeploymentContext.UNSPECIFIED,
    as_json: AsJson = False,
) -> None:
    """Build a suite's bag, play it to the selector and score the answers. Resumes an interrupted run."""
    asking = _asking(
        suite, data, setting, bare=bare, limit=limit, style=style, pictures=pictures, sampling=sampling, frames=frames,
        precedents=_drawn(precedents), whisper=whisper, only=only, seed=seed,
    )  # fmt: skip
    index = "" if _drawn(precedents) or not precedents else str(Path(precedents).resolve())
    files = files_for(
        model,
        asking,
        precedents_index=index,
        without=without or (),
        rules=PictureRules(pictures_may_leave=pictures_may_leave, deployment_context=context),
    )
    options = _options(
        seed=seed, timeout_s=timeout_s, cache=cache, concurrency=concurrency, answers=answer_form,
        reasons_first=reasons_first, extract_with=extract_with,
    )  # fmt: skip
    retry = (execute.FAILURES if retry_failed else frozenset()) | ({Outcome.REFUSED} if retry_refused else set())
    limits = execute.RunLimits(
        retry=retry,
        max_failures=max_failures,
        max_tokens=max_tokens,
        max_cost=max_cost,
        prices=suite_runs.prices_of(model, price),
    )
    suite_runs.run(
        out,
        asking,
        files,
        ask_later=ask_later,
        answers=answers,
        shards=shards,
        ray=ray,
        how=transport or (How.DIRECT if bare or ask_later or answers else How.DDS),
        as_json=as_json,
        options=options,
        limits=limits,
    )


@app.command()
def grade(  # noqa: PLR0917
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run of videonorms.")],
    judge: Annotated[str, typer.Option(help="Name of the model that grades.")],
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again for the grades that were not given.")
    ] = False,
    max_failures: MaxFailures = 20,
    timeout_s: Timeout = TIMEOUT_S,
    cache: UseCache = True,
    answer_form: AnswerForm = "",
    reasons_first: ReasonsFirst = False,
    as_json: AsJson = False,
) -> None:
    """Let a model grade written answers from 1 to 5 against every reference. Resumes an interrupted run."""
    options = _options(timeout_s=timeout_s, cache=cache, answers=answer_form, reasons_first=reasons_first)
    limits = execute.RunLimits(
        retry=execute.FAILURES if retry_failed else frozenset(),
        max_failures=max_failures,
        prices=suite_runs.prices_of(judge, ""),
    )
    suite_runs.grade(run, judge, options, limits, as_json)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs of one suite.")],
    by: Annotated[
        str, typer.Option(help="Also show one row per group: norm, activity, culture, show or category.")
    ] = "",
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write each question of one or two runs, with prompts and pictures."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score runs again beside the paper's rows, and compare two of one kind item by item."""
    if page:
        count = write_page(page, [open_run(folder, with_decisions=True) for folder in runs])
        err.print(f"{page}: {count_of(count, 'question')}", soft_wrap=True)
    comparison.show_runs(runs, as_json, by=by)


@app.command()
def monitor(  # noqa: PLR0917
    split: Annotated[str, typer.Option(help=f"Shipped encounters: {' or '.join(SPLITS)} (default: development).")] = "",
    folder: Annotated[
        Path | None, typer.Option("--encounters", metavar="FOLDER", help="Folder of encounters instead of a split.")
    ] = None,
    limit: Limit = 0,
    seed: Annotated[int, typer.Option(help="Random seed of the gaps between turns.")] = 0,
    source: Annotated[
        BenchSource,
        typer.Option(
            "--from", help="script: use the script's words and times; audio: use the output of ears and camera."
        ),
    ] = BenchSource.SCRIPT,
    cache_folder: Annotated[
        Path, typer.Option(metavar="DIR", help="Cache of the senses' output; an interrupted run resumes from it.")
    ] = Path("scratch/sensed"),
    model: Annotated[str, typer.Option(help="Judge model to add; shows what it adds to the cues.")] = "",
    ask_later: AskLater = None,
    answers: JudgeAnswers = None,
    form: QuestionForm = Form.TALK,
    price: Price = "",
    reference_judge: Annotated[
        bool,
        typer.Option(
            "--reference-judge",
            help="Show what the recorded answers of a large language model add, on the encounters that it read.",
        ),
    ] = False,
    bag: Annotated[list[Path] | None, typer.Option(help="Bag to use instead of the scripts. Repeatable.")] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.csv", help="Labels of a bag, one per line: class, onset_s, offset_s. Repeatable."),
    ] = None,
    topic: Annotated[str, typer.Option(help="Audio topic of the bags; default: the only one.")] = "",
    robot_topic: RobotTopics = None,
    words_topic: WordsTopics = None,
    renamed: TopicRules = None,
    language: Language = "en",
    whisper: WhisperModel = "",
    as_json: AsJson = False,
) -> None:
    """Measure the monitor's flags on scripted encounters, beside baselines that use less input."""
    source_of_talk = {
        "--split": split, "--encounters": folder, "--bag": bag or labels, "--reference-judge": reference_judge,
    }  # fmt: skip
    sources_in_use = [name for name, value in source_of_talk.items() if value]
    if len(sources_in_use) > 1:
        raise TactfulError(f"{' and '.join(sources_in_use)}: exclude each other; give one")
    if reference_judge:
        if "many_hands" not in SPLITS:
            raise TactfulError("--reference-judge: its encounters are not installed; run it in a checkout")
        from tactful_cli.bench.reference_judge import show_reference_judge  # noqa: PLC0415  wheels lack calibration

        show_reference_judge(as_json=as_json)
        return
    talks = monitor_bench.BenchInput(
        split=split, folder=folder, limit=limit, seed=seed, source=source, cache_folder=cache_folder
    )
    if bag or labels:
        options = FlagOptions(
            topic=topic,
            robot_topics=tuple(robot_topic or ()),
            words_topics=tuple(words_topic or ()),
            names=TopicNames.parse(renamed or ()),
            whisper=WhisperConfig(model=whisper, language=language),
        )
        monitor_bench.evaluate_bags(bag or [], labels or [], options, as_json)
    else:
        prices = Prices.of_option(price)
        if ask_later:
            later = LaterJudge(ask_later, answers, model or JUDGE, form=form)
            monitor_bench.write_questions(talks, later, prices)
            return
        answered = LaterJudge(None, answers) if answers else None
        monitor_bench.evaluate(talks, as_json, model=model, later=answered)
        if answered and answered.fits_nothing:
            raise typer.Exit(1)


def _asking(suite: str, data: Path, setting: str, *, bare: bool, **settings: Any) -> RunConfig:
    """Make the config of a run. A bare run has the paper's setting, sampling and form of frames by default."""
    named = suite_called(suite)
    check_known_answer(named)
    suite = suite if suite == named.name else str(Path(suite).resolve())
    if not setting and not (bare and named.bare_settings):
        raise SuiteError(f"--setting: is missing; name one of {', '.join(named.settings)}")
    settings["sampling"] = settings["sampling"] or ("paper" if bare else "robot")
    settings["frames"] = settings["frames"] or (named.paper_form if bare else "discrete")
    setting = setting or named.bare_settings[0]
    plain = {name: str(value.resolve()) if isinstance(value, Path) else value for name, value in settings.items()}
    plain = {name: value for name, value in plain.items() if value is not None}
    return check_config(
        RunConfig, {"bare": bare, "suite": suite, "data": str(data.resolve()), "setting": setting, **plain}, "options"
    )


def _options(**options: Any) -> ModelOptions:
    return check_config(ModelOptions, options, "options")


def _drawn(precedents: str) -> str:
    """Accept a method name as it is, and check anything else as a folder."""
    return precedents if precedents in get_args(Precedents) else ""
