"""Carry out a withdrawal, or the end of retention, in all logs and outputs of a study."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, Clock
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.reader import read, read_sound
from norm_monitor.session_log.redact import NAME, NamesToRemove
from norm_monitor.session_log.schema import Consent, SessionInfo, Withdrawal, parse_media
from norm_monitor.session_log.study_folder import Study
from norm_monitor.session_log.text_search import TextSearch, WordRuns, search_folder
from norm_monitor.session_log.writer import StudyLog
from study_desk.study.erase import PlannedErasure, erase, find_runs_to_withhold, make_words_redactor, plan_erasure
from study_desk.study.outputs import (
    PACK,
    PACK_MEDIA,
    RemovedOutputs,
    list_left_files,
    note_left_files,
    remove_outputs,
)
from study_desk.study.retention import expire


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
        tasks = (self.faults, self.missing, self.not_reached, self.left)
        return not any((*tasks, outputs.changed, outputs.outside))


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
    withdrawal = Withdrawal(participant=participant, consents=tuple(c for c in Consent if c in consents))
    _note_in_study(study, withdrawal, clock)
    sessions = find_sessions_of_participant(study, participant)
    logs = dict(study.logs())
    own_logs = {name: log for name, log in logs.items() if name in sessions}
    is_erasing = not {Consent.EVERYTHING, Consent.WORDS}.isdisjoint(consents)
    kinds = None if is_erasing else (PACK, PACK_MEDIA)
    changed: dict[str, int] = {}
    faults: dict[str, str] = {}
    runs = WordRuns()
    if is_erasing:
        planned = _plan_erasures(study, withdrawal, own_logs, names, faults)
        runs = find_runs_to_withhold({logs[name]: plan for name, plan in planned.items()}, logs.values())
        stand_in = NAME if Consent.EVERYTHING in consents else participant
        redactor = make_words_redactor(runs, NamesToRemove(by_name=tuple((name, stand_in) for name in names)))
        # The participant's own sessions come last: until the others are done, these hold the words to look for.
        for name in sorted(logs.keys() - faults.keys(), key=lambda session: (session in planned, session)):
            plan = planned.get(name, PlannedErasure(participant=participant))
            with _note_fault(faults, name):
                if count := erase(logs[name], plan, clock, redactor.clean_text(reason), redactor):
                    changed[name] = count
    for name in sorted(own_logs.keys() - faults.keys()):
        with _note_fault(faults, name):
            if withdrawal not in [entry.record for entry in read(own_logs[name]).entries]:
                with StudyLog.resume(own_logs[name], clock) as writer:
                    writer.append(withdrawal, 0)
    touched = sessions | changed.keys()
    outputs = remove_outputs(study, touched, kinds)
    left: dict[str, str] = {}
    scope = ""
    if is_erasing:
        note_left_files(study, _expand_folders(study, _list_raw_files(study, touched - sessions)))
        left, scope = _search_folder(study, names, runs, key_file)
    return StudyErasure(
        entries={name: changed.get(name, 0) for name in sorted(touched & logs.keys() | faults.keys())},
        faults=faults,
        missing=tuple(sorted(sessions - logs.keys())),
        outputs=outputs,
        not_reached=_list_raw_files(study, sessions) if is_erasing else (),
        left=left,
        scope=scope,
    )


@contextmanager
def _note_fault(faults: dict[str, str], session: str) -> Iterator[None]:
    """Note what fails in one session, so that the others are done nevertheless."""
    try:
        yield
    except TactfulError as error:
        faults[session] = str(error)


def _note_in_study(study: Study, withdrawal: Withdrawal, clock: Clock) -> None:
    """Write a withdrawal into study.yaml with its day, unless it is there."""
    today = datetime.fromtimestamp(clock.now_ns() // NS_PER_S, UTC).date()
    for consent in withdrawal.consents:
        if consent not in study.file.participants[withdrawal.participant].withdrawn:
            study.set(("participants", withdrawal.participant, "withdrawn", consent.value), today)


def _plan_erasures(
    study: Study, withdrawal: Withdrawal, own_logs: Mapping[str, Path], names: Collection[str], faults: dict[str, str]
) -> dict[str, PlannedErasure]:
    """Plan what goes from the participant's own sessions. Note the `faults` of sessions that cannot be read."""
    planned: dict[str, PlannedErasure] = {}
    for name, log in own_logs.items():
        with _note_fault(faults, name):
            planned[name] = plan_erasure(
                log,
                withdrawal.participant,
                words_only=Consent.EVERYTHING not in withdrawal.consents,
                participants=study.file.participants_of(name),
                names=names,
            )
    return planned


def _search_folder(
    study: Study, names: Collection[str], runs: WordRuns, key_file: Path | None
) -> tuple[dict[str, str], str]:
    """Search the study's folder for what went, and remember the hits, as a later run does not know the words.

    The raw files of sessions are left out. Those of the participant's sessions are not reached anyway. The others
    hold nothing that their logs do not repeat.
    """
    hits: dict[str, str] = {}
    scope = ""
    if runs or names:
        search = TextSearch(names, runs)
        skipped = [Path(path) for path in _expand_folders(study, _list_raw_files(study, study.file.sessions))]
        skipped += [key_file] if key_file else []
        result = search_folder(study.folder, search, frozenset(path.resolve() for path in skipped))
        hits = result.hits
        scope = f"{count_of(result.searched, 'file')} searched for {search.scope}"
        note_left_files(study, hits)
    left = dict.fromkeys(list_left_files(study), "may have what was withdrawn") | hits
    return dict(sorted(left.items())), scope


def expire_study(study: Study, clock: Clock) -> StudyErasure:
    """Empty each log whose retention time is over, and delete what was made from it."""
    entries: dict[str, int] = {}
    faults: dict[str, str] = {}
    for name, log in study.logs():
        with _note_fault(faults, name):
            entries[name] = expire(log, clock, study.file.retention_days)
    emptied = {name for name, count in entries.items() if count}
    return StudyErasure(
        entries=entries,
        faults=faults,
        missing=(),
        outputs=remove_outputs(study, emptied),
        not_reached=_list_raw_files(study, emptied),
    )


def find_sessions_of_participant(study: Study, participant: str) -> set[str]:
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


def _expand_folders(study: Study, paths: Iterable[str]) -> list[str]:
    """List files, and in place of folders the files in them."""
    roots = [study.folder / path for path in paths]
    return [str(file) for root in roots for file in (*root.rglob("*"), root) if file.is_file()]


def _list_raw_files(study: Study, sessions: Collection[str]) -> tuple[str, ...]:
    """List the bags and media of sessions that are still there; no erasure changes them."""
    planned = [study.file.sessions[name] for name in sorted(sessions)]
    paths = [path for s in planned for path in (s.bag, *(parse_media(text).path for text in s.media))]
    return tuple(path for path in paths if path and (study.folder / path).exists())
