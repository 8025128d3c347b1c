"""`tactful study add`: bring a session into a study."""

import heapq
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from norm_core import __version__
from norm_core.bags.reader import BagReader
from norm_core.bags.storage import is_bag
from norm_core.health.counters import describe
from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.records.messages import MessageError
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock, WallClock, ns_to_s
from norm_core.runtime.wording import count_of
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.replay.bag_driver import feed_monitor, make_replay_monitor
from norm_monitor.session_log.key_file import KeyFile
from norm_monitor.session_log.live_log import RecordsOf, log_bag, name_bag
from norm_monitor.session_log.reader import is_log
from norm_monitor.session_log.recording import open_recording, read_bag_records
from norm_monitor.session_log.redact import Redactor
from norm_monitor.session_log.schema import SessionInfo
from norm_monitor.session_log.session_config import make_redactor, parse_participants
from norm_monitor.session_log.study_folder import Study, is_study
from study_desk.study.add_session import (
    AddedLog,
    add_log,
    choose_log_folder,
    describe_session,
    note_session,
    plan_session,
)
from tactful_cli.console import complain, err, print_result, remark
from tactful_cli.flag_watch import FlagOptions, WatchOptions, remarks_of, senses_of
from tactful_cli.session_options import holds_flags
from tactful_cli.verb_options import AsJson, with_options

app = typer.Typer()


@app.command()
@with_options
def add(
    folder: Annotated[
        Path, typer.Argument(metavar="STUDY|LOG", help="Folder of a study, or of a log that a bag belongs to.")
    ],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="BAG|LOG", help="Bag to log in the study, or log to move there, such as that of a live session."
        ),
    ],
    *,
    session: Annotated[str, typer.Option(help="Name of the session; needed for a bag.")] = "",
    condition: Annotated[str, typer.Option(help="Condition of the session.")] = "",
    participant: Annotated[
        list[str] | None,
        typer.Option(
            help="Pseudonym, with the person ids of this session after =: P-7K3MX=person_1,voice_2. Repeatable."
        ),
    ] = None,
    keys: Annotated[
        Path | None, typer.Option("--keys", help="Key file with the names to remove; store it apart from the study.")
    ] = None,
    media: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE[=SECONDS]",
            help="Video or sound file for coders, and how far into it the session begins. Repeatable.",
        ),
    ] = None,
    watch: Annotated[
        bool | None,
        typer.Option(
            "--watch/--as-recorded",
            help="Run the monitor, or use the flags in the bag; default: run it if the bag has none.",
        ),
    ] = None,
    watched: WatchOptions,
    as_json: AsJson = False,
) -> None:
    """Add a session to a study: log its bag, without images and sound, or move its log there.

    From a damaged log, add what is valid, list what is lost, and exit with 1.

    Consents and retention come from study.yaml. With a LOG and a BAG, note in the log which bag it belongs to.
    """
    if is_log(folder) and not is_study(folder):
        if session or condition or participant or media:
            raise TactfulError(f"{folder}: a log states its session itself; give the folder of a study, or no option")
        bag = name_bag(folder, source, WallClock())
        line = f"{bag.name}  sha256 {bag.sha256}  begins at {bag.offset_ns} ns"
        print_result(to_plain(bag), line, as_json=as_json)
        return
    study = Study(folder)
    people = parse_participants(participant or ())
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
    planned = plan_session(
        study, session, condition=condition, participants=people, bag=source, media=tuple(media or ())
    )
    info = describe_session(study, session, planned, __version__)
    if watch is None:
        with BagReader(source) as reader:
            watch = not holds_flags(reader)
    options = watched.for_flags()
    if watch:
        table = ThresholdTable.shipped()
        weighed_by = options.fusion.describe()
        info = replace(info, table_version=table.version, weighed_by=weighed_by, config_sha256=table.sha256())
    elif watched != WatchOptions():
        complain("options of the monitor: not used, because the bag's flags are logged; run the monitor with --watch")
    run_monitor = partial(_run_monitor, options=options) if watch else None
    log = choose_log_folder(study, session, planned)
    _log_session(source, log, info, make_redactor(keys, info.participants), run_monitor, as_json)
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
    bag: Path, folder: Path, info: SessionInfo, redactor: Redactor, run_monitor: RecordsOf | None, as_json: bool
) -> None:
    """Write the log of a bag, with its own flags or those of the monitor, and print what it holds."""
    entry_count, unreadable_count = log_bag(bag, folder, info, WallClock(), redactor, run_monitor)
    recording = open_recording(folder)
    result = {
        "log": str(folder),
        "entries": entry_count,
        "unreadable": unreadable_count,
        "flags": len(recording.flags),
        "monitored_records": run_monitor is not None,
        "head": recording.head,
    }
    counts = f"{folder}: {count_of(entry_count, 'entry', 'entries')}, {count_of(len(recording.flags), 'flag')}"
    print_result(result, counts, f"head {recording.head}", as_json=as_json)
    if unreadable_count:
        remark(f"{count_of(unreadable_count, 'message')} of the bag cannot be read, and left out of the log")
    if not recording.flags and not run_monitor:
        remark(f"{bag} holds no flags: leave --as-recorded out, and the monitor runs over it.")
    elif not (recording.utterances or recording.robot_speech or recording.presences):
        remark(f"{bag} holds nothing to watch: no speech, sound, camera or people.")
    elif not recording.flags:
        remark(f"The monitor flagged nothing in {bag}.")


def _run_monitor(bag: BagReader, options: FlagOptions) -> Iterator[tuple[int, Any]]:
    """Yield a bag's speech, presence, flags and decisions, each with the time it became known. Prints progress."""
    senses = senses_of(bag, options.topic, options.whisper, options.robot_topics, words_topics=options.words_topics)
    clock = ReplayClock()
    monitor = make_replay_monitor(senses.sources, clock, options.fusion)
    start_ns, end_ns = bag.bounds_ns or (0, 0)
    events: set[str] = set()
    try:
        decisions = list(read_bag_records(bag, (Decision,)))  # read first: a bag is read once at a time
        with err.status("watching") as progress:
            for now_ns, record in heapq.merge(
                feed_monitor(senses.records(), monitor, clock), decisions, key=lambda pair: pair[0]
            ):
                if isinstance(record, SocialFlag):
                    events.add(record.event_id)
                position = f"{ns_to_s(now_ns - start_ns):.0f} of {ns_to_s(end_ns - start_ns):.0f} s"
                progress.update(f"watching: {position}, {count_of(len(events), 'event')}")
                yield now_ns, record
    except MessageError as error:
        raise TactfulError(f"a message of the bag cannot be read: {error}; --as-recorded passes over such") from error
    for text in remarks_of(bag, senses, monitor):
        complain(text)
    for line in describe((*senses.health_log.counters, *monitor.counters)):
        remark(line)
