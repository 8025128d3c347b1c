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
from norm_monitor.session_log.text_search import NO_TEXT, Forbidden, TextSearch, telling_sentences
from study_desk.analysis.dataset import EDITABLE, PublicationKey, PublishError, dataset_files
from study_desk.analysis.write_analysis import private_folder, write_private
from study_desk.study.outputs import CHECKSUMS, PUBLISHED, note_study_output
from study_desk.study.retention import find_retention

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DAY, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:19|20)\d\d"
_TIMES = tuple(
    (what, re.compile(pattern))
    for what, pattern in (
        ("a date", rf"(?<![\w.-]){_YEAR}-(?:0[1-9]|1[0-2])(?:-{_DAY})?(?!\d)"),
        ("a date", rf"(?<!\d){_DAY}[./-]{_DAY}[./-]{_YEAR}(?!\d)"),
        ("a date", rf"\b{_MONTH}\s+{_DAY}(?:st|nd|rd|th)?\b|\b{_DAY}\.?\s+{_MONTH}(?!\w)|\b{_MONTH}\s+{_YEAR}\b"),
        ("a time of day", r"(?<![\d:])(?:[01]\d|2[0-3]):[0-5]\d(?!\d)"),
        ("a time stamp", r"(?<![\w.])1\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?!\w)"),
        ("a time stamp", r"(?<!\d)(?:19|20)\d{6}[T_]\d{4,6}(?!\d)"),
    )
)
_HOME = re.compile(r"(?:/home|/Users|[A-Z]:\\Users)[/\\]\w+")
_MEDIA = NO_TEXT | {".bag", ".db3", ".mcap"}


@record
class Leak:
    """One hit of the check. `line` is None where the file as a whole or its name is the problem."""

    file: str
    line: int | None
    problem: str

    def __str__(self) -> str:
        """Name the file, the line and the problem."""
        where = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{where}: {self.problem}"


def files_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file in a folder. A link is a file without content."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() or path.is_symlink():
            yield path.relative_to(folder).as_posix(), b"" if path.is_symlink() else path.read_bytes()


def find_leaks(name: str, data: bytes, search: TextSearch, *, may_be_media: bool = False) -> Iterator[Leak]:
    """Check a file by name and line. Media pass only where clips may lie."""
    for problem in _problems(name.replace("_", " ").replace("/", " "), search):
        yield Leak(file=name, line=None, problem=f"its name has {problem}")
    text = _text(data)
    if text is None or Path(name).suffix.lower() in _MEDIA:
        if not may_be_media:
            yield Leak(file=name, line=None, problem="is not text, and may show a face or carry a voice")
        return
    for number, line in enumerate(text.splitlines(), 1):
        for problem in _problems(line, search):
            yield Leak(file=name, line=number, problem=f"has {problem}")


def _problems(line: str, search: TextSearch) -> Iterator[str]:
    yield from search.hits(line)
    for what, pattern in _TIMES:
        if match := pattern.search(line):
            yield f"{what}: {match[0]}"
    if match := _HOME.search(line):
        yield f"the path of a user: {match[0]}"


def _text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


