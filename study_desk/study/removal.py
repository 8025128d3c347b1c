"""Remove a session from a study, and remember that it was removed."""

import os
import shutil
from collections import Counter
from pathlib import Path

from norm_core.records.json_codec import to_json
from norm_core.records.record import record
from norm_core.runtime.time import Clock
from norm_monitor.session_log.reader import is_log, read
from norm_monitor.session_log.schema import Coding, Label, parse_media
from norm_monitor.session_log.study_folder import Study, StudyError, append_line, read_lines
from norm_monitor.session_log.writer import lock_log
from study_desk.study.outputs import LEFT, RemovedOutputs, read_outputs, remove_outputs

# The file in a study's folder with one line for each removed session.
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
    log: str
    outputs: tuple[str, ...]
    stays: tuple[str, ...]


def plan_removal(study: Study, name: str) -> PlannedRemoval:
    """List what a removal would delete. Raises StudyError for a log outside the study's folder."""
    session = study.session(name)
    log = study.log_of(name)
    if not log.resolve().is_relative_to(study.folder.resolve()):
        raise StudyError(f"{log}: lies outside the study's folder; move it, then run this again")
    contents = read(log) if is_log(log) else None
    entries = contents.entries if contents else ()
    outputs = [output for output in read_outputs(study) if output.session in {"", name} and output.kind != LEFT]
    paths = [output.path for output in outputs if not Path(output.path).is_absolute()]
    raw_files = [session.bag, *(parse_media(text).path for text in session.media)]
    return PlannedRemoval(
        session=name,
        head=contents.head if contents else "",
        entries=dict(sorted(Counter(entry.kind.value for entry in entries if entry.record is not None).items())),
        coders=tuple(sorted({entry.record.coder for entry in entries if isinstance(entry.record, Coding | Label)})),
        log=log.relative_to(study.folder).as_posix(),
        outputs=tuple(path for path in paths if (study.folder / path).exists()),
        stays=tuple(path for path in raw_files if path and (study.folder / path).exists()),
    )


def remove_session(study: Study, planned: PlannedRemoval, clock: Clock, reason: str) -> RemovedOutputs:
    """Note the removal, then delete the session's log, its outputs and its entry in study.yaml.

    Safe to repeat after an interruption. Raises LogError while another process writes the log.
    """
    log = study.log_of(planned.session)
    lock = lock_log(log) if log.is_dir() else None
    try:
        removed = RemovedSession(
            session=planned.session,
            head=planned.head,
            entries=sum(planned.entries.values()),
            wall_ns=clock.now_ns(),
            reason=reason,
        )
        append_line(study.folder / REMOVED, to_json(removed))
        outputs = remove_outputs(study, {planned.session})
        if log.is_dir():
            shutil.rmtree(log)
    finally:
        if lock is not None:
            os.close(lock)
    study.remove(("sessions", planned.session))
    return outputs


def list_removed_sessions(study: Study) -> tuple[RemovedSession, ...]:
    """List the sessions that were removed from a study."""
    return read_lines(study.folder / REMOVED, RemovedSession, "correct the line at fault")
