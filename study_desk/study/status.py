"""The state of a study: each session's log, who owes what, what is due, and what is stored by kind and purpose."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import Clock
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.reader import LogContents, is_log, read
from norm_monitor.session_log.recording import (
    from_log,
    incomplete_revisions,
    is_emptied,
    reason_missing,
    revision_counts,
)
from norm_monitor.session_log.schema import Consent, Kind, SessionInfo, Tombstone, Withdrawal, parse_media
from norm_monitor.session_log.study_file import PlannedSession
from norm_monitor.session_log.study_folder import STUDY_FILE, Study, is_study
from study_desk.study.frozen_plan import PLANS
from study_desk.study.outputs import KEY_FILE, LEFT, OUTPUTS, PACK_GUIDE, left_files, outputs_of
from study_desk.study.retention import retention_of
from study_desk.study.withdrawal import REMOVED, RemovedSession, removed_sessions


@record
class SessionStatus:
    """One session: its log is intact, open (the recording was not ended), damaged or missing."""

    name: str
    condition: str
    log: str
    head: str
    participants: dict[str, tuple[str, ...]]  # by pseudonym: what they consent to
    coded_by: tuple[str, ...]
    owed_by: tuple[str, ...]
    revised: dict[str, int]  # by coder: how often they replaced their coding
    retention_end_ns: int | None
    retention_by_log: bool  # the days that its log states, not those of study.yaml
    problems: tuple[str, ...]
    hidden_from_coders: str = ""  # why, if somebody owes a coding


@record
class StudyStatus:
    """All sessions, and problems of the study as a whole."""

    study: str
    sessions: tuple[SessionStatus, ...]
    problems: tuple[str, ...]
    outputs: int
    removed: tuple[RemovedSession, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether nothing is owed, due or wrong."""
        return not self.problems and not any(s.owed_by or s.problems for s in self.sessions)


def study_status(study: Study, clock: Clock) -> StudyStatus:
    """Look at every session of a study, and change nothing."""
    return StudyStatus(
        study=study.file.study,
        sessions=tuple(_session(study, name, clock) for name in study.file.sessions),
        problems=tuple(_problems(study)),
        outputs=sum(output.kind != LEFT for output in outputs_of(study)),
        removed=removed_sessions(study),
    )


def _problems(study: Study) -> Iterator[str]:
    if not study.file.sessions:
        yield f"no session yet: add one with {PROGRAM} study add"
    log_folders = {study.log_of(name).resolve() for name in study.file.sessions}
    for folder in sorted((study.folder / "sessions").glob("*")):
        if folder.is_dir() and is_log(folder) and folder.resolve() not in log_folders:
            yield f"{folder}: a log that study.yaml does not name: add it with {PROGRAM} study add"
    for path in left_files(study):
        yield f"{path}: may hold words or a name that a participant withdrew: erase it"
    conditions = {session.condition for session in study.file.sessions.values()}
    if unused := [condition for condition in study.file.conditions if condition not in conditions]:
        yield f"no session yet in condition {', '.join(unused)}"


def _session(study: Study, name: str, clock: Clock) -> SessionStatus:
    session, log = study.session(name), study.log_of(name)
    problems: list[str] = []
    contents = read(log) if is_log(log) else None
    state = _state(contents)
    if state == "missing":
        problems.append(f"no log at {log}: add it with {PROGRAM} study add, or correct its path if it moved")
    if state == "damaged":
        problems.append(f"{log} is damaged: see {PROGRAM} study status {log}")
    if state == "open":
        problems.append("its recording was not ended: stop the node, or take it as it is")
    if study.file.conditions and not session.condition:
        problems.append("it has no condition: give it one in study.yaml")
    coded: frozenset[str] = frozenset()
    retention = None
    records = [entry.record for entry in contents.entries] if contents else []
    if contents and state != "damaged":
        try:
            recording = from_log(log)
            coded = recording.coders
            problems += study.disagreements(name, recording.info)
        except TactfulError as error:
            problems.append(str(error))
        problems += _withdrawals(study, name, contents)
        problems += [
            f"the revised coding by {coder} has {written} of {announced} labels: import it again with --replace"
            for coder, (written, announced) in incomplete_revisions(records).items()
            if not any(isinstance(record, Tombstone) for record in records)
        ]
        retention = retention_of(contents.entries, study.file.retention_days)
        if retention and clock.now_ns() >= retention.end_ns and not is_emptied(contents.entries):
            problems.append(
                f"its {count_of(retention.days, 'day')} of retention ended: "
                f"run {PROGRAM} study withdraw {study.folder} --expired"
            )
    if strangers := sorted(coded - {*study.file.coders}):
        problems.append(f"coded by {', '.join(strangers)}, no coder of study.yaml: add them, or correct the name")
    emptied = contents is not None and is_emptied(contents.entries)
    if not emptied and not _asked_to_erase(study, session):
        files = [session.bag, *(parse_media(text).path for text in session.media)]
        problems += [f"{path}: is not there" for path in files if path and not (study.folder / path).exists()]
    is_missing = contents is not None and reason_missing(contents.entries)
    owed = () if is_missing else tuple(coder for coder in study.file.coders_of(name) if coder not in coded)
    hidden = ""
    if owed and (reason := study.file.hidden_from_coders(session.participants)):
        hidden = f"{reason}, so no pack and no coding page shows it"
    return SessionStatus(
        name=name,
        condition=session.condition,
        log="emptied" if emptied and state == "intact" else state,
        head=contents.head if contents else "",
        participants={pseudonym: study.file.participants[pseudonym].allowed for pseudonym in session.participants},
        coded_by=tuple(sorted(coded)),
        owed_by=owed,
        revised=revision_counts(records),
        retention_end_ns=retention.end_ns if retention else None,
        retention_by_log=retention is not None and retention.days != study.file.retention_days,
        problems=tuple(problems),
        hidden_from_coders=hidden,
    )


