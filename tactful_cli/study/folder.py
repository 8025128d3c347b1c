"""`tactful study init, add, remove, consent, status`: a whole study in one folder."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.table import Table

from norm_core import __version__
from norm_core.bags.listing import is_bag
from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S, WallClock
from norm_core.runtime.wording import count_of
from norm_monitor.senses.speech.whisper import WhisperConfig
from study_desk.log.reader import is_log
from study_desk.log.schema import Consent
from study_desk.log.session_config import participants_of, redactor_of
from study_desk.privacy.key_file import KeyFile
from study_desk.study.add_session import (
    add_log,
    free_log_folder,
    note_session,
    planned_session,
    session_info,
    set_consent,
)
from study_desk.study.removal import PlannedRemoval, plan_removal, remove_session
from study_desk.study.status import SessionStatus, StudyStatus, study_status
from study_desk.study.study_folder import Study, init_study
from tactful_cli.console import err, print_json, print_table
from tactful_cli.study.logs import AudioTopic, KeysToRemove, Media, Policy, SessionPeople, Watch, log_session
from tactful_cli.verb import AsJson, Language, RobotTopics, WhisperModel, WordsTopics

app = typer.Typer()

StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of a study.")]
ParticipantArgument = Annotated[str, typer.Argument(metavar="PSEUDONYM", help="Pseudonym of the participant.")]


@app.command()
def init(  # noqa: PLR0917
    folder: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder to make the study in.")],
    name: Annotated[str, typer.Option(help="Name of the study; default: that of the folder.")] = "",
    condition: Annotated[list[str] | None, typer.Option(help="Condition of sessions. Repeatable.")] = None,
    coder: Annotated[list[str] | None, typer.Option(help="Pseudonym of a coder. Repeatable.")] = None,
    retention_days: Annotated[
        int, typer.Option(min=0, help="Days after which `study expire` empties the logs; 0: never.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of what is drawn for the study.")] = 0,
) -> None:
    """Make a study's folder with a commented study.yaml, which its owner alone can read."""
    study = init_study(
        folder,
        name or folder.resolve().name,
        condition or (),
        coder or (),
        retention_days=retention_days,
        seed=seed,
    )
    print(study.path)


@app.command()
def add(  # noqa: PLR0917
    folder: StudyPath,
    source: Annotated[Path, typer.Argument(metavar="LOG|BAG", help="Log to move into the study, or bag to log there.")],
    session: Annotated[str, typer.Option(help="Name of the session; needed for a bag.")] = "",
    condition: Annotated[str, typer.Option(help="Condition of the session.")] = "",
    participant: SessionPeople = None,
    keys: KeysToRemove = None,
    policy: Policy = None,
    media: Media = None,
    watch: Watch = None,
    topic: AudioTopic = "",
    robot_topic: RobotTopics = None,
    words_topic: WordsTopics = None,
    language: Language = "en",
    whisper: WhisperModel = "",
    as_json: AsJson = False,
) -> None:
    """Add a session to a study. Consents and retention come from study.yaml."""
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
    log_session(
        source,
        free_log_folder(study, session, planned),
        info,
        redactor_of(policy, keys, info.participants),
        WhisperConfig(model=whisper, language=language),
        watch=watch,
        topic=topic,
        robot_topics=robot_topic or (),
        words_topics=words_topic or (),
        as_json=as_json,
    )
    note_session(study, session, planned)


