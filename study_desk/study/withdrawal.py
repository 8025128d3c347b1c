"""Carry out a withdrawal, the end of retention, or the removal of a session, in all logs and outputs of a study."""

import os
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path

from norm_core.records.json_codec import to_json
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, Clock
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.reader import is_log, read, read_sound
from norm_monitor.session_log.redact import NAME, NamesToRemove, Redactor
from norm_monitor.session_log.schema import Coding, Consent, Label, SessionInfo, Withdrawal, parse_media
from norm_monitor.session_log.study_folder import Study, StudyError, append_line, read_lines
from norm_monitor.session_log.text_search import Forbidden, TextSearch, WordRuns, search_folder
from norm_monitor.session_log.writer import StudyLog, lock_log
from study_desk.study.erase import PlannedErasure, erase, plan_erasure, runs_to_withhold, words_redactor
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
from study_desk.study.retention import expire

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
    """The content and files that go with a session, and the files that stay. A changed output stays too."""

    session: str
    head: str
    entries: dict[str, int]  # by kind
    coders: tuple[str, ...]
    files: tuple[str, ...]
    outputs: tuple[str, ...]
    stays: tuple[str, ...]


def plan_removal(study: Study, name: str) -> PlannedRemoval:
    """List what a removal would delete. Raises StudyError for a log outside the study's folder."""
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
    """Note the removal, then delete the session's log, its outputs and its entry in study.yaml.

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
    left: dict[str, str] = field(default_factory=dict)  # files that may still hold what was withdrawn, and why
    scope: str = ""  # how much the search looked for, and in how many files

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do, here or elsewhere."""
        outputs = self.outputs
        return not any(
            (
                self.faults,
                self.missing,
                outputs.changed,
                outputs.outside,
                outputs.republish,
                self.not_reached,
                self.left,
            )
        )


_KINDS = {Consent.CODERS: (PACK, PACK_MEDIA), Consent.CLIPS: (REPORT,), Consent.PUBLICATION: (PUBLISHED,)}


def withdraw(
    study: Study,
    participant: str,
    consents: Collection[Consent],
    clock: Clock,
    reason: str = "the participant's wish",
    *,
    names: Collection[str] = (),
    key_file: Path | None = None,
) -> StudyErasure:
    """Note a withdrawal in study.yaml, carry it out in every log, delete what was made of them, and search the folder.

    Safe to repeat. With words or everything, the participant's words and real `names` leave all logs. `key_file` is
    not searched, as it holds the names of others.
    """
    study.check_known("participant", [participant], study.file.participants)
    if not consents:
        raise StudyError(
            f"{participant}: nothing is named to withdraw; name words, coders, clips, publication or everything"
        )
    withdrawal = Withdrawal(participant=participant, consents=tuple(c for c in Consent if c in consents))
    _note_in_study(study, withdrawal, clock)
    sessions = sessions_of_participant(study, participant)
    is_erasing = bool({Consent.EVERYTHING, Consent.WORDS} & {*consents})
    kinds = None if is_erasing else [kind for consent in withdrawal.consents for kind in _KINDS[consent]]
    logs = dict(study.logs())
    if (kinds is None or PUBLISHED in kinds) and not all(
        _is_noted(logs[name], withdrawal) for name in sessions & logs.keys()
    ):
        mark_datasets_stale(study)
    changed: dict[str, int] = {}
    faults: dict[str, str] = {}
    runs = WordRuns()
    if is_erasing:
        planned = _plan(study, withdrawal, sessions & logs.keys(), names, faults)
        runs = runs_to_withhold({logs[name]: plan for name, plan in planned.items()}, logs.values())
        changed = _erase(study, withdrawal, planned, _redactor(withdrawal, runs, names), clock, reason, faults)
    for name in sorted(sessions & logs.keys() - faults.keys()):
        try:
            _note_in_log(logs[name], withdrawal, clock)
        except TactfulError as error:
            faults[name] = str(error)
    touched = sessions | changed.keys()
    outputs = remove_outputs(study, touched, kinds)
    left: dict[str, str] = {}
    scope = ""
    if is_erasing:
        note_left(study, _files_in(study, _raw_files(study, touched - sessions)))
        left, scope = _search(study, Forbidden(names=dict.fromkeys(names, "a name"), runs=runs), key_file)
    return StudyErasure(
        entries={name: changed.get(name, 0) for name in sorted(touched & logs.keys() | faults.keys())},
        faults=faults,
        missing=tuple(sorted(sessions - logs.keys())),
        outputs=outputs,
        not_reached=_raw_files(study, sessions) if {*consents} - {Consent.PUBLICATION, Consent.CODERS} else (),
        left=left,
        scope=scope,
    )


