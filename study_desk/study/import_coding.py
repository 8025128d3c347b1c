"""Import coded files into logs: check everything first, then write."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from pathlib import Path

from norm_core.records.record import record
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import Clock
from norm_monitor.session_log.reader import LogError, is_log
from norm_monitor.session_log.recording import Recording, open_recording
from norm_monitor.session_log.redact import Redactor
from norm_monitor.session_log.schema import CONSENSUS, MONITOR, Coding, Label
from norm_monitor.session_log.study_file import HSRI, Code
from norm_monitor.session_log.study_folder import Study, StudyError, study_of
from norm_monitor.session_log.writer import LogWriteError, StudyLog
from study_desk.coding.forms.form_file import CheckedForm
from study_desk.coding.forms.sheet import CodingTarget, FormError, FormPart, find_origin_ns


@record
class ImportOptions:
    """How to import. `replace` allows another coding in place of a coder's earlier one."""

    coder: str = ""  # empty: as in the file
    replace: bool = False
    complete: bool = False
    outside: bool = False
    redactor: Redactor = field(default_factory=Redactor)


@record
class Addition:
    """The new entries of a file for the log of one session."""

    log: Path
    recording: Recording
    file: Path | None
    entries: tuple[Label | Coding, ...]
    people: tuple[str, ...] = ()  # whose work the file is, also if nothing of it is new

    @property
    def comment_count(self) -> int:
        """The number of new labels with a comment."""
        return sum(isinstance(entry, Label) and bool(entry.comment) for entry in self.entries)

    @property
    def coders(self) -> list[str]:
        """The coders of the new entries."""
        return sorted({entry.coder for entry in self.entries})


@record
class PlannedImport:
    """The new entries of files for the logs of a study."""

    additions: tuple[Addition, ...]
    empty: tuple[str, ...] = ()  # parts without labels, which may not be coded yet


@record
class _ReadPart:
    """The labels of a file for one session."""

    session: str
    coder: str
    file: Path
    labels: tuple[Label, ...]


def plan_for_log(log: Path, files: Sequence[Path], options: ImportOptions) -> PlannedImport:
    """Read a file for one log. A form without labels states that its coder found nothing.

    Of several observations, the one named like the session counts. Raises FormError for several files.
    """
    if len(files) > 1:
        raise FormError(f"{log}: a log takes one FILE; name the folder of the study for several")
    if not files and not options.complete:
        raise FormError(f"{log}: no file of labels is named; give a FILE, or --complete if the coder found nothing")
    membership = study_of(log)
    recording = open_recording(log)
    codebook = membership[0].file.codebook if membership else HSRI
    labels = tuple[Label, ...]()
    for file in files:
        form = CheckedForm(file)
        part = recording.info.session if len(form.parts) > 1 else ""
        labels = _read_labels(form, _make_target(recording, options, options.coder, part, codebook))
    options = options if labels else replace(options, complete=True)
    addition = _make_addition(log, recording, files[0] if files else None, labels, options)
    if membership:
        _check_coders(*membership, addition)
    return PlannedImport(additions=(addition,))


