"""`tactful study report`: write reports for researchers."""

from pathlib import Path
from typing import Annotated

import typer

from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.study_folder import Study, StudyError, is_study
from study_desk.analysis.event_rates import warn_of_few_units
from study_desk.analysis.study_tables import tabulate_study
from study_desk.analysis.write_analysis import write_analysis
from study_desk.verbs.arguments import StudyPath
from tactful_cli.console import print_result
from tactful_cli.verb_options import AsJson

app = typer.Typer()


@app.command()
def report(
    folder: StudyPath,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder to write into; default: exports/analysis in the study's folder."),
    ] = None,
    coder: Annotated[
        str, typer.Option(help="Coder whose labels count, or monitor; default: the consensus, otherwise the first.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Write a report of a study by condition, tables, a data dictionary and an R script into a folder."""
    if not is_study(folder):
        raise TactfulError(f"{folder}: is no folder of a study; name one, or see a session with {PROGRAM} view BAG")
    study = Study(folder)
    tables = tabulate_study(study, coder)
    if coder and not tables.analysed:
        names = ", ".join(sorted({str(row["coder"]) for row in tables.sessions})) or "none"
        raise StudyError(f"{study.path}: no session is coded by {coder}; it has {names}: give one of them as --coder")
    written = write_analysis(study, tables, output or folder / "exports" / "analysis")
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
