"""`tactful study status, repair`: the state of a study and of its logs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S, WallClock
from norm_core.runtime.wording import count_of
from study_desk.log.reader import read
from study_desk.log.writer import recover_log
from study_desk.study.status import SessionStatus, StoredItem, StudyStatus, stored_items, study_status
from study_desk.study.study_folder import Study, is_study
from tactful_cli.console import err, print_json, print_table, remark, titled_table
from tactful_cli.verb import AsJson

app = typer.Typer()


@app.command()
def status(
    source: Annotated[Path, typer.Argument(metavar="STUDY|LOG", help="Folder of a study or of a log.")] = Path(),
    expect: Annotated[str, typer.Option(help="Head hash that a log must have, as it was cited.")] = "",
    stored: Annotated[bool, typer.Option("--stored", help="List the stored data too, and why each is kept.")] = False,
    as_json: AsJson = False,
) -> None:
    """Verify a study's logs, and show consents, coders and retention. Exits with 1 if anything is owed, due or wrong.

    Of a log, verify the hash chain: exits with 1 if a line was changed, removed or truncated.
    """
    if is_study(source) or source == Path():
        if expect:
            raise TactfulError(f"{source}: --expect is for one log; name a session's log")
        study = study_status(Study(source), WallClock())
        result, is_right = to_plain(study) | {"complete": study.is_complete}, study.is_complete
    else:
        study, result = None, _verify(source, expect)
        is_right = result["sound"]
    items = [*stored_items(source)] if stored else []
    if as_json:
        print_json(result | ({"stored": to_plain(items)} if stored else {}))
    else:
        if study:
            _print_status(study)
        else:
            _print_log(result)
        if items:
            print_table(_stored(items))
    if not is_right:
        raise typer.Exit(1)


def _verify(log: Path, expect: str) -> dict[str, Any]:
    """Verify one log."""
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


def _print_log(result: dict[str, Any]) -> None:
    for fault in result["faults"]:
        print(f"{fault['file']}:{fault['line']}: {fault['what']}" if fault["file"] else fault["what"])
    ended = "recording ended" if result["sealed"] else "recording not ended"
    print(f"{count_of(result['entries'], 'entry', 'entries')}, {result['erased']} erased, {ended}")
    print(f"head {result['head']}\n{'sound' if result['sound'] else 'NOT SOUND'}")


def _stored(items: Iterable[StoredItem]) -> Table:
    table = Table()
    for name in ("where", "what", "count", "why"):
        table.add_column(name, overflow="fold")
    for item in items:
        table.add_row(item.place, item.kind, str(item.count), item.why)
    return table


def _print_status(study: StudyStatus) -> None:
    names = ("session", "condition", "log", "participants", "coded by", "owed by", "kept until")
    table = titled_table(f"study {study.study}", *names)
    for session in study.sessions:
        table.add_row(*_row(session))
    print_table(table)
    for session in study.sessions:
        if session.head:
            print(f"{session.name}: head {session.head}")
        remark(*(f"{session.name}: {problem}" for problem in session.problems))
    unlisted = sum((Counter(session.unlisted_codes) for session in study.sessions), Counter[str]())
    for code, number in unlisted.items():
        sessions = ", ".join(session.name for session in study.sessions if code in session.unlisted_codes)
        remark(
            f"code {code}: {count_of(number, 'label')} in {sessions}, but no such code in study.yaml: "
            "add it to codes, or leave it as a coder's own word"
        )
    for stone in study.removed:
        day = datetime.fromtimestamp(stone.wall_ns // NS_PER_S, UTC).date().isoformat()
        why = f": {stone.reason}" if stone.reason else ""
        remark(f"session {stone.session} was removed on {day}{why}")
    remark(*study.problems)
    owed = sum(len(session.owed_by) for session in study.sessions)
    wrong = len(study.problems) + sum(len(session.problems) for session in study.sessions)
    print(f"{count_of(owed, 'coding')} owed, {count_of(wrong, 'problem')}, {count_of(study.outputs, 'file')} made")
    if owed:
        err.print(f"A coder who found nothing: {PROGRAM} study import LOG --coder CODER --complete")


def _row(session: SessionStatus) -> tuple[str, ...]:
    revisions = {name: f" (revised {count_of(number, 'time')})" for name, number in session.revised.items()}
    return (
        session.name,
        session.condition,
        session.log,
        "; ".join(f"{name}: {', '.join(given) or 'nothing'}" for name, given in session.participants.items()),
        ", ".join(name + revisions.get(name, "") for name in session.coded_by),
        ", ".join(session.owed_by),
        _until(session.retention_end_ns, session.retention_by_log),
    )


def _until(end_ns: int | None, by_log: bool) -> str:
    if end_ns is None:
        return "no limit"
    day = datetime.fromtimestamp(end_ns // NS_PER_S, UTC).date().isoformat()
    return f"{day} (by its log)" if by_log else day


@app.command()
def repair(
    old: Annotated[Path, typer.Argument(metavar="LOG", help="Damaged log; left unchanged.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Folder to write the new log into.")],
    as_json: AsJson = False,
) -> None:
    """Copy the valid part of a damaged log to a new log that lists the losses. Exits with 1 if data was lost."""
    report = recover_log(old, new)
    if as_json:
        print_json(asdict(report))
    else:
        for what in report.lost:
            print(f"lost: {what}")
        print(f"{new}: {count_of(report.entries, 'entry', 'entries')}")
    if report.lost:
        raise typer.Exit(1)