def _note_in_study(study: Study, withdrawal: Withdrawal, clock: Clock) -> None:
    """Write a withdrawal into study.yaml with its day, unless it is there."""
    today = datetime.fromtimestamp(clock.now_ns() // NS_PER_S, UTC).date()
    for consent in withdrawal.consents:
        if consent not in study.file.participants[withdrawal.participant].withdrawn:
            study.set(("participants", withdrawal.participant, "withdrawn", consent.value), today)


def _note_in_log(log: Path, withdrawal: Withdrawal, clock: Clock) -> None:
    """Note in a log that a withdrawal is carried out there, unless it is noted."""
    if not _is_noted(log, withdrawal):
        with StudyLog.resume(log, clock) as writer:
            writer.append(withdrawal, 0)


def _plan(
    study: Study, withdrawal: Withdrawal, sessions: Collection[str], names: Collection[str], faults: dict[str, str]
) -> dict[str, PlannedErasure]:
    """Plan what goes from the participant's own sessions. Collect the `faults` of sessions that cannot be read."""
    planned: dict[str, PlannedErasure] = {}
    for name in sessions:
        try:
            planned[name] = plan_erasure(
                study.log_of(name),
                withdrawal.participant,
                words_only=Consent.EVERYTHING not in withdrawal.consents,
                participants=study.file.participants_of(name),
                names=names,
            )
        except TactfulError as error:
            faults[name] = str(error)
    return planned


def _redactor(withdrawal: Withdrawal, runs: WordRuns, names: Collection[str]) -> Redactor:
    stand_in = NAME if Consent.EVERYTHING in withdrawal.consents else withdrawal.participant
    return words_redactor(runs, NamesToRemove(by_name=tuple((name, stand_in) for name in names)))


def _erase(  # noqa: PLR0917
    study: Study,
    withdrawal: Withdrawal,
    planned: Mapping[str, PlannedErasure],
    redactor: Redactor,
    clock: Clock,
    reason: str,
    faults: dict[str, str],
) -> dict[str, int]:
    """Erase in all logs. Return the number of changed entries where there are any, and collect the `faults`.

    The participant's own sessions come last: until the others are done, these hold the words to look for.
    """
    changed: dict[str, int] = {}
    logs = dict(study.logs())
    for name in sorted(logs.keys() - faults.keys(), key=lambda name: (name in planned, name)):
        plan = planned.get(name, PlannedErasure(participant=withdrawal.participant))
        try:
            if count := erase(logs[name], plan, clock, redactor.text(reason), redactor):
                changed[name] = count
        except TactfulError as error:
            faults[name] = str(error)
    return changed


def _search(study: Study, forbidden: Forbidden, key_file: Path | None) -> tuple[dict[str, str], str]:
    """Search the study's folder for what went, and remember the hits: a later run knows no word of it.

    The raw files of sessions are left out. Those of the participant's sessions are not reached anyway; the others
    hold nothing that their logs do not repeat.
    """
    hits: dict[str, str] = {}
    scope = ""
    if forbidden.runs or forbidden.names:
        search = TextSearch(forbidden)
        raw_files = _files_in(study, _raw_files(study, study.file.sessions))
        leave_out = frozenset(path.resolve() for path in (*map(Path, raw_files), *([key_file] if key_file else [])))
        result = search_folder(study.folder, search, leave_out)
        hits, scope = result.hits, f"{count_of(result.searched, 'file')} searched for {search.scope}"
        note_left(study, hits)
    left = dict.fromkeys(left_files(study), "may have what was withdrawn") | hits
    return dict(sorted(left.items())), scope


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
