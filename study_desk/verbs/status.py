"""`tactful study status`: verify the logs of a study, and show what is owed."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S, WallClock
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.reader import read
from norm_monitor.session_log.study_folder import Study, is_study
from study_desk.study.status import SessionStatus, StudyStatus, check_study
from tactful_cli.console import print_json, print_table, remark, show, titled_table
from tactful_cli.verb_options import AsJson

app = typer.Typer()


@app.command()
def status(
    source: Annotated[Path, typer.Argument(metavar="STUDY|LOG", help="Folder of a study or of a log.")] = Path(),
    expect: Annotated[str, typer.Option(help="Head hash that the log must have.")] = "",
    as_json: AsJson = False,
) -> None:
    """Verify a study's logs, and show consents, coders and retention. Exits with 1 if anything is due or wrong.

    For a log, verify the hash chain, and exit with 1 if a line was changed, removed or truncated.
    """
    if is_study(source) or source == Path():
        if expect:
            raise TactfulError(f"{source}: --expect is for one log; name a session's log")
        study = check_study(Study(source), WallClock())
        is_right = study.is_complete
        if as_json:
            print_json(to_plain(study) | {"complete": is_right})
        else:
            _print_study(study)
    else:
        log = _verify_log(source, expect)
        is_right = log["sound"]
        if as_json:
            print_json(log)
        else:
            _print_log(log)
    if not is_right:
        raise typer.Exit(1)


def _verify_log(log: Path, expect: str) -> dict[str, Any]:
    contents = read(log)
    faults = [asdict(fault) for fault in contents.faults]
    if expect and expect != contents.head:
        what = f"the head is {contents.head}, not {expect}: entries were added since it was cited, or it is another log"
        faults.append({"file": "", "line": 0, "what": what, "harmless": False})
    return {
        "sound": not faults,
        "head": contents.head,
        "entries": len(contents.entries),
        "erased": sum(e.record is None for e in contents.entries) - contents.half_erased,
        "sealed": contents.sealed,
        "faults": faults,
    }


def _print_log(log: dict[str, Any]) -> None:
    for fault in log["faults"]:
        show(f"{fault['file']}:{fault['line']}: {fault['what']}" if fault["file"] else fault["what"])
    ended = "recording ended" if log["sealed"] else "recording not ended"
    show(f"{count_of(log['entries'], 'entry', 'entries')}, {log['erased']} erased, {ended}")
    show(f"head {log['head']}\n{'sound' if log['sound'] else 'NOT SOUND'}")


def _print_study(study: StudyStatus) -> None:
    columns = ("session", "condition", "log", "participants", "coded by", "owed by", "kept until")
    table = titled_table(f"study {study.study}", *columns)
    for session in study.sessions:
        table.add_row(*_make_row(session))
    print_table(table)
    for session in study.sessions:
        if session.head:
            show(f"{session.name}: head {session.head}")
        remark(*(f"{session.name}: {text}" for text in (*session.problems, session.explain_hidden) if text))
    for removed in study.removed:
        reason = f": {removed.reason}" if removed.reason else ""
        remark(f"session {removed.session} was removed on {_format_day(removed.wall_ns)}{reason}")
    remark(*study.problems)
    owed_count = sum(len(session.owed_by) for session in study.sessions)
    problem_count = len(study.problems) + sum(len(session.problems) for session in study.sessions)
    show(f"{count_of(owed_count, 'coding')} owed, {count_of(problem_count, 'problem')}")
    if owed_count:
        remark(f"A coder who found nothing: {PROGRAM} study import LOG --coder CODER --complete")


def _make_row(session: SessionStatus) -> tuple[str, ...]:
    revisions = {name: f" (revised {count_of(count, 'time')})" for name, count in session.revised.items()}
    return (
        session.name,
        session.condition,
        session.log,
        "; ".join(f"{name}: {', '.join(consents) or 'nothing'}" for name, consents in session.participants.items()),
        ", ".join(name + revisions.get(name, "") for name in session.coded_by),
        ", ".join(session.owed_by),
        "no limit" if session.retention_end_ns is None else _format_day(session.retention_end_ns),
    )


def _format_day(stamp_ns: int) -> str:
    return datetime.fromtimestamp(stamp_ns // NS_PER_S, UTC).date().isoformat()
