"""`tactful bench`: run the published benchmarks through the robot's own nodes, and score them."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, get_args

import typer

from norm_core.models.manifest import Prices
from norm_core.runtime.config import check_config
from norm_core.runtime.errors import TactfulError
from norm_monitor.encounters.library import SPLITS
from norm_monitor.judge.coding import Form
from norm_monitor.judge.deployment_context import DeploymentContext, PictureRules
from sim_replays.items.run_config import Frames, Precedents, RunConfig, ids_in, is_named
from sim_replays.items.target import SuiteError, read_predictions
from sim_replays.monitor_bench.script_driver import BenchSource
from sim_replays.runs import execute
from sim_replays.runs.asked_model import TIMEOUT_S, ModelOptions
from sim_replays.runs.execute import ENCODER, files_for
from sim_replays.suites.own import check_known_answer
from sim_replays.suites.report import report
from sim_replays.suites.suite import suite_called, suites
from sim_replays.verbs import comparison, monitor_bench
from sim_replays.verbs import runs as suite_runs
from tactful_cli.flags import JUDGE, AskLater, JudgeAnswers, LaterJudge, PicturesMayLeave, Price, QuestionForm
from tactful_cli.verb import (
    WHISPER_HELP,
    AsJson,
    group,
    with_options,
)

app = group("Run the papers' benchmarks through the robot's nodes, score answers, and compare runs.")


@app.callback()
def bench() -> None:
    """Run and score the published benchmarks."""


SuiteName = Annotated[
    str, typer.Argument(metavar="SUITE", help=f"One of {', '.join(suites())}, or a folder with suite.py.")
]
Data = Annotated[Path, typer.Option("--data", help="File of the dataset, or its folder.")]
Limit = Annotated[int, typer.Option(min=0, help="Number of items to ask, from the first; 0: all.")]


@dataclass(frozen=True, kw_only=True)
class ItemOptions:
    """Which items of a suite are asked, and what of them is shown."""

    setting: Annotated[
        str,
        typer.Option(help="; ".join(f"{name}: {', '.join(suite.settings)}" for name, suite in suites().items())),
    ] = ""
    bare: Annotated[
        bool, typer.Option("--bare", help="Ask the model alone, as the paper does, and not in the robot's steps.")
    ] = False
    limit: Limit = 0
    only: Annotated[
        Path | None, typer.Option(help="File with the ids to ask, as a JSON list or lines; default: all.")
    ] = None
    style: Annotated[str, typer.Option(help="Prompt style of EgoGapBench: default, egoplan or exclusion.")] = "default"
    pictures: Annotated[
        Path | None, typer.Option(help="Folder of images, videos and sound, if apart from the data.")
    ] = None
    sampling: Annotated[
        str, typer.Option(help="robot: tiles of at most 448 px; paper: original size (default with --bare).")
    ] = ""
    frames: Annotated[str, typer.Option(help=f"How a video is shown: {', '.join(get_args(Frames))}.")] = ""
    precedents: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="EgoNormia: best-5, random-5 or none, from the half not asked; or JSONL of precedents.",
        ),
    ] = ""
    whisper: Annotated[str, typer.Option(help="For the setting whisper: " + WHISPER_HELP)] = ""
    seed: Annotated[int, typer.Option(help="Random seed of option and frame order, swapped others and halves.")] = 0

    @property
    def precedents_index(self) -> str:
        """The file of precedents, where no way to draw them is named."""
        return str(Path(self.precedents).resolve()) if self.precedents not in {"", *get_args(Precedents)} else ""

    def config(self, suite: str, data: Path) -> RunConfig:
        """Make the config of a run. A bare run has the paper's setting, sampling and form of frames by default."""
        named = suite_called(suite)
        check_known_answer(named)
        if not self.setting and not (self.bare and named.bare_settings):
            raise SuiteError(f"--setting: is missing; name one of {', '.join(named.settings)}")
        plain = {
            **asdict(self),
            "suite": suite if suite == named.name else str(Path(suite).resolve()),
            "data": str(data.resolve()),
            "setting": self.setting or named.bare_settings[0],
            "sampling": self.sampling or ("paper" if self.bare else "robot"),
            "frames": self.frames or (named.paper_form if self.bare else "discrete"),
            "precedents": "" if self.precedents_index else self.precedents,
            "pictures": str(self.pictures.resolve()) if self.pictures else "",
            "only": str(self.only.resolve()) if self.only else "",
        }
        return check_config(RunConfig, plain, "options")


