"""`tactful study import`: import the files of coders."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.schema import Coding, Label
from norm_monitor.session_log.session_config import make_redactor
from norm_monitor.session_log.study_folder import Study, is_study
from study_desk.study.import_coding import (
    Addition,
    ImportOptions,
    PlannedImport,
    plan_for_log,
    plan_for_study,
    retract_coding,
    write_additions,
)
from tactful_cli.console import print_json, remark, show
from tactful_cli.verb_options import AsJson

app = typer.Typer()


@app.command("import")
def import_(  # noqa: PLR0917
    target: Annotated[Path, typer.Argument(metavar="LOG|STUDY", help="Log of a session, or folder of a study.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Coded EAF of ELAN, project of BORIS (boris), or table (csv, tsv).",
        ),
    ] = None,
    coder: Annotated[
        str, typer.Option(help="Pseudonym of the coder, or consensus for what all agreed on; default: as in the file.")
    ] = "",
    keys: Annotated[Path | None, typer.Option(help="Key file with the names to remove from comments.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace this coder's labels; the log keeps the earlier ones.")
    ] = False,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete",
            help="Record that the coder coded the whole session. For a log, a form without rows implies it.",
        ),
    ] = False,
    outside: Annotated[
        bool, typer.Option("--outside", help="Accept labels that lie before or after the session.")
    ] = False,
    retract: Annotated[
        bool,
        typer.Option("--retract", help="Retract the coding by --coder. The log keeps it, but it no longer counts."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Append coders' labels to a log, or to the logs of a study by the sessions they name.

    Everything is checked before anything is written. Entries already in a log are skipped.
    """
    if retract:
        if is_study(target) or files or not coder:
            raise TactfulError(f"{target}: --retract takes a log and --coder, and no FILE")
        _retract(target, coder, as_json=as_json)
        return
    redactor = make_redactor(keys)
    options = ImportOptions(
        coder=coder,
        replace=replace,
        complete=complete,
        outside=outside,
        redactor=redactor,
    )
    if is_study(target):
        if not files:
            raise TactfulError(f"{target}: a study takes files; name some")
        planned = plan_for_study(Study(target), files, options)
    else:
        planned = plan_for_log(target, files or [], options)
    heads = write_additions(planned.additions, WallClock(), redactor)
    remarks = [] if keys else [*_remind_of_names(planned)]
    if as_json:
        print_json(_summarize(planned, heads, remarks, is_of_study=is_study(target)))
    else:
        _print_import(planned, heads, remarks, is_of_study=is_study(target))


def _retract(log: Path, coder: str, *, as_json: bool) -> None:
    retraction = retract_coding(log, coder, WallClock())
    if as_json:
        print_json(to_plain(retraction))
        return
    labels = count_of(retraction.labels, "label")
    show(f"{retraction.session}: coding by {coder} taken back: {labels}, which the log keeps\nhead {retraction.head}")


def _remind_of_names(planned: PlannedImport) -> Iterator[str]:
    """Remind of the key file: only it tells which words of a comment are names of participants."""
    if count := sum(addition.comment_count for addition in planned.additions):
        yield (
            f"{count_of(count, 'comment')} imported as written: if comments name participants, give --keys with the "
            f"key file of {PROGRAM} study participant, and their pseudonyms stand there instead"
        )


def _summarize(
    planned: PlannedImport, heads: dict[Path, str], remarks: list[str], *, is_of_study: bool
) -> dict[str, object]:
    imported = sum(len(addition.entries) for addition in planned.additions)
    if not is_of_study:
        return {"imported": imported, "head": next(iter(heads.values()))}
    sessions = [
        {
            "session": addition.recording.info.session,
            "file": str(addition.file),
            "coders": addition.people,
            "labels": sum(isinstance(entry, Label) for entry in addition.entries),
            "revised": any(isinstance(entry, Coding) and entry.replaces for entry in addition.entries),
            "head": heads[addition.log],
        }
        for addition in planned.additions
    ]
    return {"imported": imported, "sessions": sessions, "without_labels": planned.empty, "remarks": remarks}


def _print_import(planned: PlannedImport, heads: dict[Path, str], remarks: list[str], *, is_of_study: bool) -> None:
    for addition in planned.additions:
        name = f"{addition.recording.info.session}: " if is_of_study else ""
        source = [f"by {', '.join(addition.people)}"] if addition.people else []
        source += [f"from {addition.file}"] if addition.file else []
        show(f"{name}{_count_entries(addition)}\n{' '.join(source)}\nhead {heads[addition.log]}")
    if planned.empty:
        remark(
            f"{count_of(len(planned.empty), 'form')} without labels left out: {', '.join(planned.empty)}; "
            "if the coder found nothing there, import it with --complete",
        )
    remark(*remarks)


def _count_entries(addition: Addition) -> str:
    label_count = sum(isinstance(entry, Label) for entry in addition.entries)
    counts = [count_of(label_count, "label")] if label_count else []
    codings = [entry for entry in addition.entries if isinstance(entry, Coding)]
    counts += [
        f"coding by {coding.coder} {'revised' if coding.replaces else 'complete'}: {count_of(coding.labels, 'label')}"
        for coding in codings
    ]
    return ", ".join(counts) or "nothing new"
