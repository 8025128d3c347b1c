"""`tactful study export, agreement`."""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from norm_core.records.json_codec import to_plain
from study_desk.coding.agreement import measure_agreement
from study_desk.coding.confusion_plot import confusion_svg
from study_desk.coding.forms import boris, eaf, foxglove, tables, textgrid, webvtt
from study_desk.coding.forms.sheet import FormError, Sheet, remarks, sheet_of
from study_desk.coding.labels import by_coder, reviewed_labels, sessions_of
from study_desk.coding.methods_text import methods_text
from study_desk.coding.reliability import TOLERANCES_S
from study_desk.log.recording import Recording, check_distinct, open_recording
from study_desk.log.schema import MONITOR, Label
from study_desk.study.outputs import default_output, note_output
from study_desk.study.study_folder import Study, is_study
from tactful_cli.bag.arguments import progress
from tactful_cli.console import err, print_json, print_table
from tactful_cli.study.agreement_table import LEGEND, SUMMARY_LEGEND, every_table, summary
from tactful_cli.study.arguments import Media, SourcePath
from tactful_cli.verb import AsJson

app = typer.Typer()


class Form(StrEnum):
    """The file formats of labels."""

    CSV = "csv"
    JSONL = "jsonl"
    EAF = "eaf"
    BORIS = "boris"
    TEXTGRID = "textgrid"
    WEBVTT = "webvtt"
    PARQUET = "parquet"
    MCAP = "mcap"


WRITERS: dict[Form, tuple[str, Callable[[Path, Sheet], None]]] = {
    Form.CSV: (".csv", tables.write_csv),
    Form.JSONL: (".jsonl", tables.write_jsonl),
    Form.EAF: (".eaf", eaf.write_eaf),
    Form.BORIS: (".xlsx", boris.write_boris),
    Form.TEXTGRID: (".TextGrid", textgrid.write_textgrid),
    Form.WEBVTT: (".vtt", webvtt.write_webvtt),
    Form.PARQUET: (".parquet", tables.write_parquet),
    Form.MCAP: (".mcap", foxglove.write_events),
}
TABLES = {Form.CSV, Form.JSONL, Form.PARQUET}


@app.command()
def export(  # noqa: PLR0917
    source: SourcePath,
    form: Annotated[Form, typer.Option("--form", help="Output format.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; default: in the study's exports, or beside the source."),
    ] = None,
    coder: Annotated[str, typer.Option(help="Coder whose labels to write; all: every coder.")] = MONITOR,
    media: Media = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a session's labels and speech for an annotation tool or for statistics."""
    recording = open_recording(source)
    sheet = sheet_of(recording, _labels_of(recording, coder, with_rejected=form in TABLES))
    if media:
        sheet = replace(sheet, media=tuple(media))
    ending, write = WRITERS[form]
    path = output or default_output(source, recording, ending)
    for written in (path, boris.behaviours_path(path)) if form is Form.BORIS else (path,):
        _spare(written, force=force)
    write(path, sheet)
    for written in (path, boris.behaviours_path(path)) if form is Form.BORIS else (path,):
        note_output(source, written, form.value)
    notes = [*recording.notes, *remarks(sheet, whole_ms=form not in TABLES)]
    if form is Form.BORIS:
        notes.append(f"{boris.behaviours_path(path)}: the codes; import them as behaviors before the events")
    if as_json:
        print_json(
            {"file": str(path), "labels": len(sheet.labels), "utterances": len(sheet.utterances), "notes": notes}
        )
    else:
        print(path)
        for note in notes:
            err.print(note, markup=False)


@app.command()
def agreement(  # noqa: PLR0917
    sources: Annotated[
        list[Path], typer.Argument(metavar="LOG|STUDY...", help="Logs of different sessions, or folder of a study.")
    ],
    tolerance: Annotated[
        list[float] | None, typer.Option(help="Tolerance of matching onsets in seconds. Repeatable.")
    ] = None,
    frame_s: Annotated[float, typer.Option(min=0.05, max=60, help="Frame length in seconds.")] = 1.0,
    resamples: Annotated[
        int, typer.Option(min=1, max=100_000, help="Number of bootstrap samples of whole sessions.")
    ] = 1000,
    seed: Annotated[int, typer.Option(help="Random seed of the bootstrap.")] = 0,
    picture: Annotated[Path | None, typer.Option(help="Folder to write confusion matrices (SVG) into.")] = None,
    methods: Annotated[
        bool, typer.Option("--methods", help="Print a methods paragraph for a paper instead of the figures.")
    ] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="Print every measure, with intervals and by condition; default: a summary.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compute agreement between human coders, and between the monitor and each of them; also by condition."""
    recordings = [
        recording
        for source in sources
        for recording in (Study(source).recordings() if is_study(source) else [open_recording(source)])
    ]
    check_distinct(recordings)
    sessions = sessions_of(recordings)
    with progress("computing agreement") as tell:
        found = measure_agreement(
            sessions,
            tolerances_s=tuple(tolerance or TOLERANCES_S),
            frame_s=frame_s,
            resamples=resamples,
            seed=seed,
            progress=tell,
        )
    if picture:
        picture.mkdir(parents=True, exist_ok=True)
        for confusion in found.confusions:
            name = "-".join("".join(c if c.isalnum() else "_" for c in coder) for coder in confusion.coders)
            (picture / f"confusion-{name}.svg").write_text(confusion_svg(confusion), encoding="utf-8")
    if as_json:
        print_json(to_plain(found) | ({"methods": methods_text(found)} if methods else {}))
        return
    if methods:
        print(methods_text(found))
        return
    for shown in every_table(found) if show_all else summary(found):
        print_table(shown)
    err.print(LEGEND if show_all else SUMMARY_LEGEND, markup=False)
    for remark in found.remarks:
        err.print(remark, markup=False)


def _spare(path: Path, *, force: bool) -> None:
    """Refuse to overwrite a file that may hold a coder's work. An empty file may be overwritten."""
    if path.is_file() and path.stat().st_size and not force:
        raise FormError(f"{path}: is there already, and may hold a coder's work: name another with -o, or add --force")


def _labels_of(recording: Recording, coder: str, *, with_rejected: bool) -> tuple[Label, ...]:
    coders = by_coder(recording)
    if with_rejected:
        coders = {name: (*labels, *reviewed_labels(recording, name, rejected=True)) for name, labels in coders.items()}
    if coder == "all":
        return tuple(label for labels in coders.values() for label in labels)
    if coder not in coders:
        raise FormError(f"{recording.source}: has no coder {coder}; name one of {', '.join(coders)}")
    return coders[coder]
