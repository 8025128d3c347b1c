"""Carry out a withdrawal, the end of retention, or the removal of a session, in all logs and outputs of a study."""

import os
import shutil
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path

from norm_core.records.json_codec import to_json
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, Clock
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.reader import is_log, read, read_sound
from norm_monitor.session_log.redact import NAME, NamesToRemove
from norm_monitor.session_log.schema import Coding, Consent, Label, SessionInfo, Withdrawal, parse_media
from norm_monitor.session_log.study_folder import Study, StudyError, append_line, read_lines
from norm_monitor.session_log.text_search import Forbidden, TextSearch, WordRuns, search_folder
from norm_monitor.session_log.writer import StudyLog, lock_log
from study_desk.study.erase import (
    PlannedErasure,
    erase,
    expire,
    plan_erasure,
    runs_to_withhold,
    words_redactor,
)
from study_desk.study.outputs import (
    LEFT,
    PACK,
    PACK_MEDIA,
    PUBLISHED,
    REPORT,
    RemovedOutputs,
    left_files,
    mark_datasets_stale,
    note_left,
    outputs_of,
    remove_outputs,
)

REMOVED = "removed.jsonl"


@record
class RemovedSession:
    """The tombstone of a session: the head and the length of its log, when it was removed and why."""

    session: str
    head: str
    entries: int
    wall_ns: int
    reason: str


@record
class PlannedRemoval:
    """What goes with a session, and which files of it stay. `outputs` go unless they were changed since."""

    session: str
    head: str
    entries: dict[str, int]  # by kind
    coders: tuple[str, ...]
    files: tuple[str, ...]
    outputs: tuple[str, ...]
    stays: tuple[str, ...]


def plan_removal(study: Study, name: str) -> PlannedRemoval:
    """List what a removal would delete, and delete nothing. Raises StudyError for a log outside the study's folder."""
    session, log = study.session(name), study.log_of(name)
    if not log.resolve().is_relative_to(study.folder.resolve()):
        raise StudyError(f"{log}: lies outside the study's folder; move it, then run this again")
    entries = read(log).entries if is_log(log) else ()
    output_paths = [o.path for o in outputs_of(study) if o.session in {"", name} and o.kind != LEFT]
    raw = [session.bag, *(parse_media(text).path for text in session.media)]
    return PlannedRemoval(
        session=name,
        head=read(log).head if entries else "",
        entries=dict(sorted(Counter(e.kind.value for e in entries if e.record is not None).items())),
        coders=tuple(sorted({e.record.coder for e in entries if isinstance(e.record, Coding | Label)})),
        files=tuple(
            path.relative_to(study.folder).as_posix()
            for path in sorted(log.rglob("*"))
            if path.is_file() and path.name != ".lock"
        ),
        outputs=tuple(path for path in output_paths if not Path(path).is_absolute() and (study.folder / path).exists()),
        stays=tuple(path for path in raw if path and (study.folder / path).exists()),
    )


def remove_session(study: Study, planned: PlannedRemoval, clock: Clock, reason: str) -> RemovedOutputs:
    """Note the removal, then delete the session's log, what was made from it, and its entry in study.yaml.

    Safe to repeat after an interruption. Raises LogError while another process writes the log.
    """
    name, log = planned.session, study.log_of(planned.session)
    lock = lock_log(log) if log.is_dir() else None
    try:
        stone = RemovedSession(
            session=name,
            head=planned.head,
            entries=sum(planned.entries.values()),
            wall_ns=clock.now_ns(),
            reason=reason,
        )
        append_line(study.folder / REMOVED, to_json(stone))
        mark_datasets_stale(study)
        outputs = remove_outputs(study, {name})
        if log.is_dir():
            shutil.rmtree(log)
    finally:
        if lock is not None:
            os.close(lock)
    study.remove(("sessions", name))
    return outputs


def removed_sessions(study: Study) -> tuple[RemovedSession, ...]:
    """List the sessions that were removed from a study."""
    return read_lines(study.folder / REMOVED, RemovedSession, "correct the line at fault")


