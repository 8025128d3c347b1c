"""`tactful study analyse`."""

from pathlib import Path
from typing import Annotated

import typer

from norm_core.runtime.wording import count_of
from study_desk.analysis.few_units import few_units
from study_desk.analysis.study_tables import study_tables
from study_desk.analysis.write_analysis import write_analysis
from study_desk.study.study_folder import Study, StudyError
from tactful_cli.console import err, print_json
from tactful_cli.study.folder import StudyPath
from tactful_cli.verb import AsJson

app = typer.Typer()


@app.command()
def analyse(
    folder: StudyPath,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write into.")],
    coder: Annotated[
        str,
        typer.Option(
            help="Coder whose labels count, or monitor; default: the consensus, else a session's first coder."
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Write tables, a data dictionary, a report by condition and scripts for R and Python, for their owner alone."""
    study = Study(folder)
    tables = study_tables(study, coder)
    if coder and not tables.analysed:
        known = ", ".join(sorted({str(row["coder"]) for row in tables.sessions})) or "none"
        raise StudyError(f"{study.path}: no session is coded by {coder}; it has {known}: give one of them as --coder")
    written = write_analysis(study, tables, output)
    notes = [*few_units(tables), *tables.remarks, *(f"{path}: was changed, so stays as it is" for path in written.kept)]
    if as_json:
        files = [str(path) for path in written.files]
        print_json({"files": files, "sessions": len(tables.sessions), "events": len(tables.events), "notes": notes})
        return
    for path in written.files:
        print(path)
    for note in notes:
        err.print(note, markup=False, soft_wrap=True)
    rows, events = count_of(len(tables.sessions), "row"), count_of(len(tables.events), "label")
    err.print(f"{rows} of sessions, {events}. Open report.html; run analysis.R or analysis.py in that folder.")