@app.command()
def remove(
    folder: StudyPath,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Name of the session.")],
    reason: Annotated[str, typer.Option(help="Reason to note in the study's folder.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove a session with its log, codings and exports for good, after listing them. It can then be added anew.

    Its bag and media stay. A line in the study's folder notes the removal.
    """
    study = Study(folder)
    planned = plan_removal(study, session)
    if as_json and not yes:
        raise TactfulError(f"session {session}: --json asks nothing; give --yes to remove it")
    if not as_json:
        _print_removal(planned)
    if not yes:
        typer.confirm("Remove this for good? (--yes leaves this question out)", abort=True)
    outputs = remove_session(study, planned, WallClock(), reason)
    if as_json:
        print_json(to_plain(planned) | {"outputs": to_plain(outputs)})
    else:
        print(f"session {session} is removed")
    for path in outputs.changed:
        err.print(f"{path}: was changed since it was made, so it stays", markup=False, soft_wrap=True)
    for path in outputs.outside:
        err.print(f"{path}: lies outside the study's folder, so it stays", markup=False, soft_wrap=True)


def _print_removal(planned: PlannedRemoval) -> None:
    counts = ", ".join(f"{count} {kind}" for kind, count in planned.entries.items()) or "no entries"
    print(f"session {planned.session}: {counts}; coded by {', '.join(planned.coders) or 'nobody'}")
    for path in planned.files:
        print(f"goes: {path}")
    for path in planned.outputs:
        print(f"goes, unless it was changed since: {path}")
    for path in planned.stays:
        print(f"stays: {path}")


@app.command()
def consent(
    folder: StudyPath,
    participant: ParticipantArgument,
    words: Annotated[bool | None, typer.Option("--words/--no-words", help="Consent to a transcript.")] = None,
    clips: Annotated[
        bool | None, typer.Option("--clips/--no-clips", help="Consent to clips of face and voice.")
    ] = None,
    publication: Annotated[
        bool | None, typer.Option("--publication/--no-publication", help="Consent to share pseudonymised data.")
    ] = None,
) -> None:
    """Add a participant to study.yaml, or change what they consent to. Without an option: words alone."""
    study = Study(folder)
    set_consent(study, participant, words=words, clips=clips, publication=publication)
    kept = study.file.participants[participant]
    given = [what.value for what in (Consent.WORDS, Consent.CLIPS, Consent.PUBLICATION) if kept.allows(what)]
    print(f"{participant}: {', '.join(given) or 'consents to nothing but taking part'}")


@app.command()
def status(
    folder: Annotated[Path, typer.Argument(metavar="[STUDY]", help="Folder of a study.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Show each session's log, consents and coders. Exits with 1 if anything is owed, due or wrong."""
    found = study_status(Study(folder), WallClock())
    if as_json:
        print_json(to_plain(found) | {"complete": found.is_complete})
    else:
        _print_status(found)
    if not found.is_complete:
        raise typer.Exit(1)


def _print_status(found: StudyStatus) -> None:
    table = Table(title=f"study {found.study}", title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for name in ("session", "condition", "log", "participants", "coded by", "owed by", "kept until"):
        table.add_column(name, overflow="fold")
    for session in found.sessions:
        table.add_row(*_row(session))
    print_table(table)
    for session in found.sessions:
        for problem in session.problems:
            err.print(f"{session.name}: {problem}", markup=False, soft_wrap=True)
        for conflict in session.conflicts:
            err.print(f"{session.name}: reviewers disagree on {conflict}", markup=False, soft_wrap=True)
    unlisted = sum((Counter(session.unlisted_codes) for session in found.sessions), Counter[str]())
    for code, number in unlisted.items():
        sessions = ", ".join(session.name for session in found.sessions if code in session.unlisted_codes)
        err.print(
            f"code {code}: {count_of(number, 'label')} in {sessions}, but no such code in study.yaml: "
            "add it to codes, or leave it as a coder's own word",
            markup=False,
            soft_wrap=True,
        )
    for stone in found.removed:
        day = datetime.fromtimestamp(stone.wall_ns // NS_PER_S, UTC).date().isoformat()
        why = f": {stone.reason}" if stone.reason else ""
        err.print(f"session {stone.session} was removed on {day}{why}", markup=False, soft_wrap=True)
    for problem in found.problems:
        err.print(problem, markup=False, soft_wrap=True)
    owed = sum(len(session.owed_by) for session in found.sessions)
    wrong = len(found.problems) + sum(len(session.problems) for session in found.sessions)
    print(f"{count_of(owed, 'coding')} owed, {count_of(wrong, 'problem')}, {count_of(found.outputs, 'file')} made")
    if owed:
        err.print(f"A coder who found nothing: {PROGRAM} study import LOG --coder CODER --complete")


def _row(session: SessionStatus) -> tuple[str, ...]:
    end_ns = session.retention_end_ns
    return (
        session.name,
        session.condition,
        session.log,
        "; ".join(f"{name}: {', '.join(given) or 'nothing'}" for name, given in session.participants.items()),
        ", ".join(_coder(name, session.revised.get(name, 0)) for name in session.coded_by),
        ", ".join(session.owed_by),
        _until(end_ns, session.retention_by_log),
    )


def _until(end_ns: int | None, by_log: bool) -> str:
    if end_ns is None:
        return "no limit"
    day = datetime.fromtimestamp(end_ns // NS_PER_S, UTC).date().isoformat()
    return f"{day} (by its log)" if by_log else day


def _coder(name: str, revisions: int) -> str:
    return f"{name} (revised {count_of(revisions, 'time')})" if revisions else name
