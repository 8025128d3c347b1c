"""`tactful study log, bag, example, verify, migrate, recover, explain`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from norm_core import __version__
from norm_core.bags.reader import BagReader
from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock, ns_to_s
from norm_core.runtime.wording import count_of
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.senses.speech.whisper import WhisperConfig
from sim_replays.examples.session_bag import write_session_bag
from sim_replays.examples.study_session import person_ids, write_log
from study_desk.log.import_bag import log_bag, migrate, name_bag
from study_desk.log.log_recovery import recover_log
from study_desk.log.reader import read
from study_desk.log.recording import open_recording
from study_desk.log.schema import Participant, SessionInfo
from study_desk.log.session_config import participants_of, redactor_of
from study_desk.privacy.redact import Redactor
from study_desk.study.study_folder import Study, is_study
from tactful_cli.console import complain, err, print_json
from tactful_cli.study.watch import holds_flags, monitored_records
from tactful_cli.verb import AsJson, Language, RobotTopics, WhisperModel, WordsTopics

app = typer.Typer()

LogPath = Annotated[Path, typer.Argument(metavar="LOG", help="Folder of a study log.")]
LogOrStudyPath = Annotated[Path, typer.Argument(metavar="LOG|STUDY", help="Folder of a study log, or of a study.")]
SourcePath = Annotated[Path, typer.Argument(metavar="BAG|LOG", help="Study log, or folder of a rosbag2 bag.")]

KeysToRemove = Annotated[
    Path | None, typer.Option("--keys", help="Key file with the names to remove; store it apart from the output.")
]
Policy = Annotated[
    Path | None, typer.Option("--policy", help="YAML redaction policy for words; default: remove names.")
]
SessionPeople = Annotated[
    list[str] | None,
    typer.Option(
        "--participant",
        help="Pseudonym, with the person ids of this session after =: P-7K3MX=person_1,voice_2. Repeatable.",
    ),
]
Media = Annotated[
    list[str] | None,
    typer.Option(
        "--media",
        metavar="FILE[=SECONDS]",
        help="Video or sound file to link in exports, and how far into it the session begins. Repeatable.",
    ),
]
Watch = Annotated[
    bool | None,
    typer.Option(
        "--watch/--as-recorded",
        help="Run the monitor, or use the flags in the bag; default: run it if the bag has none.",
    ),
]
AudioTopic = Annotated[str, typer.Option("--topic", help="Audio topic; default: the only one.")]


@app.command("log")
def log_(  # noqa: PLR0917
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="Bag of the session.")],
    folder: Annotated[Path, typer.Argument(metavar="LOG", help="Folder to write the log into; must be new or empty.")],
    study: Annotated[str, typer.Option(help="Name of the study.")],
    session: Annotated[str, typer.Option(help="Name of the session; unique in the study.")],
    condition: Annotated[str, typer.Option(help="Condition of the session.")] = "",
    participant: SessionPeople = None,
    clips: Annotated[
        list[str] | None, typer.Option(help="Pseudonym of a participant who consented to clips. Repeatable.")
    ] = None,
    no_words: Annotated[
        list[str] | None,
        typer.Option(help="Pseudonym of a participant who did not consent to a transcript. Repeatable."),
    ] = None,
    keys: KeysToRemove = None,
    policy: Policy = None,
    retention_days: Annotated[
        int, typer.Option(min=0, help="Days after which `study expire` erases the log; 0: never.")
    ] = 0,
    media: Media = None,
    watch: Watch = None,
    topic: AudioTopic = "",
    robot_topic: RobotTopics = None,
    words_topic: WordsTopics = None,
    language: Language = "en",
    whisper: WhisperModel = "",
    as_json: AsJson = False,
) -> None:
    """Write a bag's speech, presence, flags and decisions to a new log, without images or sound.

    If the bag holds no flags, the monitor runs on it first.
    """
    participants = participants_of(participant or (), clips or (), no_words or ())
    info = SessionInfo(
        study=study,
        session=session,
        condition=condition,
        participants=participants,
        retention_days=retention_days or None,
        media=tuple(media or ()),
        software_version=__version__,
    )
    log_session(
        bag,
        folder,
        info,
        redactor_of(policy, keys, participants),
        WhisperConfig(model=whisper, language=language),
        watch=watch,
        topic=topic,
        robot_topics=robot_topic or (),
        words_topics=words_topic or (),
        as_json=as_json,
    )


@app.command()
def example(  # noqa: PLR0917
    folder: Annotated[Path, typer.Argument(metavar="LOG", help="Folder to write the log into; must be new or empty.")],
    session: Annotated[str, typer.Option(help="Name of the session.")] = "S07",
    condition: Annotated[str, typer.Option(help="Condition of the session.")] = "apology",
    minutes: Annotated[float, typer.Option(min=1, max=600, help="Length of the session in minutes.")] = 10,
    flags: Annotated[int, typer.Option(min=0, max=20_000, help="Number of flags.")] = 34,
    seed: Annotated[int, typer.Option(help="Random seed of the session.")] = 7,
    bag: Annotated[
        Path | None, typer.Option(help="Bag to write with it, of drawn pictures and tones; must not exist.")
    ] = None,
    participant: SessionPeople = None,
) -> None:
    """Write a generated session for trying the study tools.

    Its participants speak in turn; default: P-7K3MX=person_1. They consent to words and clips, unless study.yaml says
    otherwise.
    """
    values: dict[str, Any] = {"length_s": minutes * 60, "flags": flags, "seed": seed}
    if participant:
        values["participants"] = _speakers(participant)
    made = write_session_bag(bag, **values) if bag else None
    write_log(folder, session=session, condition=condition, bag=made, **values)
    print(folder)


def _speakers(texts: list[str]) -> tuple[Participant, ...]:
    """Make participants of a generated session. Who is given no person id gets one."""
    people = [
        replace(person, clips=True, person_ids=person.person_ids or (f"person_{number}",))
        for number, person in enumerate(participants_of(texts), 1)
    ]
    counts = Counter([*(person.pseudonym for person in people), *person_ids(people)])
    if twice := [name for name, count in counts.items() if count > 1]:
        raise TactfulError(f"--participant: {', '.join(twice)} is given twice; give each person and each id once")
    return tuple(people)


@app.command()
def verify(
    log: LogOrStudyPath,
    expect: Annotated[str, typer.Option(help="Expected head hash; verification fails if it differs.")] = "",
    as_json: AsJson = False,
) -> None:
    """Verify a log's hash chain. Exits with 1 if a line was changed, removed or truncated.

    Of a study, verify every session's log. A session without a log fails.
    """
    if not is_study(log):
        result, text = _verified(log, expect)
        _print(result, text, as_json=as_json)
        if not result["sound"]:
            raise typer.Exit(1)
        return
    if expect:
        raise TactfulError(f"{log}: --expect is for one log; name a session's log")
    study = Study(log)
    there = dict(study.logs())
    results = {name: _verified(folder) for name, folder in there.items()}
    missing = [name for name in study.file.sessions if name not in there]
    texts = [f"session {name}\n{text}" for name, (_, text) in results.items()]
    texts += [f"session {name}\nno log at {study.log_of(name)}\nNOT SOUND" for name in missing]
    shown = {name: result for name, (result, _) in results.items()}
    _print({"sessions": shown, "missing": missing}, "\n\n".join(texts) or "no session yet", as_json=as_json)
    if missing or not all(result["sound"] for result in shown.values()):
        raise typer.Exit(1)


def _verified(log: Path, expect: str = "") -> tuple[dict[str, Any], str]:
    """Verify one log, and describe the result for a program and for a person."""
    contents = read(log)
    faults = [asdict(fault) for fault in contents.faults]
    if expect and expect != contents.head:
        what = f"the head is {contents.head}, not {expect}: entries were added since it was cited, or it is another log"
        faults.append({"file": "", "line": 0, "what": what, "harmless": False})
    result = {
        "sound": not faults,
        "head": contents.head,
        "entries": len(contents.entries),
        "erased": sum(e.record is None for e in contents.entries) - contents.half_erased,
        "sealed": contents.sealed,
        "schema": contents.schema,
        "faults": faults,
    }
    lines = [f"{f['file']}:{f['line']}: {f['what']}" if f["file"] else str(f["what"]) for f in faults]
    ended = "recording ended" if contents.sealed else "recording not ended"
    summary = (
        f"{count_of(len(contents.entries), 'entry', 'entries')}, "
        f"{result['erased']} erased, schema {contents.schema}, {ended}"
    )
    return result, "\n".join([*lines, summary, f"head {contents.head}", "NOT SOUND" if faults else "sound"])


@app.command("bag")
def bag_(
    log: LogPath,
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="Bag of the session's recording.")],
) -> None:
    """Add the name, hash and offset of a session's bag to a log that a node wrote live."""
    named = name_bag(log, bag, WallClock())
    print(f"{named.name}  sha256 {named.sha256}  begins at {named.offset_ns} ns")