@dataclass(frozen=True, kw_only=True)
class AnswererOptions:
    """Who answers, and how it is asked."""

    model: Annotated[
        str, typer.Option(help=f"{ENCODER}: the packaged sentence encoder; otherwise the name of a model.")
    ] = ENCODER
    without: Annotated[
        list[str] | None, typer.Option(help=f"Step to leave out (ablation): {', '.join(execute.STEPS_LESS)}.")
    ] = None
    pictures_may_leave: PicturesMayLeave = False
    deployment_context: Annotated[
        DeploymentContext,
        typer.Option(
            help="Where the clips were taken; only home, public and health allow inferring emotions from images."
        ),
    ] = DeploymentContext.UNSPECIFIED
    timeout_s: Annotated[float, typer.Option(min=0.001, help="Time for one question with all its requests.")] = (
        TIMEOUT_S
    )
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Use and keep the model's answers across runs.")] = (
        True
    )
    concurrency: Annotated[
        int, typer.Option(min=1, max=256, help="Number of episodes side by side, for a model behind a server.")
    ] = 1

    @property
    def rules(self) -> PictureRules:
        """What pictures may be used for."""
        return PictureRules(pictures_may_leave=self.pictures_may_leave, deployment_context=self.deployment_context)

    def asked(self, seed: int) -> ModelOptions:
        """How a run asks its model."""
        return ModelOptions(seed=seed, timeout_s=self.timeout_s, cache=self.cache, concurrency=self.concurrency)


@app.command()
@with_options
def run(
    suite: SuiteName,
    *,
    data: Data,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the run; an unfinished run resumes.")],
    items: ItemOptions,
    answerer: AnswererOptions,
    course: suite_runs.CourseOptions,
    as_json: AsJson = False,
) -> None:
    """Build a suite's bag, play it to the selector and score the answers. Resumes an interrupted run."""
    asking = items.config(suite, data)
    files = files_for(
        answerer.model,
        asking,
        precedents_index=items.precedents_index,
        without=answerer.without or (),
        rules=answerer.rules,
    )
    suite_runs.run(out, asking, files, course, answerer.asked(items.seed), as_json)


@app.command()
def score(  # noqa: PLR0917
    runs: Annotated[list[Path] | None, typer.Argument(metavar="RUN...", help="Folders of runs of one suite.")] = None,
    by: Annotated[
        str, typer.Option(help="Also show one row per group: norm, activity, culture, show or category.")
    ] = "",
    grade_with: Annotated[
        str,
        typer.Option(metavar="MODEL", help="Let a model grade the written answers of a run from 1 to 5 first."),
    ] = "",
    predictions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="In place of runs: predictions of --suite, one per line: {id, task, answer, outcome}.",
        ),
    ] = None,
    suite: Annotated[str, typer.Option(help="Suite of the predictions, or a folder with suite.py.")] = "",
    data: Annotated[Path | None, typer.Option(help="File or folder of their dataset.")] = None,
    only: Annotated[Path | None, typer.Option(help="File with the ids of --data to score; default: all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Score runs again beside the paper's rows, and compare two of one kind item by item.

    Predictions are scored without a model. An item without an answer counts as wrong, and its outcome is counted.
    """
    if bool(runs) == bool(predictions):
        raise TactfulError("score: name folders of runs, or --predictions with --suite and --data")
    if predictions:
        if not (suite and data):
            raise TactfulError("--predictions: needs --suite and --data; name the suite and its dataset")
        chosen = suite_called(suite)
        targets = chosen.read(data, "default")
        read = read_predictions(predictions, targets)
        if only:
            wanted = ids_in(only)
            targets = [target for target in targets if is_named(target.id, wanted)]
            if not targets:
                raise SuiteError(f"{only}: has no id of {data}; write one id a line")
        comparison.show_report(chosen, report(chosen, targets, read), as_json)
        return
    folders = runs or []
    if grade_with:
        for folder in folders:
            suite_runs.grade(folder, grade_with)
    comparison.show_runs(folders, as_json, by=by)


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
    as_json: AsJson = False,
) -> None:
    """Measure the monitor's flags on scripted encounters, beside baselines that use less input."""
    if split and folder:
        raise TactfulError("--split and --encounters: exclude each other; give one")
    talks = monitor_bench.BenchInput(
        split=split, folder=folder, limit=limit, seed=seed, source=source, cache_folder=cache_folder
    )
    if ask_later:
        later = LaterJudge(ask_later, answers, model or JUDGE, form=form)
        monitor_bench.write_questions(talks, later, Prices.of_option(price))
        return
    answered = LaterJudge(None, answers) if answers else None
    monitor_bench.evaluate(talks, as_json, model=model, later=answered)
    if answered and answered.fits_nothing:
        raise typer.Exit(1)
