"""`tactful study report`: write reports for researchers."""

from pathlib import Path
from typing import Annotated

import typer

from norm_core.files.atomic_file import private_path
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.recording import open_recording
from norm_monitor.session_log.study_folder import Study, StudyError, is_study
from study_desk.analysis.event_rates import warn_of_few_units
from study_desk.analysis.session_page import render_session
from study_desk.analysis.study_tables import tabulate_study
from study_desk.analysis.write_analysis import write_analysis
from study_desk.study.outputs import REPORT, choose_report_path, note_output
from tactful_cli.console import print_result
from tactful_cli.verb_options import AsJson

app = typer.Typer()


@app.command()
def report(
    source: Annotated[
        Path, typer.Argument(metavar="BAG|LOG|STUDY", help="Study log, rosbag2 bag, or folder of a study.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File, or folder of a study's report; default: in the study's exports, or beside the source.",
        ),
    ] = None,
    coder: Annotated[
        str,
        typer.Option(
            help="Coder whose labels count in a study, or monitor; default: the consensus, otherwise the first."
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Write a session as one HTML file that opens offline, without pictures.

    For a study, write a report by condition, tables, a data dictionary and an R script into a folder.
    """
    if is_study(source):
        _report_study(Study(source), output or source / "exports" / "analysis", coder, as_json=as_json)
        return
    if coder:
        raise TactfulError(f"{source}: --coder is for the report of a study; name its folder")
    recording = open_recording(source)
    path = output or choose_report_path(source, recording)
    page = render_session(recording)
    with private_path(path) as part:
        part.write_text(page, encoding="utf-8", errors="replace")
    note_output(source, path, REPORT)
    result = {"file": str(path), "bytes": path.stat().st_size, "flags": len(recording.flags)}
    print_result(result, str(path), as_json=as_json, notes=recording.notes)


def _report_study(study: Study, folder: Path, coder: str, *, as_json: bool) -> None:
    tables = tabulate_study(study, coder)
    if coder and not tables.analysed:
        names = ", ".join(sorted({str(row["coder"]) for row in tables.sessions})) or "none"
        raise StudyError(f"{study.path}: no session is coded by {coder}; it has {names}: give one of them as --coder")
    written = write_analysis(study, tables, folder)
    notes = [
        *warn_of_few_units(tables),
        *tables.remarks,
        *(f"{path}: was changed, so stays as it is" for path in written.edited),
    ]
    files = [str(path) for path in written.files]
    result = {
        "files": files,
        "sessions": len(tables.sessions),
        "events": len(tables.events),
        "notes": notes,
    }
    counts = f"{count_of(len(tables.sessions), 'row')} of sessions, {count_of(len(tables.events), 'label')}"
    next_step = f"{counts}. Open report.html; run analysis.R in that folder."
    print_result(result, *files, as_json=as_json, notes=(*notes, next_step))