@app.command("migrate")
def migrate_(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Log with an older schema; left unchanged.")],
    new: Annotated[Path, typer.Argument(metavar="LOG", help="Folder to write the new log into.")],
) -> None:
    """Write an older log into a new one in the present schema, which names the old one's head."""
    print(f"{new}: {count_of(migrate(old, new), 'entry', 'entries')}")


@app.command("recover")
def recover_(
    old: Annotated[Path, typer.Argument(metavar="LOG", help="Damaged log; left unchanged.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Folder to write the new log into.")],
    as_json: AsJson = False,
) -> None:
    """Copy the valid part of a damaged log to a new log that lists the losses. Exits with 1 if data was lost."""
    done = recover_log(old, new)
    told = [*(f"lost: {what}" for what in done.lost), f"{new}: {count_of(done.entries, 'entry', 'entries')}"]
    _print(asdict(done), "\n".join(told), as_json=as_json)
    if done.lost:
        raise typer.Exit(1)


@app.command()
def explain(
    source: SourcePath,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="Event id, or a prefix of it.")],
    as_json: AsJson = False,
) -> None:
    """Explain why an event was flagged: the measured values, their thresholds and their sources."""
    recording = open_recording(source)
    found = [flag for flag in recording.flags if flag.event_id.startswith(event)]
    if len(found) != 1:
        raise TactfulError(f"{source}: {len(found)} events begin with {event!r}; give more of the id, or another")
    (flag,) = found
    if as_json:
        print_json(to_plain(flag))
        return
    print(f"{flag.cue_id or 'judge'}: {flag.severity.value} {flag.polarity.value}, probability {flag.probability:.2f}")
    print(f"{', '.join(a.value for a in flag.attributes)}, at {ns_to_s(flag.onset_ns - recording.start_ns):.1f} s")
    print(flag.rationale)
    for fact in flag.evidence:
        limit = f", threshold {fact.threshold:g}" if fact.threshold is not None else ""
        print(f"  {fact.measure}: {fact.value:g} {fact.unit}{limit}".rstrip())
    if flag.correction:
        print(f"better: {flag.correction}")
    made = flag.provenance
    print(f"window {made.window_digest[:16] or 'unknown'}, config {made.config_sha256[:16] or 'unknown'}")


