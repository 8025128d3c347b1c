"""Bring a session into a study: check it against study.yaml, and complete study.yaml from it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from norm_core.records.record import record
from norm_core.runtime.config import check_config
from norm_core.runtime.time import Clock
from norm_monitor.session_log.reader import read
from norm_monitor.session_log.recording import open_recording
from norm_monitor.session_log.schema import Consent, Participant, SessionInfo
from norm_monitor.session_log.study_file import PlannedSession, StudyFile
from norm_monitor.session_log.study_folder import STUDY_FILE, Study, StudyError, relative_path
from norm_monitor.session_log.writer import StudyLog, lock_log, recover_log


def plan_session(
    study: Study,
    name: str,
    *,
    condition: str = "",
    participants: tuple[Participant, ...] = (),
    bag: Path | None = None,
    media: tuple[str, ...] = (),
) -> PlannedSession:
    """Join the facts about a session with study.yaml. Raises StudyError where they disagree."""
    planned = study.file.sessions.get(name, PlannedSession())
    stated_fields: dict[str, object] = {
        "condition": condition,
        "participants": {p.pseudonym: p.person_ids for p in participants},
        "bag": relative_path(bag, study.folder) if bag else "",
        "media": tuple(relative_path(Path(path), study.folder) for path in media),
    }
    for field, value in stated_fields.items():
        if value and getattr(planned, field) not in (value, PlannedSession.model_fields[field].default):
            raise StudyError(
                f"session {name}: {STUDY_FILE} says {field} {getattr(planned, field)}, not {value}: correct one"
            )
    session = planned.model_copy(update={field: value for field, value in stated_fields.items() if value})
    if session.condition and study.file.conditions:
        study.check_known("condition", [session.condition], study.file.conditions)
    study.check_known("participant", session.participants, study.file.participants)
    for pseudonym in session.participants:
        if Consent.EVERYTHING in study.file.participants[pseudonym].withdrawn:
            raise StudyError(f"session {name}: {pseudonym} withdrew everything; leave the session out")
    _check_session(study, name, session)  # the name is that of a folder, so it is checked first
    return session


def describe_session(study: Study, name: str, session: PlannedSession, software_version: str) -> SessionInfo:
    """Describe a session for the log of its bag."""
    file = _check_session(study, name, session)
    return SessionInfo(
        study=file.study,
        session=name,
        condition=session.condition,
        participants=file.participants_of(name),
        retention_days=file.retention_days or None,
        media=tuple(str((study.folder / path).resolve()) for path in session.media),
        software_version=software_version,
    )


def _check_session(study: Study, name: str, session: PlannedSession) -> StudyFile:
    """Check study.yaml with a session in it, and return it."""
    plain = study.file.model_dump() | {"sessions": {**study.file.sessions, name: session}}
    return check_config(StudyFile, plain, str(study.path))


def choose_log_folder(study: Study, name: str, session: PlannedSession) -> Path:
    """Choose the folder for a session's new log. Raises StudyError if a log is there."""
    folder = study.folder / (session.log or f"sessions/{name}")
    if folder.exists() and any(folder.iterdir()):
        raise StudyError(f"{folder}: is there already; a session has one log: give another --session")
    return folder


@record
class AddedLog:
    """The session of an added log. Of a damaged log, also the losses, and where it lies unchanged."""

    session: str
    lost: tuple[str, ...] = ()
    damaged: str = ""


def add_log(
    study: Study,
    log: Path,
    clock: Clock,
    *,
    name: str = "",
    condition: str = "",
    participants: tuple[Participant, ...] = (),
) -> AddedLog:
    """Move a log into the study, unless it lies there, and note it in study.yaml. Of a damaged log, add what is valid.

    The damaged log stays as it is. If the study holds it as this session's, it goes aside.
    """
    with _recover_if_damaged(study, log, name) as (valid, lost):
        info = open_recording(valid).info
        if info.study != study.file.study:
            raise StudyError(
                f"{log}: is a log of study {info.study}, not of {study.file.study}; name the folder of that study"
            )
        if name and name != info.session:
            raise StudyError(f"{log}: is the log of session {info.session}, not {name}; leave --session out")
        session = plan_session(study, info.session, condition=info.condition, participants=info.participants)
        if condition and info.condition and condition != info.condition:
            raise StudyError(f"{log}: is of condition {info.condition}, not {condition}; leave --condition out")
        if participants and info.participants:
            raise StudyError(f"{log}: names its participants itself; leave --participant out")
        session = plan_session(
            study,
            info.session,
            condition=condition or session.condition,
            participants=participants or info.participants,
        )
        target = study.folder / (session.log or f"sessions/{info.session}")
        damaged = log if valid != log else None
        if damaged and target.resolve() == log.resolve():
            damaged = _set_aside(log)
        if target.resolve() != valid.resolve():
            _check_free(target, log)
            with StudyLog.resume(valid, clock):  # so that no node writes it meanwhile
                if target.exists():
                    target.rmdir()
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.move(valid, target)
    note_session(study, info.session, session)
    return AddedLog(session=info.session, lost=lost, damaged=str(damaged or ""))


@contextmanager
def _recover_if_damaged(study: Study, log: Path, name: str) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield the log, or a new one with the valid entries of a damaged log, and the losses."""
    if all(fault.harmless for fault in read(log).faults):
        yield log, ()
        return
    with TemporaryDirectory(dir=study.folder, prefix=".recovered-") as folder:
        recovered = Path(folder) / "log"
        yield recovered, recover_log(log, recovered, study=study.file.study, session=name).lost


def _set_aside(log: Path) -> Path:
    """Rename a damaged log, so that a recovered one replaces it. Raises LogError while a node writes it."""
    aside = log.with_name(f"{log.name}.damaged")
    if aside.exists():
        raise StudyError(f"{aside}: an earlier damaged log of this session is there; move it out of the study")
    lock = lock_log(log)
    try:
        log.rename(aside)
    finally:
        os.close(lock)
    return aside


def _check_free(folder: Path, log: Path) -> None:
    """Refuse a second log of a session, and say what to do with the first."""
    if folder.exists() and any(folder.iterdir()):
        raise StudyError(
            f"{folder}: is there already; a session has one log: move it out of the study if {log} is to take its "
            "place, or log that session anew under another name"
        )


def note_session(study: Study, name: str, session: PlannedSession) -> None:
    """Write a session into study.yaml, unless it says the same already."""
    if study.file.sessions.get(name) != session:
        study.set(("sessions", name), session.model_dump(mode="json", exclude_defaults=True))


def set_consent(study: Study, participant: str, **consents: bool | None) -> None:
    """Add a participant with these consents, or change them. None leaves one as it is."""
    entry = study.file.participants.get(participant)
    stated = {name: value for name, value in consents.items() if value is not None}
    if entry is None:
        study.set(("participants", participant), stated)
    else:
        for name, value in stated.items():
            if value and entry.withdrawn.keys() & {Consent(name), Consent.EVERYTHING}:
                raise StudyError(
                    f"{participant}: withdrew {name}; if they consent anew, take that out of {study.path} and say why"
                )
        study.set_all([(("participants", participant, name), value) for name, value in stated.items()])
