"""`tactful items`: make items from one's own recordings, and check sets of items."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from norm_core.engines.sentences.sentence_encoder import MODEL as ENCODER_MODEL
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.json_codec import to_plain
from norm_core.runtime.config import check_config
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import WallClock
from norm_monitor.privacy.blur import TiledFaceDetector
from norm_monitor.session_log.study_folder import Study
from sim_replays.items.dataset_files import entries
from sim_replays.own_items.annotation import ItemAnnotation
from sim_replays.own_items.assembly import assemble
from sim_replays.own_items.candidates import Asker, filter_scenes, propose
from sim_replays.own_items.check import HUMAN, MODEL, check_items, read_items, suite_name_of
from sim_replays.own_items.hsri_tasks import draw_tasks
from sim_replays.own_items.item_run import BATCH, ITEMS, PHASES, ItemError, ItemRun, PhaseCount, RunFile
from sim_replays.own_items.sampling import find_sources, sample
from sim_replays.runs.asked_model import open_model
from sim_replays.suites.suite import suite_called, suites
from tactful_cli.console import complain, err, print_json, print_table, show, titled_table
from tactful_cli.flags import PicturesMayLeave, finish_batch
from tactful_cli.verb import AsJson, group, with_options

app = group("Make items for a suite from your own recordings, and check whether a set is a good benchmark.")


@app.command()
def check(
    data: Annotated[Path, typer.Argument(metavar="FILE", help="File or folder of items, yours or a published one.")],
    suite: Annotated[
        str, typer.Option(help=f"One of {', '.join(suites())}, or a folder with suite.py; default: by the file.")
    ] = "",
    human: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Answers of a person, as predictions: {id, task, answer}.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Answers of your model, as answers.jsonl of a run.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what scores on a set of items without seeing the scene, beside people, a model and the published rows.

    A warning tells where a control is above chance or comes near the model. Exits with 1 if there is one.
    """
    chosen = suite_called(suite or suite_name_of(data))
    with err.status("reading") as status:
        checked = check_items(
            chosen,
            read_items(chosen, data),
            SentenceEncoder(),
            open_model(ENCODER_MODEL, WallClock()),
            answers={HUMAN: human, MODEL: answers},
            progress=lambda name: status.update(f"asking: {name}"),
        )
    columns, table = chosen.columns, checked.published
    if as_json:
        print_json(to_plain(checked))
    else:
        shown = titled_table(f"{chosen.name}, {checked.items} items", "", numbers=columns)
        for name, figures in checked.rows.items():
            shown.add_row(name, *(str(figures[column]) for column in columns))
        for name in table.rows if table else ():
            shown.add_row(f"published: {name}", *(table.cells(name, columns) if table else ()))
        print_table(shown)
        show(f"published: {table.source}" if table else "no published rows")
        for warning in checked.warnings:
            complain(warning)
    if checked.warnings:
        raise typer.Exit(1)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The material and the settings of a run, which are the same each time."""

    licence: Annotated[str, typer.Option(help="Licence under which the recordings are used.")] = ""
    consent: Annotated[str, typer.Option(help="By whose consent; of a study, its participants'.")] = ""
    seed: Annotated[int, typer.Option(help="Random seed of option order and splits.")] = 0
    keep_faces: Annotated[bool, typer.Option("--keep-faces", help="Show faces to models and annotators.")] = False
    pictures_may_leave: PicturesMayLeave = False

    def file(self, suite: str, sources: list[Path]) -> RunFile:
        """Find the material, and describe the run."""
        plain = self.__dict__ | {"suite": suite, "faces": "kept" if self.keep_faces else "blurred"}
        settings = {name: plain[name] for name in ("suite", "seed", "faces")}
        material = find_sources(sources, self.licence, self.consent, suite)
        return check_config(RunFile, {**settings, "sources": material}, "options")


@dataclass(frozen=True, kw_only=True)
class AnnotationOptions:
    """Who annotates, and what they answered."""

    annotator: Annotated[list[str] | None, typer.Option(help="Pseudonym of an annotator; give two.")] = None
    reconciler: Annotated[str, typer.Option(help="Pseudonym of a third, who decides where the two differ.")] = ""
    expert: Annotated[
        str, typer.Option(help="Pseudonym of an expert, who then sees whether each item is difficult and varied.")
    ] = ""
    answers: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.json", exists=True, dir_okay=False, help="Export of Label Studio. Repeatable."),
    ] = None


@app.command()
@with_options
def make(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="egonormia, egogapbench or hsri.")],
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="FROM...", help="Bags, videos, pictures, folders of them; studies (hsri: coded)."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Folder of the run, which may be begun.")],
    settings: RunOptions,
    people: AnnotationOptions,
) -> None:
    """Make items: go through the phases as far as answers allow, and say what is to do next.

    With annotators, it reads what Label Studio exported and writes a project (tasks.json, config.xml, instructions.md)
    for each person who has something to answer. Exits with 1 if an answer does not count.
    """
    run = ItemRun(out, settings.file(suite, sources))
    if suite == "hsri":
        counts = draw_tasks(run, Study(sources[0]))
        _tell(run, "assemble")
        show(", ".join(f"{task}: {count}" for task, count in counts.items()) + " questions over three seeds")
        return
    for phase in PHASES:
        count = run.file.phases.get(phase)
        is_done = bool(count and count.kept and not count.open)
        if phase == "annotate" and people.annotator:
            if _annotate(run, people.annotator, people).open:
                return
        elif is_done:
            _tell(run, phase)
        elif phase == "annotate":
            err.print("next: the same command with --annotator A --annotator B --reconciler C")
            return
        elif _go_through(phase, run, settings.pictures_may_leave).open:
            return


def _annotate(run: ItemRun, annotators: list[str], people: AnnotationOptions) -> PhaseCount:
    """Read answers, and write the projects of the next ones; exit with 1 if an answer does not count."""
    annotation = ItemAnnotation(run, annotators, people.reconciler, people.expert)
    problems = [problem for path in people.answers or () for problem in annotation.read_answers(path)]
    for problem in problems:
        complain(problem)
    annotation.finish()
    _tell(run, "annotate")
    for row in annotation.agreement():
        show("  " + ", ".join(f"{key} {value}" for key, value in row.items()))
    for folder in annotation.write_projects():
        show(f"{folder}: make it a project of Label Studio, and give its export to --answers")
    if problems:
        raise typer.Exit(1)
    return run.file.phases["annotate"]


def _go_through(phase: str, run: ItemRun, pictures_may_leave: bool) -> PhaseCount:
    """Run a phase and print what it kept; exit with 1 where that is nothing."""
    if phase in {"propose", "filter"} and not pictures_may_leave:
        raise ItemError("--pictures-may-leave: is missing; a service is asked about the pictures of the sample")
    with err.status(phase) as status:

        def progress(name: str) -> None:
            status.update(f"{phase}: {name}")

        if phase == "sample":
            count = sample(run, TiledFaceDetector().find, progress)
        elif phase == "assemble":
            count = assemble(run)
        else:
            asker = Asker(run)
            blind = open_model(ENCODER_MODEL, WallClock())
            if phase == "propose":
                count = propose(run, asker, progress)
            else:
                count = filter_scenes(run, asker, SentenceEncoder(), blind, progress)
    if count.open:
        if asker.writer.size.requests:
            finish_batch(asker.writer)
        send = f"{PROGRAM} models send {run.folder / BATCH} NAME"
        err.print(f"next: {send}, or put any service's answers there, then the same command")
    _tell(run, phase)
    for _, drop in entries(run.folder / "sample_dropped.jsonl") if phase == "sample" and count.dropped else ():
        complain(": ".join(filter(None, (drop["id"], drop["why"], drop["detail"]))))
    if not (count.kept or count.open):
        raise typer.Exit(1)
    return count


def _tell(run: ItemRun, phase: str) -> None:
    count = run.file.phases[phase]
    reasons = ", ".join(f"{number} {why}" for why, number in count.dropped.items()) or "none"
    show(f"{phase}: {count.kept} kept, {count.open} open, {sum(count.dropped.values())} dropped ({reasons})")
    if phase == "assemble":
        show(f"{run.folder / ITEMS}: read it with {PROGRAM} items check and {PROGRAM} bench run --data")
