"""`tactful flags`: the monitor's flags in bags, by cues, by a model, or by a judge that answers later."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Self

import typer
from rich.markup import escape
from rich.table import Table

from norm_core.engines.openai.batch import BatchAnswers, BatchWriter, read_answers
from norm_core.records.flag import Polarity, SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock, ns_to_s
from norm_core.runtime.wording import count_of, to_words
from norm_monitor.assessment.explanation import explain
from norm_monitor.judge.coding import MISSING, RecordedJudge, requests_about, talk_of
from norm_monitor.judge.deployment_context import DeploymentContext
from norm_monitor.judge.judge import JudgeConfig
from norm_monitor.replay.flag_runs import BagFlags, errors_per_hour, find_bags
from norm_monitor.replay.judge_stand_in import Attend, JudgeStandIn, UnitCollector
from tactful_cli.console import complain, err, out, print_json, print_table, show
from tactful_cli.flag_cluster import run_bags_on_ray
from tactful_cli.flag_watch import BagWatch, WatchOptions
from tactful_cli.talk_summary import TalkSummary
from tactful_cli.verb_options import RobotOffset, make_app, with_options

JUDGE = "judge"  # the model in a batch, where none is named

AskLater = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Write a judge's questions there, as a batch for an OpenAI-compatible service. Asks no model.",
    ),
]
JudgeAnswers = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Add a judge's answers to such a batch, as the service returned them."),
]
PicturesMayLeave = Annotated[
    bool, typer.Option("--pictures-may-leave", help="Allow sending images to a model on another machine.")
]


class LaterJudge:
    """What attends to the monitor in place of a model that runs now."""

    def __init__(
        self,
        questions: Path | None,
        answers: Path | None,
        model: str = JUDGE,
        config: JudgeConfig | None = None,
    ) -> None:
        """Create the folder of questions, or read the answers. Raises BatchError if either fails."""
        if questions and answers:
            raise TactfulError("--ask-later and --answers: exclude each other; give one")
        self._config, self._folder = config or JudgeConfig(), questions or answers
        self._talk, self._collector = "", UnitCollector(keeps_frames=self._config.pictures_may_leave)
        self._writer = BatchWriter(questions, model) if questions else None
        self.answers = read_answers(answers) if answers else BatchAnswers(by_id={})
        self.stand_in = JudgeStandIn(RecordedJudge("", self.answers), WallClock())

    @classmethod
    def of(cls, later: "LaterOptions", out: Path | None) -> Self | None:
        """Return the judge that options name, if any; questions need each talk to run, and a stored run skips some."""
        if later.ask_later and out:
            raise TactfulError("--ask-later and --out: exclude each other; give --out with --answers")
        config = JudgeConfig(deployment_context=later.context, pictures_may_leave=later.pictures_may_leave)
        is_named = later.ask_later or later.answers
        return cls(later.ask_later, later.answers, later.model, config) if is_named else None

    @property
    def model(self) -> str:
        """The models that answered, by their own names."""
        names = sorted({answer.model for answer in self.answers.by_id.values() if answer.model})
        return ", ".join(names) or JUDGE

    def attend(self, talk: str) -> Attend:
        """Return what attends to the monitor of a talk."""
        if self._writer:
            self._write(self._writer)
            self._talk = talk
            return self._collector
        self.stand_in.judge = RecordedJudge(talk, self.answers, self._config)
        return self.stand_in

    def _write(self, writer: BatchWriter) -> None:
        for request in requests_about(self._talk, self._collector.views, self._config):
            writer.add(request)
        self._collector.views.clear()

    def conclude(self) -> None:
        """Write what is left, and print the size of the questions, or what became of the answers."""
        if self._writer:
            self._write(self._writer)
            self._writer.flush()
            size = self._writer.size
            text = size if size.requests else "no request was written: there is nothing to ask"
            err.print(f"{self._writer.folder}: {text}", soft_wrap=True, markup=False)
            return
        for line in self.stand_in.summary():
            err.print(line, soft_wrap=True, markup=False)
        if self.answers.unreadable_count:
            complain(
                f"{self._folder}: {count_of(self.answers.unreadable_count, 'line')} cannot be read and count as missing"
            )

    @property
    def fits_nothing(self) -> bool:
        """Whether no moment has an answer of this folder; complains of it."""
        units = len(self.stand_in.spent_s)
        if not units or self.stand_in.reasons[MISSING] < units:
            return False
        talks = sorted({talk_of(key) for key in self.answers.by_id})
        complain(
            f"{self._folder}: no answer is about these talks, but about {', '.join(talks[:5])}; "
            "give the bags and options of --ask-later"
        )
        return True


def show_flag(flag: SocialFlag, start_ns: int, *, explained: bool) -> None:
    """Print one flag like a coder's note."""
    out.print(f"[bold]{_times(flag, start_ns)}[/]  {_judgement(flag)}")
    instead = [f"Instead: {flag.correction}"] if flag.correction else []
    for line in explain(flag).splitlines()[1:] if explained else [flag.rationale, *instead]:
        out.print(f"          {escape(line)}")


