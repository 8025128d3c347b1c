"""`tactful items`: make items from one's own recordings, and check sets of items."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from norm_core.engines.sentences.sentence_encoder import MODEL as ENCODER_MODEL
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.runtime.config import check_config
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import WallClock
from sim_replays.own_items.annotation import AnnotationDesk, serve_desk
from sim_replays.own_items.assembly import assemble as assemble_items
from sim_replays.own_items.candidates import Asker, filter_scenes
from sim_replays.own_items.candidates import propose as propose_candidates
from sim_replays.own_items.check import ItemCheck, check_items, read_items, suite_name_of
from sim_replays.own_items.hsri_tasks import draw_tasks, questions_by_task
from sim_replays.own_items.item_run import BATCH, ITEMS, PHASES, ItemError, ItemRun, PhaseCount, RunFile
from sim_replays.own_items.sampling import find_sources
from sim_replays.own_items.sampling import sample as sample_moments
from sim_replays.runs.asked_model import ModelOptions, open_asked_models
from sim_replays.runs.execute import ENCODER
from sim_replays.suites.dataset_files import entries
from sim_replays.suites.suite import suite_called, suites
from study_desk.privacy.blur import TiledFaceDetector
from study_desk.report.page_server import new_token
from study_desk.study.study_folder import Study
from tactful_cli.console import complain, err, print_json, print_table, titled_table
from tactful_cli.later_judge import PicturesMayLeave, finish_batch
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


SuiteToMake = Annotated[str, typer.Argument(metavar="SUITE", help="egonormia, egogapbench or hsri.")]
From = Annotated[
    list[Path],
    typer.Argument(metavar="FROM...", help="Bags, videos, pictures or folders of them, or a study (for hsri: coded)."),
]
Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Folder of the run; the same command resumes it.")]
Licence = Annotated[str, typer.Option(help="Licence under which the recordings are used.")]
ConsentOf = Annotated[str, typer.Option("--consent", help="By whose consent; of a study, its participants'.")]
Seed = Annotated[int, typer.Option(help="Random seed of option order and splits.")]
KeepFaces = Annotated[bool, typer.Option("--keep-faces", help="Do not blur faces; they go to models and annotators.")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]


@app.command()
def make(  # noqa: PLR0917
    suite: SuiteToMake,
    sources: From,
    out: Out,
    licence: Licence = "",
    consent: ConsentOf = "",
    seed: Seed = 0,
    keep_faces: KeepFaces = False,
    pictures_may_leave: PicturesMayLeave = False,
) -> None:
    """Make items: go through the phases as far as answers allow, and say what is to do next.

    The phases are verbs of their own: sample, propose, filter, annotate, assemble. run.json in the folder tells how
    many each kept and dropped, and PHASE_dropped.jsonl which and why.
    """
    run = _begin(suite, sources, out, licence, consent, seed, keep_faces)
    if run.file.suite == "hsri":
        _tell("assemble", draw_tasks(run, Study(sources[0])), run.folder)
        for task, number in questions_by_task(run).items():
            print(f"  {task}: {number} questions over three seeds")
        return
    for phase in PHASES:
        count = run.file.phases.get(phase)
        if phase == "annotate" and (count is None or count.open):
            people = "--annotator A --annotator B --reconciler C"
            err.print(f"next: {PROGRAM} items annotate {out} {people}, then the same command")
            return
        if count is None or count.open:
            count = _go_through(phase, run, pictures_may_leave)
        if count.open:
            return


@app.command()
def sample(  # noqa: PLR0917
    suite: SuiteToMake,
    sources: From,
    out: Out,
    licence: Licence = "",
    consent: ConsentOf = "",
    seed: Seed = 0,
    keep_faces: KeepFaces = False,
) -> None:
    """Sample moments before somebody acts where two or more people are seen, and draw a contact sheet of them."""
    _go_through("sample", _begin(suite, sources, out, licence, consent, seed, keep_faces))


@app.command()
def propose(run: RunPath, pictures_may_leave: PicturesMayLeave = False) -> None:
    """Let a model describe each moment and propose its options, by a batch in the run's folder, in rounds."""
    _go_through("propose", ItemRun(run), pictures_may_leave)


