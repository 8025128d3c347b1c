"""Publish the sessions that participants consented to share, after a check of every file."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from norm_core.records.record import record
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import Clock
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.reader import read
from norm_monitor.session_log.recording import Recording
from norm_monitor.session_log.redact import NamesToRemove
from norm_monitor.session_log.schema import CONSENSUS, MONITOR, Coding, Consent, Label, Review, SessionInfo, Withdrawal
from norm_monitor.session_log.study_folder import Study
from norm_monitor.session_log.text_search import (
    MEDIA_SUFFIXES,
    ForbiddenContent,
    TextSearch,
    find_recognizable_sentences,
)
from study_desk.analysis.dataset import EDITABLE, PublicationKey, PublishError, make_dataset
from study_desk.analysis.write_analysis import make_private_folder, write_private
from study_desk.study.outputs import CHECKSUMS, PUBLISHED, note_study_output
from study_desk.study.retention import find_retention

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR = r"(?:19|20)\d\d"
# What tells when a session was, each with the name of its kind.
_TIMES = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("a date", rf"(?<![\w.-]){_YEAR}-(?:0[1-9]|1[0-2])(?:-{_DAY})?(?!\d)"),
        ("a date", rf"(?<!\d){_DAY}[./-]{_DAY}[./-]{_YEAR}(?!\d)"),
        ("a date", rf"\b{_MONTH}\s+{_DAY}(?:st|nd|rd|th)?\b|\b{_DAY}\.?\s+{_MONTH}(?!\w)|\b{_MONTH}\s+{_YEAR}\b"),
        ("a time of day", r"(?<![\d:])(?:[01]\d|2[0-3]):[0-5]\d(?!\d)"),
        ("a time stamp", r"(?<![\w.])1\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?!\w)"),
        ("a time stamp", r"(?<!\d)(?:19|20)\d{6}[T_]\d{4,6}(?!\d)"),
    )
)
_HOME = re.compile(r"(?:/home|/Users|[A-Z]:\\Users)[/\\]\w+")  # a folder with the name of a user
_MEDIA = MEDIA_SUFFIXES | {".bag", ".db3", ".mcap"}  # endings of files that may show a face or carry a voice
_MAX_LEAKS_SHOWN = 20


@record
class Leak:
    """One hit of the check. `line` is None where the file as a whole or its name is the problem."""

    file: str
    line: int | None
    problem: str

    def __str__(self) -> str:
        """Name the file, the line and the problem."""
        place = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{place}: {self.problem}"


def _read_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file in a folder. A link is a file without content."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() or path.is_symlink():
            yield path.relative_to(folder).as_posix(), b"" if path.is_symlink() else path.read_bytes()


def find_leaks(name: str, data: bytes, search: TextSearch, *, may_be_media: bool = False) -> Iterator[Leak]:
    """Check a file by name and line. Media pass only where clips may lie."""
    for problem in _find_problems(name.replace("_", " ").replace("/", " "), search):
        yield Leak(file=name, line=None, problem=f"its name has {problem}")
    text = _decode_text(data)
    if text is None or Path(name).suffix.lower() in _MEDIA:
        if not may_be_media:
            yield Leak(file=name, line=None, problem="is not text, and may show a face or carry a voice")
        return
    for number, line in enumerate(text.splitlines(), 1):
        for problem in _find_problems(line, search):
            yield Leak(file=name, line=number, problem=f"has {problem}")


def _find_problems(line: str, search: TextSearch) -> Iterator[str]:
    yield from search.find(line)
    for kind, pattern in _TIMES:
        if match := pattern.search(line):
            yield f"{kind}: {match[0]}"
    if match := _HOME.search(line):
        yield f"the path of a user: {match[0]}"


def _decode_text(data: bytes) -> str | None:
    """Decode UTF-8; None for what is not text."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


@record
class Publication:
    """The published files, the sessions left out with the reason, and the edited files that were kept."""

    files: tuple[str, ...]
    sessions: int
    participants: int
    left_out: tuple[str, ...]
    kept: tuple[str, ...]


def publish(  # noqa: PLR0917
    study: Study, folder: Path, key: PublicationKey, clock: Clock, names: NamesToRemove, licence: str = ""
) -> Publication:
    """Write the dataset into a folder.

    Raises PublishError, and writes nothing, if no session may be published, or if the check has a hit.
    """
    if key.path.resolve().is_relative_to(folder.resolve()):
        raise PublishError(f"{key.path}: the key lies in the folder to publish: keep it outside")
    shared, remarks = _select_shared(study, clock)
    people = {p.pseudonym for recording in shared.values() for p in recording.info.participants}
    key.forget_except(people, shared)
    contents = make_dataset(study.file, shared, key, licence)
    checksums = _read_checksums(folder)
    edited = _read_edited_texts(folder, checksums)
    contents |= edited
    folders = {f"{key.find_folder(name)}/": recording for name, recording in shared.items()}
    # What people put beside our files stays, unless its session is published no more.
    stale = {name for name in checksums if name.startswith("sub-") and not name.startswith((*folders,))}
    stale -= contents.keys()
    if not checksums and next(_read_files(folder), None):
        raise PublishError(f"{folder}: exists, and is not a dataset: name a new folder")
    own_files = [(name, text.encode()) for name, text in contents.items()]
    foreign_files = [(name, data) for name, data in _read_files(folder) if name not in {*contents, *stale, CHECKSUMS}]
    search = TextSearch(_collect_forbidden(study, names))
    clip_folders = tuple(path for path, recording in folders.items() if _allows_clips(study, recording))
    leaks = [
        leak
        for name, data in [*own_files, *foreign_files]
        for leak in find_leaks(name, data, search, may_be_media=name.startswith(clip_folders))
    ]
    if leaks:
        raise PublishError(_describe_leaks(folder, leaks))
    key.save()
    for name in stale:
        (folder / name).unlink(missing_ok=True)
    for name, text in contents.items():
        for parent in reversed((folder / name).relative_to(folder).parents):
            make_private_folder(folder / parent)
        write_private(folder / name, text)
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted([*own_files, *foreign_files])]
    write_private(folder / CHECKSUMS, "".join(lines))
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    for name in (*contents, CHECKSUMS):
        note_study_output(study, folder / name, PUBLISHED)
    return Publication(
        files=(*contents, CHECKSUMS),
        sessions=len(shared),
        participants=len(people),
        left_out=tuple(remarks),
        kept=tuple(edited),
    )