def plan_for_study(study: Study, files: Sequence[Path], options: ImportOptions) -> PlannedImport:
    """Find the session of each part of each file, and read them all.

    Raises FormError or StudyError before anything is written.
    """
    forms = [(file, CheckedForm(file)) for file in files]
    parts = [(file, form, part) for file, form in forms for part in form.parts]
    unknown = [
        f"{file}: {part.name or 'no session'}" for file, _, part in parts if not _find_session(study, file, part)
    ]
    if unknown:
        raise StudyError(
            f"nothing is imported, as study.yaml has no such session: {'; '.join(unknown)}. It has "
            f"{', '.join(study.file.sessions) or 'none'}: correct the name here or there, or take these out of the file"
        )
    recordings: dict[str, Recording] = {}
    read_parts = []
    for file, form, part in parts:
        session = _find_session(study, file, part)
        if part.study and part.study != study.file.study:
            raise StudyError(f"{file}: is of study {part.study}, not of {study.file.study}; import it there")
        if session not in recordings:
            if not is_log(study.log_of(session)):
                raise StudyError(f"{file}: session {session} has no log yet; add it with {PROGRAM} study add")
            recordings[session] = study.recording_of(session)
        coder = _choose_coder(study, file, part, options.coder)
        target = _make_target(recordings[session], options, coder, part.name, study.file.codebook)
        read_parts.append(_ReadPart(session=session, coder=coder, file=file, labels=_read_labels(form, target)))
    file_by_coding = _check_coded_once(read_parts)
    additions = []
    empty = []
    for read in read_parts:
        if not read.labels and (not options.complete or (read.session, read.coder) in file_by_coding):
            empty.append(f"{read.session} ({read.file.name})")
            continue
        options_of_part = replace(options, coder=read.coder)
        log = study.log_of(read.session)
        addition = _make_addition(log, recordings[read.session], read.file, read.labels, options_of_part)
        _check_coders(study, read.session, addition)
        if not read.labels:
            file_by_coding[read.session, read.coder] = read.file
        additions.append(addition)
    return PlannedImport(additions=tuple(additions), empty=tuple(empty))


def _check_coders(study: Study, session: str, addition: Addition) -> None:
    """Refuse coders whom study.yaml lacks, or to whom it does not assign the session."""
    coders = [coder for coder in addition.coders if coder != CONSENSUS]
    study.check_known("coder", coders, study.file.coders)
    assigned = study.file.sessions[session].coders
    if assigned and (others := sorted({*coders} - {*assigned})):
        raise StudyError(
            f"{addition.file or addition.log}: {session} is assigned to {', '.join(assigned)}, not to "
            f"{', '.join(others)}, so nothing is imported: correct the file's name, give the --coder whose work it is, "
            f"or add the coder to the session in {study.path}"
        )


def write_additions(additions: Iterable[Addition], clock: Clock, redactor: Redactor) -> dict[Path, str]:
    """Lock all logs, then write to them. Return the head of each.

    Raises LogError if a log cannot be written, which says how much of an addition is in it.
    """
    additions = list(additions)
    with ExitStack() as stack:
        logs: dict[Path, StudyLog] = {}
        for addition in additions:
            if addition.log not in logs:
                logs[addition.log] = stack.enter_context(StudyLog.resume(addition.log, clock, redactor=redactor))
        for addition in additions:
            writer = logs[addition.log]
            count_before = writer.entries
            try:
                for entry in addition.entries:
                    at_ns = entry.start_ns if isinstance(entry, Label) else addition.recording.end_ns
                    writer.append(entry, at_ns)
            except LogWriteError as error:
                written = f"{writer.entries - count_before} of {len(addition.entries)} are in the log"
                raise LogError(f"{error}, and import the file again with --replace: {written}") from error
        return {log: writer.head for log, writer in logs.items()}


def _make_addition(
    log: Path, recording: Recording, file: Path | None, labels: tuple[Label, ...], options: ImportOptions
) -> Addition:
    """Choose the entries that the log lacks. It holds redacted ones, so these are compared."""
    for _ in range(2):  # A name that a later comment introduces goes from the earlier ones too.
        labels = tuple(options.redactor.clean(label) for label in labels)
    coders = {label.coder for label in labels}
    if MONITOR in coders:
        raise FormError(f"{file}: {MONITOR} is not a coder; give the coder of these labels with --coder")
    if options.complete and not labels:
        if not options.coder:
            raise FormError(f"{log}: the coding names no coder; give --coder")
        coders = {options.coder}
    entries: list[Label | Coding] = []
    for coder in sorted(coders):
        own = [label for label in labels if label.coder == coder]
        entries += _select_new_entries(log, recording, coder, own, options)
    return Addition(log=log, recording=recording, file=file, entries=tuple(entries), people=tuple(sorted(coders)))


