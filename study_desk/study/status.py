"""The state of a study: each session's log, who owes what, and what is due."""

from collections.abc import Iterator

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import Clock
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.reader import LogContents, is_log, read
from norm_monitor.session_log.recording import (
    count_revisions,
    explain_missing,
    find_incomplete_revisions,
    is_emptied,
    load_log,
)
from norm_monitor.session_log.schema import CONSENSUS, Consent, SessionInfo, Tombstone, Withdrawal, parse_media
from norm_monitor.session_log.study_file import PlannedSession
from norm_monitor.session_log.study_folder import Study
from study_desk.study.outputs import list_left_files
from study_desk.study.removal import RemovedSession, list_removed_sessions
from study_desk.study.retention import find_retention


@record
class SessionStatus:
    """One session: its log is intact, open (the recording was not ended), damaged, emptied or missing."""

    name: str
    condition: str
    log: str
    head: str
    participants: dict[str, tuple[str, ...]]  # by pseudonym: what they consent to
    coded_by: tuple[str, ...]
    owed_by: tuple[str, ...]
    revised: dict[str, int]  # by coder: how often they replaced their coding
    retention_end_ns: int | None
    problems: tuple[str, ...]
    explain_hidden: str = ""  # why, if somebody owes a coding


@record
class StudyStatus:
    """All sessions, and problems of the study as a whole."""

    study: str
    sessions: tuple[SessionStatus, ...]
    problems: tuple[str, ...]
    removed: tuple[RemovedSession, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether nothing is owed, due or wrong."""
        return not self.problems and not any(s.owed_by or s.problems for s in self.sessions)


def check_study(study: Study, clock: Clock) -> StudyStatus:
    """Look at every session of a study, and change nothing."""
    return StudyStatus(
        study=study.file.study,
        sessions=tuple(_check_session(study, name, clock) for name in study.file.sessions),
        problems=tuple(_find_study_problems(study)),
        removed=list_removed_sessions(study),
    )


def _find_study_problems(study: Study) -> Iterator[str]:
    if not study.file.sessions:
        yield f"no session yet: add one with {PROGRAM} study add"
    log_folders = {study.log_of(name).resolve() for name in study.file.sessions}
    for folder in sorted((study.folder / "sessions").glob("*")):
        if folder.is_dir() and is_log(folder) and folder.resolve() not in log_folders:
            yield f"{folder}: a log that study.yaml does not name: add it with {PROGRAM} study add"
    for path in list_left_files(study):
        yield f"{path}: may hold words or a name that a participant withdrew: erase it"
    conditions = {session.condition for session in study.file.sessions.values()}
    if unused := [condition for condition in study.file.conditions if condition not in conditions]:
        yield f"no session yet in condition {', '.join(unused)}"


def _check_session(study: Study, name: str, clock: Clock) -> SessionStatus:
    """Read a session's log, and collect its problems and the codings that are owed."""
    session, log = study.session(name), study.log_of(name)
    contents = read(log) if is_log(log) else None
    state = _name_state(contents)
    problems = [*_find_state_problems(study, session, log.as_posix(), state)]
    coders: frozenset[str] = frozenset()
    retention = None
    records = [entry.record for entry in contents.entries] if contents else []
    if contents and state != "damaged":
        try:
            recording = load_log(log)
            coders = recording.coders
            problems += study.find_disagreements(name, recording.info)
        except TactfulError as error:
            problems.append(str(error))
        problems += _find_open_withdrawals(study, name, records)
        problems += [
            f"the revised coding by {coder} has {written} of {announced} labels: import it again with --replace"
            for coder, (written, announced) in find_incomplete_revisions(records).items()
            if not any(isinstance(record, Tombstone) for record in records)
        ]
        retention = find_retention(contents.entries, study.file.retention_days)
        if retention and clock.now_ns() >= retention.end_ns and not is_emptied(contents.entries):
            problems.append(
                f"its {count_of(retention.days, 'day')} of retention ended: "
                f"run {PROGRAM} study withdraw {study.folder} --expired"
            )
    if strangers := sorted(coders - {*study.file.coders, CONSENSUS}):
        problems.append(f"coded by {', '.join(strangers)}, no coder of study.yaml: add them, or correct the name")
    emptied = contents is not None and is_emptied(contents.entries)
    if not emptied and not _is_erasure_due(study, session):
        files = [session.bag, *(parse_media(text).path for text in session.media)]
        problems += [f"{path}: is not there" for path in files if path and not (study.folder / path).exists()]
    is_missing = contents is not None and explain_missing(contents.entries)
    owed_by = () if is_missing else tuple(coder for coder in study.file.coders_of(name) if coder not in coders)
    hidden = ""
    if owed_by and (reason := study.file.explain_hidden(session.participants)):
        hidden = f"{reason}, so no pack shows it"
    return SessionStatus(
        name=name,
        condition=session.condition,
        log="emptied" if emptied and state == "intact" else state,
        head=contents.head if contents else "",
        participants={pseudonym: study.file.participants[pseudonym].allowed for pseudonym in session.participants},
        coded_by=tuple(sorted(coders)),
        owed_by=owed_by,
        revised=count_revisions(records),
        retention_end_ns=retention.end_ns if retention else None,
        problems=tuple(problems),
        explain_hidden=hidden,
    )


def _name_state(contents: LogContents | None) -> str:
    if contents is None:
        return "missing"
    if contents.faults:
        return "damaged"
    return "intact" if contents.sealed else "open"


def _find_state_problems(study: Study, session: PlannedSession, log: str, state: str) -> Iterator[str]:
    if state == "missing":
        yield f"no log at {log}: add it with {PROGRAM} study add, or correct its path if it moved"
    if state == "damaged":
        yield f"{log} is damaged: see {PROGRAM} study status {log}"
    if state == "open":
        yield "its recording was not ended: stop the node, or take it as it is"
    if study.file.conditions and not session.condition:
        yield "it has no condition: give it one in study.yaml"


def _find_open_withdrawals(study: Study, name: str, records: list[object]) -> Iterator[str]:
    """Find withdrawals in study.yaml that are not carried out, and words that were kept without consent."""
    info = next((r for r in records if isinstance(r, SessionInfo)), None)
    done = {(r.participant, consent) for r in records if isinstance(r, Withdrawal) for consent in r.consents}
    transcribed = {p.pseudonym for p in info.participants if p.transcript} if info else set()
    for pseudonym in study.session(name).participants:
        participant = study.file.participants[pseudonym]
        command = f"run {PROGRAM} study withdraw {study.folder} {pseudonym}"
        for consent in participant.withdrawn:
            if not {(pseudonym, consent), (pseudonym, Consent.EVERYTHING)} & done:
                problem = f"{pseudonym} withdrew {consent.value}, which is not carried out here"
                yield f"{problem}: {command} --{consent.value}"
        withheld = {(pseudonym, Consent.WORDS), (pseudonym, Consent.EVERYTHING)} & done
        if not participant.words and pseudonym in transcribed and not withheld:
            yield f"its log keeps words of {pseudonym}, who did not consent: {command} --words"


def _is_erasure_due(study: Study, session: PlannedSession) -> bool:
    """Whether a participant withdrew something that the bag and the media hold, so that their absence is right."""
    withdrawn = {consent for name in session.participants for consent in study.file.participants[name].withdrawn}
    return bool(withdrawn - {Consent.CODERS})
