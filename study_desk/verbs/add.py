"""`tactful study add, status`: bring a session into a study, and tell the state of its logs."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from norm_core import __version__
from norm_core.bags.reader import BagReader
from norm_core.bags.storage import is_bag
from norm_core.health.counters import describe
from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.records.messages import MessageError
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S, ReplayClock, WallClock, ns_to_s
from norm_core.runtime.wording import count_of
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.replay.bag_driver import feed_monitor, replay_monitor
from norm_monitor.senses.speech.whisper import WhisperConfig
from norm_monitor.session_log.key_file import KeyFile
from norm_monitor.session_log.live_log import RecordsOf, log_bag, name_bag
from norm_monitor.session_log.reader import is_log, read
from norm_monitor.session_log.recording import bag_records, open_recording
from norm_monitor.session_log.redact import Redactor
from norm_monitor.session_log.schema import SessionInfo
from norm_monitor.session_log.session_config import participants_of, redactor_of
from norm_monitor.session_log.study_folder import Study, is_study
from study_desk.study.add_session import AddedLog, add_log, free_log_folder, note_session, planned_session, session_info
from study_desk.study.status import SessionStatus, StoredItem, StudyStatus, stored_items, study_status
from study_desk.verbs.arguments import Media
from tactful_cli.console import complain, err, print_json, print_result, print_table, remark, show, titled_table
from tactful_cli.flag_watch import remarks_of, senses_of
from tactful_cli.session_options import SessionPeople, holds_flags
from tactful_cli.verb import AsJson, Language, RobotTopics, WhisperModel, WordsTopics


def monitored_records(
    bag: BagReader,
    topic: str,
    whisper: WhisperConfig,
    robot_topics: Iterable[str] = (),
    words_topics: Sequence[str] = (),
) -> Iterator[tuple[int, Any]]:
    """Yield a bag's speech, presence, flags and decisions, each with the time it became known. Prints progress."""
    senses = senses_of(bag, topic, whisper, robot_topics, words_topics=words_topics)
    clock = ReplayClock()
    monitor = replay_monitor(senses.sources, clock)
    start_ns, end_ns = bag.bounds_ns or (0, 0)
    events: set[str] = set()
    try:
        decisions = list(bag_records(bag, (Decision,)))  # read first: a bag is read once at a time
        with err.status("watching") as progress:
            for now_ns, record in heapq.merge(
                feed_monitor(senses.records(), monitor, clock), decisions, key=lambda pair: pair[0]
            ):
                if isinstance(record, SocialFlag):
                    events.add(record.event_id)
                done = f"{ns_to_s(now_ns - start_ns):.0f} of {ns_to_s(end_ns - start_ns):.0f} s"
                progress.update(f"watching: {done}, {count_of(len(events), 'event')}")
                yield now_ns, record
    except MessageError as error:
        raise TactfulError(f"a message of the bag cannot be read: {error}; --as-recorded passes over such") from error
    for text in remarks_of(bag, senses, monitor):
        complain(text)
    for line in describe((*senses.health_log.counters, *monitor.counters)):
        remark(line)


app = typer.Typer()


@app.command()
def add(  # noqa: PLR0917
    folder: Annotated[
        Path, typer.Argument(metavar="STUDY|LOG", help="Folder of a study, or of a log whose bag to name.")
    ],
    source: Annotated[
        Path, typer.Argument(metavar="BAG|LOG", help="Bag to log in the study, or log to move there, also a live one.")
    ],
    session: Annotated[str, typer.Option(help="Name of the session; needed for a bag.")] = "",
    condition: Annotated[str, typer.Option(help="Condition of the session.")] = "",
    participant: SessionPeople = None,
    keys: Annotated[
        Path | None, typer.Option("--keys", help="Key file with the names to remove; store it apart from the study.")
    ] = None,
    media: Media = None,
    watch: Annotated[
        bool | None,
        typer.Option(
            "--watch/--as-recorded",
            help="Run the monitor, or use the flags in the bag; default: run it if the bag has none.",
        ),
    ] = None,
    topic: Annotated[str, typer.Option("--topic", help="Audio topic; default: the only one.")] = "",
    robot_topic: RobotTopics = None,
    words_topic: WordsTopics = None,
    language: Language = "en",
    whisper: WhisperModel = "",
    as_json: AsJson = False,
) -> None:
    """Add a session to a study: log its bag, without images and sound, or move its log there.

    Of a damaged log, add what is valid, name what is lost, and exit with 1.

    Consents and retention come from study.yaml. Of a LOG and a BAG, note in the log which bag it is of.
    """
    if is_log(folder) and not is_study(folder):
        if session or condition or participant or media:
            raise TactfulError(f"{folder}: a log states its session itself; give the folder of a study, or no option")
        bag = name_bag(folder, source, WallClock())
        text = f"{bag.name}  sha256 {bag.sha256}  begins at {bag.offset_ns} ns"
        print_result(to_plain(bag), text, as_json=as_json)
        return
    study = Study(folder)
    people = participants_of(participant or ())
    if keys:
        KeyFile(keys).check_pseudonyms(study.file.participants)
    if is_log(source):
        added = add_log(study, source, WallClock(), name=session, condition=condition, participants=people)
        _print_added(added, study.log_of(added.session), as_json=as_json)
        return
    if not is_bag(source):
        raise TactfulError(f"{source}: is neither a study log nor a rosbag2 bag; name one")
    if not session:
        raise TactfulError(f"{source}: a bag names no session; give --session")
    planned = planned_session(
        study, session, condition=condition, participants=people, bag=source, media=tuple(media or ())
    )
    info = session_info(study, session, planned, __version__)
    if watch is None:
        with BagReader(source) as reader:
            watch = not holds_flags(reader)
    if (robot_topic or words_topic) and not watch:
        complain(
            "--robot-topic, --words-topic: not used, because the bag's flags are logged; run the monitor with --watch"
        )
    monitored = partial(
        monitored_records,
        topic=topic,
        whisper=WhisperConfig(model=whisper, language=language),
        robot_topics=robot_topic or (),
        words_topics=words_topic or (),
    )
    log = free_log_folder(study, session, planned)
    _log_session(source, log, info, redactor_of(keys, info.participants), monitored if watch else None, as_json)
    note_session(study, session, planned)