def _select_new_entries(
    log: Path, recording: Recording, coder: str, labels: list[Label], options: ImportOptions
) -> list[Label | Coding]:
    """Choose the new entries of one coder. A second version counts twice, so it is refused without `replace`."""
    current = [label for label in recording.labels if label.coder == coder]
    has_coded = coder in recording.coders
    if options.replace and has_coded and Counter(labels) != Counter(current):
        return [Coding(coder=coder, labels=len(labels), replaces=True), *labels]
    in_log = {*current}
    new = [label for label in labels if label not in in_log]
    if has_coded and (new or (current and not labels)):
        raise FormError(
            f"{log}: has a coding by {coder} already, and this is another: give another --coder, or --replace it "
            "(the log keeps both)"
        )
    latest = next((coding for coding in recording.codings if coding.coder == coder), None)
    coding_now = Coding(coder=coder, labels=len(current) + len(new))
    is_new_coding = latest is None or latest.labels != coding_now.labels
    codings = [coding_now] if is_new_coding and (options.complete or (latest is not None and new)) else []
    return [*new, *codings]


def _read_labels(form: CheckedForm, target: CodingTarget) -> tuple[Label, ...]:
    """Read labels, and refuse those outside the session."""
    labels = form.read_labels(target)
    target.check_all(len(labels))
    return labels


def _make_target(
    recording: Recording, options: ImportOptions, coder: str, part: str, codebook: tuple[Code, ...]
) -> CodingTarget:
    origin_ns = find_origin_ns(recording)
    return CodingTarget(
        session=recording.info.session,
        part=part,
        coder=coder,
        origin_ns=origin_ns,
        start_ns=origin_ns,
        end_ns=None if options.outside else recording.end_ns,
        codebook=codebook,
    )


def _find_session(study: Study, file: Path, part: FormPart) -> str:
    """Find the session that a part names, or else the name of its file. Empty: the study has no such session."""
    if part.name:
        return part.name if part.name in study.file.sessions else ""
    return _find_name(file, study.file.sessions)


def _choose_coder(study: Study, file: Path, part: FormPart, stated: str) -> str:
    """Choose the coder: the one stated, of the part, or in the file's name. Empty: as in each row."""
    if part.coder and stated not in {"", CONSENSUS, part.coder}:
        raise StudyError(f"{file}: is the work of {part.coder}; leave out --coder {stated}")
    return stated or part.coder or _find_name(file, (*study.file.coders, CONSENSUS))


def _find_name(file: Path, names: Iterable[str]) -> str:
    """Find the only one of these names in the name of a file, such as S01 in S01_C-1.eaf. The longest counts."""
    matches = [name for name in names if re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", file.stem)]
    longest = [name for name in matches if not any(name in other for other in matches if other != name)]
    return longest[0] if len(longest) == 1 else ""


def _check_coded_once(read_parts: Iterable[_ReadPart]) -> dict[tuple[str, str], Path]:
    """Return the file of each coding, by session and coder. Raises StudyError for two files of one coding."""
    file_by_coding: dict[tuple[str, str], Path] = {}
    for read in read_parts:
        for coder in {label.coder for label in read.labels}:
            other = file_by_coding.setdefault((read.session, coder), read.file)
            if other != read.file:
                raise StudyError(
                    f"session {read.session} is coded by {coder} in {other} and in {read.file}; import one of them"
                )
    return file_by_coding


@record
class Retraction:
    """A coding that was taken back."""

    session: str
    coder: str
    labels: int
    head: str


def retract_coding(log: Path, coder: str, clock: Clock) -> Retraction:
    """Take a coding back; the log keeps it. Raises StudyError if the coder has none."""
    recording = open_recording(log)
    if coder not in recording.coders:
        raise StudyError(
            f"{log}: has no coding by {coder}; it has those of {', '.join(sorted(recording.coders)) or 'nobody'}: "
            "name one of these"
        )
    with StudyLog.resume(log, clock) as writer:
        writer.append(Coding(coder=coder, labels=0, replaces=True, retracts=True), recording.end_ns)
    return Retraction(
        session=recording.info.session,
        coder=coder,
        labels=sum(label.coder == coder for label in recording.labels),
        head=writer.head,
    )
