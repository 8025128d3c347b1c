"""Remove a session from a study, so that it can be added anew. A line in the study's folder goes on telling of it."""

import os
import shutil
from collections import Counter
from pathlib import Path

from norm_core.records.json_codec import RecordError, from_json, to_json
from norm_core.records.record import record
from norm_core.runtime.time import Clock
from study_desk.log.linked_media import linked_media
from study_desk.log.reader import is_log, read
from study_desk.log.schema import Coding, Label
from study_desk.log.writer import lock_log
from study_desk.study.outputs import LEFT, RemovedOutputs, mark_datasets_stale, outputs_of, remove_outputs
from study_desk.study.study_folder import Study, StudyError, writing

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
    made = [o.path for o in outputs_of(study) if o.session in {"", name} and o.kind != LEFT]
    raw = [session.bag, *(linked_media(text).path for text in session.media)]
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
        outputs=tuple(path for path in made if not Path(path).is_absolute() and (study.folder / path).exists()),
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
        with writing(study.folder / REMOVED):
            descriptor = os.open(study.folder / REMOVED, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(to_json(stone) + "\n")
                file.flush()
                os.fsync(file.fileno())
        mark_datasets_stale(study)
        outputs = remove_outputs(study, {name})
        with writing(log):
            if log.is_dir():
                shutil.rmtree(log)
    finally:
        if lock is not None:
            os.close(lock)
    study.remove(("sessions", name))
    return outputs


def removed_sessions(study: Study) -> tuple[RemovedSession, ...]:
    """List the sessions that were removed from a study."""
    path = study.folder / REMOVED
    if not path.exists():
        return ()
    try:
        return tuple(from_json(RemovedSession, line) for line in path.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError, RecordError) as error:
        raise StudyError(f"{path}: cannot be read: {error}; correct the line at fault") from error