_MAX_LEAKS_SHOWN = 20


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
    """Write the dataset into a folder. Raises PublishError, and writes nothing, if the check finds anything."""
    if key.path.resolve().is_relative_to(folder.resolve()):
        raise PublishError(f"{key.path}: the key lies in the folder to publish: keep it outside")
    everything, remarks = study.recordings()
    remarks += [f"session {name}: {note}" for name, recording in everything.items() for note in recording.notes]
    shared: dict[str, Recording] = {}
    for name, recording in everything.items():
        if reason := _reason_against(study, name, recording, clock):
            remarks.append(f"session {name}: {reason}, so is left out")
        else:
            shared[name] = recording
    if not shared:
        raise PublishError(f"{study.path}: no session may be published: {'; '.join(remarks) or 'there is none'}")
    people = {p.pseudonym for recording in shared.values() for p in recording.info.participants}
    key.forget_except(people, shared)
    contents = dataset_files(study.file, shared, key, licence)
    before = _read_checksums(folder)
    edited = _read_edited_texts(folder, before)
    contents |= edited
    folders = {f"{key.folder_of(name)}/": recording for name, recording in shared.items()}
    # What people put beside our files stays, unless its session is published no more.
    stale = {name for name in before if name.startswith("sub-") and not name.startswith((*folders,))} - contents.keys()
    if not before and next(files_in(folder), None):
        raise PublishError(f"{folder}: exists, and is not a dataset: name a new folder")
    foreign = [(name, data) for name, data in files_in(folder) if name not in {*contents, *stale, CHECKSUMS}]
    written = [(name, text.encode()) for name, text in contents.items()]
    search = TextSearch(_forbidden_in(study, names))
    with_clips = tuple(place for place, recording in folders.items() if _allows_clips(study, recording))
    leaks = [
        leak
        for file, data in [*written, *foreign]
        for leak in find_leaks(file, data, search, may_be_media=file.startswith(with_clips))
    ]
    _refuse(folder, leaks)
    key.save()
    for name in stale:
        (folder / name).unlink(missing_ok=True)
    for name, text in contents.items():
        for parent in reversed((folder / name).relative_to(folder).parents):
            private_folder(folder / parent)
        write_private(folder / name, text)
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted([*written, *foreign]))
    write_private(folder / CHECKSUMS, sums)
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


def _forbidden_in(study: Study, names: NamesToRemove) -> Forbidden:
    """Collect names, the study's pseudonyms and speech, which no published file may hold."""
    participants: set[str] = {*study.file.participants}
    coders = {*study.file.coders}
    sentences: set[str] = set()
    for entry in (e.record for _, log in study.logs() for e in read(log).entries):
        match entry:
            case SessionInfo():
                participants.update(p.pseudonym for p in entry.participants)
            case Utterance() if entry.speaker is not Speaker.ROBOT:
                sentences.update(telling_sentences(entry.text))
            case Label() | Coding() | Review():
                coders.add(entry.coder)
    coders -= {MONITOR, CONSENSUS}
    pseudonyms = dict.fromkeys(coders, "a coder's pseudonym in the study")
    pseudonyms |= dict.fromkeys(participants, "a participant's pseudonym in the study")
    return Forbidden(
        names={name: "a name of the key file" for name, _ in names.by_name},
        pseudonyms={name: what for name, what in pseudonyms.items() if len(name) > 1},
        sentences=frozenset(sentences),
    )


def _refuse(folder: Path, leaks: Sequence[Leak]) -> None:
    """Raise PublishError with each file and line, if there are any."""
    if leaks:
        listed = "\n".join(f"  {leak}" for leak in leaks[:_MAX_LEAKS_SHOWN])
        more = f"\n  and {len(leaks) - _MAX_LEAKS_SHOWN} more" if len(leaks) > _MAX_LEAKS_SHOWN else ""
        raise PublishError(
            f"{folder}: not to be shared, so nothing is written: the check has {count_of(len(leaks), 'hit')}:\n"
            f"{listed}{more}\n"
            "Take these out of study.yaml, or out of the files that were edited in the folder"
        )


def _reason_against(study: Study, name: str, recording: Recording, clock: Clock) -> str:
    entries = read(study.log_of(name)).entries
    people = [p.pseudonym for p in recording.info.participants]
    if not people:
        return "names no participant who could consent"
    withdrawn = {
        (e.record.participant, c) for e in entries if isinstance(e.record, Withdrawal) for c in e.record.consents
    }
    asked = {Consent.PUBLICATION, Consent.EVERYTHING}
    for pseudonym in people:
        consents = study.file.participants.get(pseudonym)
        if consents is None:
            return f"{pseudonym} is not in study.yaml"
        if consents.withdrawn.keys() & asked or any((pseudonym, consent) in withdrawn for consent in asked):
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


def _read_edited_texts(folder: Path, before: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of files for people that were edited since they were written."""
    texts = {}
    for name in EDITABLE:
        path = folder / name
        if name in before and path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() != before[name]:
            texts[name] = path.read_text(encoding="utf-8", errors="replace")
    return texts
