"""Carry out a participant's withdrawal, or the end of retention, in all logs and outputs of a study."""

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, Clock
from study_desk.log.linked_media import linked_media
from study_desk.log.reader import read, read_sound
from study_desk.log.schema import Consent, SessionInfo, Withdrawal
from study_desk.log.writer import StudyLog
from study_desk.privacy.erase import erase, expire
from study_desk.study.outputs import PACK_MEDIA, PUBLISHED, REPORT, RemovedOutputs, mark_datasets_stale, remove_outputs
from study_desk.study.study_folder import Study, StudyError


@record
class StudyErasure:
    """What was erased in each session, what failed where, and which bags and media are still there."""

    entries: dict[str, int]
    faults: dict[str, str]
    missing: tuple[str, ...]  # sessions without a log here
    outputs: RemovedOutputs
    not_reached: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do, here or elsewhere."""
        made = self.outputs
        left = (self.faults, self.missing, made.changed, made.outside, made.republish, self.not_reached)
        return not any(left)


def withdraw(
    study: Study,
    participant: str,
    consents: Collection[Consent],
    clock: Clock,
    reason: str = "the participant's wish",
    *,
    keep_unattributed: bool = False,
) -> StudyErasure:
    """Note a withdrawal in study.yaml, then carry it out in every session of the participant. Safe to repeat."""
    study.check_known("participant", [participant], study.file.participants)
    if not consents:
        raise StudyError(f"{participant}: nothing is named to withdraw; name words, clips, publication or everything")
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
    by_consent = {Consent.CLIPS: (REPORT, PACK_MEDIA), Consent.PUBLICATION: (PUBLISHED,)}
    chosen_kinds = [kind for consent, kinds in by_consent.items() if consent in chosen for kind in kinds]
    kinds = None if everything or words else chosen_kinds
    withdrawal = Withdrawal(participant=participant, consents=chosen)
    if (kinds is None or PUBLISHED in kinds) and not all(
        _is_noted(logs[name], withdrawal) for name in theirs & logs.keys()
    ):
        mark_datasets_stale(study)
    for name in theirs & logs.keys():
        try:
            entries[name] = 0
            if everything or words:
                entries[name] = erase(
                    logs[name],
                    participant,
                    clock,
                    reason,
                    keep_unattributed=keep_unattributed,
                    words_only=not everything,
                    participants=study.file.participants_of(name),
                ).entries
            if not _is_noted(logs[name], withdrawal):
                with StudyLog.resume(logs[name], clock) as writer:
                    writer.append(withdrawal, 0)
        except TactfulError as error:
            faults[name] = str(error)
    return StudyErasure(
        entries=dict(sorted(entries.items())),
        faults=faults,
        missing=tuple(sorted(theirs - logs.keys())),
        outputs=remove_outputs(study, theirs, kinds),
        not_reached=_raw_files(study, theirs) if {*chosen} != {Consent.PUBLICATION} else (),
    )


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
    found = {name for name, session in study.file.sessions.items() if participant in session.participants}
    for name, log in study.logs():
        try:
            info = next(e.record for e in read_sound(log).entries if isinstance(e.record, SessionInfo))
        except (TactfulError, StopIteration):
            continue
        if participant in {p.pseudonym for p in info.participants}:
            found.add(name)
    return found


def _is_noted(log: Path, withdrawal: Withdrawal) -> bool:
    return withdrawal in [entry.record for entry in read(log).entries]


def _raw_files(study: Study, sessions: Collection[str]) -> tuple[str, ...]:
    """List the bags and media of sessions that are still there; no erasure changes them."""
    named = [study.file.sessions[name] for name in sorted(sessions)]
    media = ([session.bag, *(linked_media(text).path for text in session.media)] for session in named)
    return tuple(path for paths in media for path in paths if path and (study.folder / path).exists())