def log_session(
    bag: Path,
    folder: Path,
    info: SessionInfo,
    redactor: Redactor,
    hearing: WhisperConfig,
    *,
    watch: bool | None,
    topic: str,
    robot_topics: Sequence[str],
    words_topics: Sequence[str],
    as_json: bool,
) -> None:
    """Log a bag, and print what the log holds."""
    if watch is None:
        with BagReader(bag) as reader:
            watch = not holds_flags(reader)
    if (robot_topics or words_topics) and not watch:
        complain(
            "--robot-topic, --words-topic: not used, because the bag's flags are logged; run the monitor with --watch"
        )
    if watch:
        table = ThresholdTable.shipped()
        info = replace(info, table_version=table.version, config_sha256=table.sha256())
    monitored = partial(
        monitored_records,
        topic=topic,
        whisper=hearing,
        robot_topics=robot_topics,
        words_topics=words_topics,
    )
    count, unreadable = log_bag(bag, folder, info, WallClock(), redactor, monitored if watch else None)
    recording = open_recording(folder)
    result = {
        "log": str(folder),
        "entries": count,
        "unreadable": unreadable,
        "flags": len(recording.flags),
        "monitored_records": watch,
        "head": recording.head,
    }
    _print(
        result,
        f"{folder}: {count_of(count, 'entry', 'entries')}, "
        f"{count_of(len(recording.flags), 'flag')}\nhead {recording.head}",
        as_json=as_json,
    )
    if unreadable:
        err.print(f"{count_of(unreadable, 'message')} of the bag cannot be read, and left out of the log")
    if not recording.flags and not watch:
        err.print(f"{bag} holds no flags: leave --as-recorded out, and the monitor runs over it.")
    elif not (recording.utterances or recording.robot_speech or recording.presences):
        err.print(f"{bag} holds nothing to watch: no speech, sound, camera or people.")
    elif not recording.flags:
        err.print(f"The monitor flagged nothing in {bag}.")


def _print(result: dict[str, Any], text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        print(text)
