"""`tactful study add`: bring a session into a study, and run the monitor on its bag where that holds no flags."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from norm_core import __version__
from norm_core.bags.reader import BagReader
from norm_core.bags.storage import is_bag
from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.records.messages import MessageError, message_type
from norm_core.runtime.counters import describe
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock, WallClock, ns_to_s
from norm_core.runtime.wording import count_of
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.senses.speech.whisper import WhisperConfig
from sim_replays.drivers.bag_driver import feed_monitor, replay_monitor
from study_desk.log.import_bag import RecordsOf, log_bag, name_bag
from study_desk.log.reader import is_log
from study_desk.log.recording import bag_records, open_recording
from study_desk.log.schema import SessionInfo
from study_desk.log.session_config import participants_of, redactor_of
from study_desk.privacy.redact import KeyFile, Redactor
from study_desk.study.add_session import add_log, free_log_folder, note_session, planned_session, session_info
from study_desk.study.study_folder import Study, is_study
from tactful_cli.console import complain, err, print_json
from tactful_cli.flag_watch import remarks_of, senses_of
from tactful_cli.study.arguments import Media, SessionPeople
from tactful_cli.verb import AsJson, Language, RobotTopics, WhisperModel, WordsTopics


def holds_flags(bag: BagReader) -> bool:
    """Whether the bag holds recorded flags."""
    return any(t.type_name == message_type(SocialFlag) and t.message_count for t in bag.topics)


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
    for remark in remarks_of(bag, senses, monitor):
        complain(remark)
    for line in describe((*senses.health_log.counters, *monitor.counters)):
        err.print(line, soft_wrap=True)


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
    policy: Annotated[
        Path | None, typer.Option("--policy", help="YAML redaction policy for words; default: remove names.")
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

    Consents and retention come from study.yaml. Of a LOG and a BAG, note in the log which bag it is of.
    """
    if is_log(folder) and not is_study(folder):
        if session or condition or participant or media:
            raise TactfulError(f"{folder}: a log states its session itself; give the folder of a study, or no option")
        bag = name_bag(folder, source, WallClock())
        if as_json:
            print_json(to_plain(bag))
        else:
            print(f"{bag.name}  sha256 {bag.sha256}  begins at {bag.offset_ns} ns")
        return
    study = Study(folder)
    people = participants_of(participant or ())
    if keys:
        KeyFile(keys).check_pseudonyms(study.file.participants)
    if is_log(source):
        name = add_log(study, source, WallClock(), name=session, condition=condition, participants=people)
        if as_json:
            print_json({"session": name, "log": str(study.log_of(name))})
        else:
            print(study.log_of(name))
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
    _log_session(source, log, info, redactor_of(policy, keys, info.participants), monitored if watch else None, as_json)
    note_session(study, session, planned)


def _log_session(  # noqa: PLR0917
    bag: Path, folder: Path, info: SessionInfo, redactor: Redactor, monitored: RecordsOf | None, as_json: bool
) -> None:
    """Log a bag, and print what the log holds."""
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
    if as_json:
        print_json(result)
    else:
        print(f"{folder}: {count_of(count, 'entry', 'entries')}, {count_of(len(recording.flags), 'flag')}")
        print(f"head {recording.head}")
    if unreadable:
        err.print(f"{count_of(unreadable, 'message')} of the bag cannot be read, and left out of the log")
    if not recording.flags and not monitored:
        err.print(f"{bag} holds no flags: leave --as-recorded out, and the monitor runs over it.")
    elif not (recording.utterances or recording.robot_speech or recording.presences):
        err.print(f"{bag} holds nothing to watch: no speech, sound, camera or people.")
    elif not recording.flags:
        err.print(f"The monitor flagged nothing in {bag}.")