def _select_shared(study: Study, clock: Clock) -> tuple[dict[str, Recording], list[str]]:
    """Choose the sessions that may be published. Return them by name, and remarks on the others."""
    recordings, remarks = study.recordings()
    remarks += [f"session {name}: {note}" for name, recording in recordings.items() for note in recording.notes]
    shared: dict[str, Recording] = {}
    for name, recording in recordings.items():
        if reason := _find_reason_against(study, name, recording, clock):
            remarks.append(f"session {name}: {reason}, so is left out")
        else:
            shared[name] = recording
    if not shared:
        raise PublishError(f"{study.path}: no session may be published: {'; '.join(remarks) or 'there is none'}")
    return shared, remarks


def _collect_forbidden(study: Study, names: NamesToRemove) -> ForbiddenContent:
    """Collect names, the study's pseudonyms and speech, which no published file may hold."""
    participants: set[str] = {*study.file.participants}
    coders = {*study.file.coders}
    sentences: set[str] = set()
    for logged in (entry.record for _, log in study.logs() for entry in read(log).entries):
        match logged:
            case SessionInfo():
                participants.update(p.pseudonym for p in logged.participants)
            case Utterance() if logged.speaker is not Speaker.ROBOT:
                sentences.update(find_recognizable_sentences(logged.text))
            case Label() | Coding() | Review():
                coders.add(logged.coder)
    coders -= {MONITOR, CONSENSUS}
    pseudonyms = dict.fromkeys(coders, "a coder's pseudonym in the study")
    pseudonyms |= dict.fromkeys(participants, "a participant's pseudonym in the study")
    return ForbiddenContent(
        names={name: "a name of the key file" for name, _ in names.by_name},
        pseudonyms={name: kind for name, kind in pseudonyms.items() if len(name) > 1},
        sentences=frozenset(sentences),
    )


def _describe_leaks(folder: Path, leaks: Sequence[Leak]) -> str:
    lines = "\n".join(f"  {leak}" for leak in leaks[:_MAX_LEAKS_SHOWN])
    rest = f"\n  and {len(leaks) - _MAX_LEAKS_SHOWN} more" if len(leaks) > _MAX_LEAKS_SHOWN else ""
    return (
        f"{folder}: not to be shared, so nothing is written: the check has {count_of(len(leaks), 'hit')}:\n"
        f"{lines}{rest}\n"
        "Take these out of study.yaml, or out of the files that were edited in the folder"
    )


def _find_reason_against(study: Study, name: str, recording: Recording, clock: Clock) -> str:
    """Return why a session may not be published. Empty: it may."""
    entries = read(study.log_of(name)).entries
    people = [p.pseudonym for p in recording.info.participants]
    if not people:
        return "names no participant who could consent"
    withdrawals = [entry.record for entry in entries if isinstance(entry.record, Withdrawal)]
    withdrawn = {(withdrawal.participant, consent) for withdrawal in withdrawals for consent in withdrawal.consents}
    needed = {Consent.PUBLICATION, Consent.EVERYTHING}
    for pseudonym in people:
        consents = study.file.participants.get(pseudonym)
        if consents is None:
            return f"{pseudonym} is not in study.yaml"
        if consents.withdrawn.keys() & needed or any((pseudonym, consent) in withdrawn for consent in needed):
            return f"{pseudonym} withdrew"
        if not consents.publication:
            return f"{pseudonym} did not consent to publication"
    retention = find_retention(entries, study.file.retention_days)
    if retention and clock.now_ns() >= retention.end_ns:
        return "its retention ended"
    return ""


def _allows_clips(study: Study, recording: Recording) -> bool:
    """Whether all participants of a session consented to show clips of their face and voice to others."""
    return all(study.file.participants[p.pseudonym].allows(Consent.CLIPS) for p in recording.info.participants)


def _read_checksums(folder: Path) -> dict[str, str]:
    """Read the checksums of an earlier publication by file. Names outside the folder are left out."""
    path = folder / CHECKSUMS
    if not path.is_file():
        return {}
    pairs = (line.partition("  ") for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
    return {name: digest for digest, _, name in pairs if (folder / name).resolve().is_relative_to(folder.resolve())}


def _read_edited_texts(folder: Path, checksums: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of files for people that were edited since they were written."""
    texts = {}
    for name in EDITABLE:
        path = folder / name
        if name in checksums and path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() != checksums[name]:
            texts[name] = path.read_text(encoding="utf-8", errors="replace")
    return texts