def _print_added(added: AddedLog, log: Path, *, as_json: bool) -> None:
    """Print where a log lies now, and exit with 1 if entries of a damaged one were lost."""
    notes = [f"lost: {text}" for text in added.lost]
    if added.damaged:
        notes.append(f"{added.damaged}: was damaged, and stays as it is; erase it once you need it no more")
    print_result(to_plain(added) | {"log": str(log)}, str(log), as_json=as_json, notes=notes)
    if added.lost:
        raise typer.Exit(1)


def _log_session(  # noqa: PLR0917
    bag: Path, folder: Path, info: SessionInfo, redactor: Redactor, monitored: RecordsOf | None, as_json: bool
) -> None:
    if monitored:
        table = ThresholdTable.shipped()
        info = replace(info, table_version=table.version, config_sha256=table.sha256())
    count, unreadable = log_bag(bag, folder, info, WallClock(), redactor, monitored)
    recording = open_recording(folder)
    result = {
        "log": str(folder),
        "entries": count,
        "unreadable": unreadable,
        "flags": len(recording.flags),
        "monitored_records": monitored is not None,
        "head": recording.head,
    }
    counts = f"{folder}: {count_of(count, 'entry', 'entries')}, {count_of(len(recording.flags), 'flag')}"
    print_result(result, counts, f"head {recording.head}", as_json=as_json)
    if unreadable:
        remark(f"{count_of(unreadable, 'message')} of the bag cannot be read, and left out of the log")
    if not recording.flags and not monitored:
        remark(f"{bag} holds no flags: leave --as-recorded out, and the monitor runs over it.")
    elif not (recording.utterances or recording.robot_speech or recording.presences):
        remark(f"{bag} holds nothing to watch: no speech, sound, camera or people.")
    elif not recording.flags:
        remark(f"The monitor flagged nothing in {bag}.")


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
            print_table(_stored_table(items))
    if not is_right:
        raise typer.Exit(1)


def _verify(log: Path, expect: str) -> dict[str, Any]:
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
        show(f"{fault['file']}:{fault['line']}: {fault['what']}" if fault["file"] else fault["what"])
    ended = "recording ended" if result["sealed"] else "recording not ended"
    show(f"{count_of(result['entries'], 'entry', 'entries')}, {result['erased']} erased, {ended}")
    show(f"head {result['head']}\n{'sound' if result['sound'] else 'NOT SOUND'}")


def _stored_table(items: Iterable[StoredItem]) -> Table:
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
            show(f"{session.name}: head {session.head}")
        remark(*(f"{session.name}: {text}" for text in (*session.problems, session.hidden_from_coders) if text))
    for stone in study.removed:
        day = datetime.fromtimestamp(stone.wall_ns // NS_PER_S, UTC).date().isoformat()
        why = f": {stone.reason}" if stone.reason else ""
        remark(f"session {stone.session} was removed on {day}{why}")
    remark(*study.problems)
    owed = sum(len(session.owed_by) for session in study.sessions)
    wrong = len(study.problems) + sum(len(session.problems) for session in study.sessions)
    show(f"{count_of(owed, 'coding')} owed, {count_of(wrong, 'problem')}, {count_of(study.outputs, 'file')} made")
    if owed:
        remark(f"A coder who found nothing: {PROGRAM} study import LOG --coder CODER --complete")


def _row(session: SessionStatus) -> tuple[str, ...]:
    revisions = {name: f" (revised {count_of(number, 'time')})" for name, number in session.revised.items()}
    return (
        session.name,
        session.condition,
        session.log,
        "; ".join(f"{name}: {', '.join(consents) or 'nothing'}" for name, consents in session.participants.items()),
        ", ".join(name + revisions.get(name, "") for name in session.coded_by),
        ", ".join(session.owed_by),
        _retention_text(session.retention_end_ns, session.retention_by_log),
    )


def _retention_text(end_ns: int | None, by_log: bool) -> str:
    if end_ns is None:
        return "no limit"
    day = datetime.fromtimestamp(end_ns // NS_PER_S, UTC).date().isoformat()
    return f"{day} (by its log)" if by_log else day