@app.command("filter")
def filter_(run: RunPath, pictures_may_leave: PicturesMayLeave = False) -> None:
    """Drop markup, near twins, what is infeasible, harmful or no singleton action, and what is answered blind."""
    _go_through("filter", ItemRun(run), pictures_may_leave)


@app.command()
def assemble(run: RunPath) -> None:
    """Write what the annotators kept as a folder for `bench run`, with splits and a datasheet."""
    _go_through("assemble", ItemRun(run))


@app.command()
def annotate(
    run: RunPath,
    annotator: Annotated[list[str], typer.Option(help="Pseudonym of an annotator; give two.")],
    reconciler: Annotated[str, typer.Option(help="Pseudonym of a third, who decides where the two differ.")] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP port; 0: a free one.")] = 0,
    host: Annotated[str, typer.Option(help="Address to listen on; any but loopback shows the pictures.")] = "127.0.0.1",
) -> None:
    """Serve the annotation desk until interrupted: a link a person, who sees no other's answers."""
    desk = AnnotationDesk(ItemRun(run), annotator, reconciler)
    people = {new_token(): name for name in (*annotator, *filter(None, [reconciler]))}
    server = serve_desk(desk, people, host=host, port=port)
    for token, name in people.items():
        print(f"{name}  {server.url(token)}", flush=True)
    err.print("Ctrl-C ends it.")
    try:
        server.serve()
    except KeyboardInterrupt:
        err.print("ended; the same command goes on")
    finally:
        server.close()
        _tell("annotate", desk.finish(), run)
        for row in desk.agreement():
            print(
                f"  {row['question']}: {row['equal']} of {row['n']} alike, kappa {row['kappa']}, alpha {row['alpha']}"
            )


def _begin(  # noqa: PLR0917
    suite: str, paths: list[Path], out: Path, licence: str, consent: str, seed: int, keep_faces: bool
) -> ItemRun:
    sources = find_sources(paths, licence, consent, is_hsri=suite == "hsri")
    plain = {"suite": suite, "seed": seed, "faces": "kept" if keep_faces else "blurred", "sources": sources}
    return ItemRun(out, check_config(RunFile, plain, "options"))


def _go_through(phase: str, run: ItemRun, pictures_may_leave: bool = False) -> PhaseCount:
    with err.status(phase) as status:
        count = _phase(phase, run, pictures_may_leave, lambda name: status.update(f"{phase}: {name}"))
    _tell(phase, count, run.folder)
    if not (count.kept or count.open):
        raise typer.Exit(1)
    return count


def _phase(phase: str, run: ItemRun, pictures_may_leave: bool, progress: Callable[[str], None]) -> PhaseCount:
    if phase == "sample":
        return sample_moments(run, TiledFaceDetector().find, progress)
    if phase == "assemble":
        return assemble_items(run)
    if not pictures_may_leave:
        raise ItemError("--pictures-may-leave: is missing; a service is asked about the pictures of the sample")
    asker = Asker(run)
    if phase == "propose":
        count = propose_candidates(run, asker, progress)
    else:
        [blind] = open_asked_models(ENCODER_MODEL, WallClock(), ModelOptions())
        count = filter_scenes(run, asker, SentenceEncoder(), blind, progress)
    if count.open:
        finish_batch(asker.writer, None)
        folder = run.folder / BATCH
        err.print(f"next: {PROGRAM} models send {folder} NAME, or any service's answers there, then the same command")
    return count


def _tell(phase: str, count: PhaseCount, folder: Path) -> None:
    reasons = ", ".join(f"{number} {why}" for why, number in count.dropped.items())
    print(f"{phase}: {count.kept} kept, {count.open} open, {sum(count.dropped.values())} dropped ({reasons or 'none'})")
    dropped = folder / f"{phase}_dropped.jsonl"
    for _, drop in entries(dropped) if phase == "sample" and count.dropped else ():
        complain(f"{drop['id']}: {drop['why']}{': ' if drop['detail'] else ''}{drop['detail']}")
    if phase == "assemble":
        print(f"{folder / ITEMS}: read it with {PROGRAM} items check and {PROGRAM} bench run --data")