def show_summary(results: Sequence[BagFlags]) -> None:
    """Print one row a bag and one for all."""
    table = Table("bag", "minutes", "errors", "competences", "errors an hour", "remarks")
    for result in results:
        if result.problem:
            table.add_row(escape(result.bag), *[""] * (len(table.columns) - 2), f"[red]{escape(result.problem)}[/]")
        else:
            remarks = count_of(len(result.remarks), "remark") if result.remarks else ""
            table.add_row(escape(result.bag), *_figures([result]), remarks)
    failed = sum(bool(result.problem) for result in results)
    total = f"{count_of(failed, 'bag')} not run" if failed else ""
    table.add_section()
    table.add_row(f"all {len(results)}", *_figures(results), total)
    print_table(table)
    show(format_verdict(results))


def format_verdict(results: Sequence[BagFlags]) -> str:
    """Format the turns and flags of bags in one line."""
    talk = TalkSummary()
    for result in results:
        talk.turn_count += result.turn_count
        for flag in result.flags:
            talk.add_flag(flag)
    return talk.format()


def _figures(results: Sequence[BagFlags]) -> tuple[str, ...]:
    rate = errors_per_hour(results)
    errors, competences = sum(len(result.errors) for result in results), sum(result.competences for result in results)
    minutes = sum(result.length_s for result in results) / 60
    return f"{minutes:.1f}", str(errors), str(competences), "" if rate is None else f"{rate:.0f}"


def _times(flag: SocialFlag, start_ns: int) -> str:
    end = " on" if flag.offset_ns is None else f"-{ns_to_s(flag.offset_ns - start_ns):.1f}"
    return f"{ns_to_s(flag.onset_ns - start_ns):6.1f}{end} s"


def _judgement(flag: SocialFlag) -> str:
    colour = "red" if flag.polarity is Polarity.ERROR else "green"
    kind = f"{flag.severity} error" if flag.polarity is Polarity.ERROR else "competence"
    return f"[{colour}]{kind}[/]  {', '.join(to_words(attribute.value) for attribute in flag.attributes)}"


app = make_app()


@dataclass(frozen=True, kw_only=True)
class LaterOptions:
    """A judge that answers later: by what batch, about what, and what it is for."""

    ask_later: AskLater = None
    answers: JudgeAnswers = None
    model: Annotated[str, typer.Option(help="Name of the model at the service, for --ask-later.")] = JUDGE
    pictures_may_leave: PicturesMayLeave = False
    context: Annotated[
        DeploymentContext, typer.Option(help="Where the robot works; limits what --ask-later may ask about images.")
    ] = DeploymentContext.UNSPECIFIED


@app.command()
@with_options
def flags(
    bags: Annotated[
        list[Path], typer.Argument(metavar="BAG", help="Folders of rosbag2 bags, or folders with such folders.")
    ],
    *,
    watched: WatchOptions,
    robot_offset_ms: RobotOffset = 0,
    cues: Annotated[
        list[str] | None,
        typer.Option("--cue", metavar="NAME", help="A custom cue of an installed package. Repeatable."),
    ] = None,
    later: LaterOptions,
    ray_address: Annotated[
        str,
        typer.Option(
            "--ray", metavar="ADDRESS", help="Run the bags side by side on this Ray cluster; auto: this machine."
        ),
    ] = "",
    folder: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder of the run, with CSV tables; an unfinished run resumes."),
    ] = None,
    explained: Annotated[bool, typer.Option("--explain", help="Show how each flag was measured.")] = False,
    summary: Annotated[bool, typer.Option("--summary", help="Show only the table of bags.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """List the social errors and competences in bags, with a judge's answers if there are any.

    Several bags are summed up in a table. Exits with 1 if one of them could not be run, or no answer fits.
    """
    judge = LaterJudge.of(later, folder)
    if judge and ray_address:
        raise TactfulError("--ray: excludes --ask-later and --answers, which take little time; leave one out")
    options = watched.for_flags(
        cues=tuple(cues or ()),
        robot_offset_ms=robot_offset_ms,
        answers_sha256=judge.answers.sha256 if later.answers and judge else "",
    )
    bags_by_name = find_bags(bags)
    is_alone = len(bags) == 1 and list(bags_by_name.values()) == bags
    watch = BagWatch(options, bags_by_name, folder, is_alone=is_alone)
    watch.attend_of = judge.attend if judge else None
    if ray_address:
        watch.run_bags = partial(run_bags_on_ray, options=options, address=ray_address)
    for result in watch:
        if as_json or summary:
            if not is_alone:
                err.print(f"{len(watch.results)} of {count_of(len(bags_by_name), 'bag')}: {result.bag}", markup=False)
            continue
        if not is_alone:
            out.print(f"[bold]{escape(result.bag)}[/]")
        for flag in result.flags:
            show_flag(flag, result.start_ns, explained=explained)
    if judge:
        judge.conclude()
    _conclude(watch, bags, as_json=as_json)
    if any(result.problem for result in watch.results) or (judge and judge.fits_nothing):
        raise typer.Exit(1)


def _conclude(watch: BagWatch, bags: Sequence[Path], *, as_json: bool) -> None:
    """Print what stands after the flags: a line on one bag, a table of several, or all as JSON."""
    if as_json and watch.is_alone:
        print_json([to_plain(flag) for flag in watch.results[0].flags])
    elif as_json:
        print_json([to_plain(result) for result in watch.results])
    elif watch.is_alone:
        for line in watch.counts:
            err.print(line)
        show(f"{bags[0]}: {format_verdict(watch.results)}")
    else:
        show_summary(watch.results)