def _state(contents: LogContents | None) -> str:
    if contents is None:
        return "missing"
    if contents.faults:
        return "damaged"
    return "intact" if contents.sealed else "open"


def _withdrawals(study: Study, name: str, contents: LogContents) -> Iterator[str]:
    """Find withdrawals in study.yaml that are not carried out, and words that were kept without consent."""
    records = [entry.record for entry in contents.entries]
    info = next((r for r in records if isinstance(r, SessionInfo)), None)
    done = {(r.participant, c) for r in records if isinstance(r, Withdrawal) for c in r.consents}
    pseudonyms = {p.pseudonym for p in info.participants if p.transcript} if info else set()
    for pseudonym in study.session(name).participants:
        participant = study.file.participants[pseudonym]
        again = f"run {PROGRAM} study withdraw {study.folder} {pseudonym}"
        for consent in participant.withdrawn:
            if not {(pseudonym, consent), (pseudonym, Consent.EVERYTHING)} & done:
                yield f"{pseudonym} withdrew {consent.value}, which is not carried out here: {again} --{consent.value}"
        withheld = {(pseudonym, Consent.WORDS), (pseudonym, Consent.EVERYTHING)} & done
        if not participant.words and pseudonym in pseudonyms and not withheld:
            yield f"its log keeps words of {pseudonym}, who did not consent: {again} --words"


def _asked_to_erase(study: Study, session: PlannedSession) -> bool:
    withdrawn = {consent for name in session.participants for consent in study.file.participants[name].withdrawn}
    return bool(withdrawn - {Consent.PUBLICATION, Consent.CODERS})


WHY = {
    Kind.SESSION: "whose session it is, by pseudonym, and how it was made",
    Kind.FLAG: "the errors and competences that the study is about, with what was measured",
    Kind.DECISION: "what the robot was advised to do",
    Kind.UTTERANCE: "the words that a flag is judged by, names taken out",
    Kind.ROBOT_SPEECH: "when the robot spoke",
    Kind.PRESENCE: "how many faces were seen and where they looked; no picture, no identity, no emotion",
    Kind.REVIEW: "coders' verdicts on flags",
    Kind.LABEL: "coders' labels",
    Kind.LABEL_REMOVAL: "that a coder took a label back",
    Kind.CODING: "which coders coded the whole session",
    Kind.TOMBSTONE: "that something was erased, for whom and why",
    Kind.RECOVERED: "that a writer died, or what of a damaged log was lost",
    Kind.CLOSED: "that the recording was complete",
    Kind.BAG: "which bag the session was recorded in",
    Kind.WITHDRAWAL: "what a participant withdrew",
}


@record
class StoredItem:
    """One kind of data in one place, and why it is kept."""

    place: str
    kind: str
    count: int
    why: str


def stored_items(path: Path) -> Iterator[StoredItem]:
    """List the contents of a log, or of a study with its logs, and every other file in its folder."""
    logs = [log for _, log in Study(path).logs()] if is_study(path) else [path]
    for log in logs:
        for kind, count in Counter(entry.kind for entry in read(log).entries if entry.record is not None).items():
            yield StoredItem(place=str(log), kind=kind.value, count=count, why=WHY[kind])
    yield from _files(path)


def _files(path: Path) -> Iterator[StoredItem]:
    """List files by type. Names foreign files as such. Of a study, leave out the logs, which are listed apart."""
    study = Study(path) if is_study(path) else None
    logs = {log.resolve() for _, log in study.logs()} if study else set()
    outputs = {(path / output.path).resolve(): output for output in outputs_of(study)} if study else {}
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if not file.is_file() or file.name == ".lock" or file.resolve().parent in logs:
            continue
        output = outputs.get(file.resolve())
        if study and file.parent == path and file.name in _OF_STUDY:
            why = _OF_STUDY[file.name]
        elif output is not None:
            whose = f"session {output.session}" if output.session else "all sessions"
            why = "of a coder's pack" if output.kind == PACK_GUIDE else f"an export or a report of {whose}"
        else:
            why = _BY_ENDING.get(file.suffix, "not of the study desk: look into it")
        yield StoredItem(place=str(file), kind="file", count=1, why=why)


_BY_ENDING = {".jsonl": "the log itself", ".torn": "half an entry that a dying writer left"}
_OF_STUDY = {
    STUDY_FILE: "sessions, participants by pseudonym, and their consents",
    OUTPUTS: "which exports and reports were made",
    REMOVED: "which sessions were removed, when and why",
    PLANS: "what was planned, and when it was frozen",
    KEY_FILE: "which label of the published dataset stands for whom",
}