@record
class StudyErasure:
    """What was erased in each session, what failed where, and which bags and media are still there."""

    entries: dict[str, int]
    faults: dict[str, str]
    missing: tuple[str, ...]  # sessions without a log here
    outputs: RemovedOutputs
    not_reached: tuple[str, ...]
    left: dict[str, str] = field(default_factory=dict)  # files in the study's folder that still hold what went, and how
    looked_for: str = ""  # how much the last search looked for, and in how many files

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do, here or elsewhere."""
        outputs = self.outputs
        to_do = (
            self.faults,
            self.missing,
            outputs.changed,
            outputs.outside,
            outputs.republish,
            self.not_reached,
            self.left,
        )
        return not any(to_do)


def withdraw(
    study: Study,
    participant: str,
    consents: Collection[Consent],
    clock: Clock,
    reason: str = "the participant's wish",
    *,
    keep_unattributed: bool = False,
    names: Collection[str] = (),
    key_file: Path | None = None,
) -> StudyErasure:
    """Note a withdrawal in study.yaml, then carry it out in every session of the participant. Safe to repeat.

    The words that go, and the participant's real `names`, are taken out of every other entry in all logs. At last the
    whole folder is searched for them. `key_file` is not searched, as it holds the names of others.
    """
    study.check_known("participant", [participant], study.file.participants)
    if not consents:
        raise StudyError(
            f"{participant}: nothing is named to withdraw; name words, coders, clips, publication or everything"
        )
    chosen = tuple(consent for consent in Consent if consent in consents)
    today = datetime.fromtimestamp(clock.now_ns() // NS_PER_S, UTC).date()
    for consent in chosen:
        if consent not in study.file.participants[participant].withdrawn:
            study.set(("participants", participant, "withdrawn", consent.value), today)
    everything, words = Consent.EVERYTHING in chosen, Consent.WORDS in chosen
    entries: dict[str, int] = {}
    faults: dict[str, str] = {}
    theirs = sessions_of_participant(study, participant)
    logs = dict(study.logs())
    by_consent = {
        Consent.CODERS: (PACK, PACK_MEDIA),
        Consent.CLIPS: (REPORT,),
        Consent.PUBLICATION: (PUBLISHED,),
    }
    chosen_kinds = [kind for consent, kinds in by_consent.items() if consent in chosen for kind in kinds]
    kinds = None if everything or words else chosen_kinds
    withdrawal = Withdrawal(participant=participant, consents=chosen)
    if (kinds is None or PUBLISHED in kinds) and not all(
        _is_noted(logs[name], withdrawal) for name in theirs & logs.keys()
    ):
        mark_datasets_stale(study)
    planned: dict[str, PlannedErasure] = {}
    for name in theirs & logs.keys() if everything or words else ():
        try:
            planned[name] = plan_erasure(
                logs[name],
                participant,
                keep_unattributed=keep_unattributed,
                words_only=not everything,
                participants=study.file.participants_of(name),
                names=names,
            )
        except TactfulError as error:
            entries[name], faults[name] = 0, str(error)
    runs = runs_to_withhold({logs[name]: plan for name, plan in planned.items()}, logs.values())
    said_without_them = {name: _speech(log) for name, log in logs.items() if name not in theirs}
    stand_in = NAME if everything else participant
    redactor = words_redactor(runs, NamesToRemove(by_name=tuple((name, stand_in) for name in names)))
    # First where others repeat the words: until these logs are done, the participant's own still tell them.
    for name in sorted(logs.keys() - faults.keys(), key=lambda name: (name in theirs, name)):
        try:
            if everything or words:
                plan = planned.get(name, PlannedErasure(participant=participant))
                changed = erase(logs[name], plan, clock, redactor.text(reason), redactor)
                entries |= {name: changed} if changed or name in theirs else {}
            if name in theirs:
                _note(logs[name], withdrawal, clock)
                entries.setdefault(name, 0)
        except TactfulError as error:
            entries[name], faults[name] = 0, str(error)
    touched = theirs | {name for name, changed in entries.items() if changed}
    outputs = remove_outputs(study, touched, kinds)
    left: dict[str, str] = {}
    looked_for = ""
    if everything or words:
        shared = WordRuns()
        for text in (text for name, texts in said_without_them.items() if name not in faults for text in texts):
            shared.add(text)
        sought = Forbidden(names=dict.fromkeys(names, "a name"), runs=runs, shared=shared)
        left, looked_for = _search(study, sought, key_file, _files_in(study, _raw_files(study, touched - theirs)))
    return StudyErasure(
        entries=dict(sorted(entries.items())),
        faults=faults,
        missing=tuple(sorted(theirs - logs.keys())),
        outputs=outputs,
        not_reached=_raw_files(study, theirs) if {*chosen} - {Consent.PUBLICATION, Consent.CODERS} else (),
        left=left,
        looked_for=looked_for,
    )


def _note(log: Path, withdrawal: Withdrawal, clock: Clock) -> None:
    """Note in a log that a withdrawal is carried out there."""
    if not _is_noted(log, withdrawal):
        with StudyLog.resume(log, clock) as writer:
            writer.append(withdrawal, 0)


def _search(
    study: Study, sought: Forbidden, key_file: Path | None, recordings: Collection[str]
) -> tuple[dict[str, str], str]:
    """Search the study's folder for what went, and remember the files that hold it: a later run knows no word of it.

    `recordings` are of sessions whose logs repeated it; they are not searched, and remembered too.
    """
    note_left(study, recordings)
    if not (sought.runs or sought.names):
        return dict.fromkeys(left_files(study), "has what was withdrawn"), ""
    search = TextSearch(sought)
    result = search_folder(study.folder, search, frozenset({key_file.resolve()} if key_file else ()))
    note_left(study, result.found)
    earlier = dict.fromkeys(left_files(study), "has what was withdrawn")
    left = {**result.unreadable, **earlier, **result.found}
    return dict(sorted(left.items())), f"{count_of(result.searched, 'file')} searched for {search.scope}"


def _speech(log: Path) -> list[str]:
    """List what people and the robot said in a log."""
    return [e.record.text for e in read(log).entries if isinstance(e.record, Utterance | RobotSpeech)]


def expire_study(study: Study, clock: Clock) -> StudyErasure:
    """Empty each log whose retention time is over, and delete what was made from it."""
    entries: dict[str, int] = {}
    faults: dict[str, str] = {}
    for name, log in study.logs():
        try:
            entries[name] = expire(log, clock, study.file.retention_days)
        except TactfulError as error:
            faults[name] = str(error)
    over = {name for name, count in entries.items() if count}
    if over:
        mark_datasets_stale(study)
    return StudyErasure(
        entries=entries,
        faults=faults,
        missing=(),
        outputs=remove_outputs(study, over),
        not_reached=_raw_files(study, over),
    )


def sessions_of_participant(study: Study, participant: str) -> set[str]:
    """Find the sessions in which somebody took part, by study.yaml or by the log."""
    sessions = {name for name, session in study.file.sessions.items() if participant in session.participants}
    for name, log in study.logs():
        try:
            info = next(e.record for e in read_sound(log).entries if isinstance(e.record, SessionInfo))
        except (TactfulError, StopIteration):
            continue
        if participant in {p.pseudonym for p in info.participants}:
            sessions.add(name)
    return sessions


def _is_noted(log: Path, withdrawal: Withdrawal) -> bool:
    return withdrawal in [entry.record for entry in read(log).entries]


def _files_in(study: Study, paths: Iterable[str]) -> list[str]:
    """List files, and in place of folders the files in them."""
    files = (path for name in paths for path in ((study.folder / name).rglob("*"), [study.folder / name]))
    return [str(file) for group in files for file in group if file.is_file()]


def _raw_files(study: Study, sessions: Collection[str]) -> tuple[str, ...]:
    """List the bags and media of sessions that are still there; no erasure changes them."""
    named = [study.file.sessions[name] for name in sorted(sessions)]
    media = ([session.bag, *(parse_media(text).path for text in session.media)] for session in named)
    return tuple(path for paths in media for path in paths if path and (study.folder / path).exists())
