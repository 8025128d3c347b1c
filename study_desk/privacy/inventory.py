"""List a study's stored data by kind and purpose, for an ethics board or a participant."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from norm_core.records.record import record
from study_desk.log.reader import is_log, read, segments
from study_desk.log.schema import Kind, SessionInfo
from study_desk.publication.dataset import KEY_FILE
from study_desk.study.outputs import OUTPUTS, outputs_of
from study_desk.study.study_folder import STUDY_FILE, Study, is_study
from study_desk.study.withdrawal import REMOVED

WHY = {
    Kind.SESSION: "whose session it is, by pseudonym, and how it was made",
    Kind.FLAG: "the errors and competences that the study is about, with what was measured",
    Kind.DECISION: "what the robot was advised to do",
    Kind.UTTERANCE: "the words that a flag is judged by, names taken out",
    Kind.ROBOT_SPEECH: "when the robot spoke",
    Kind.PRESENCE: "how many faces were seen and where they looked; no picture, no identity, no emotion",
    Kind.REVIEW: "reviewers' verdicts",
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
    """One kind of data in one place."""

    place: str
    kind: str
    count: int
    bytes: int
    personal: bool
    why: str


@record
class Inventory:
    """What a study stores about whom, and for how long."""

    stored: tuple[StoredItem, ...]
    sessions: tuple[str, ...]
    participants: tuple[str, ...]
    retention: tuple[str, ...]
    erased_entries: int


_PERSONAL = {Kind.FLAG, Kind.UTTERANCE, Kind.PRESENCE, Kind.DECISION, Kind.REVIEW, Kind.LABEL}


def inventory(paths: Iterable[Path]) -> Inventory:
    """List the contents of the logs, and of everything else in their folders."""
    stored: list[StoredItem] = []
    sessions: list[str] = []
    people: set[str] = set()
    retention: list[str] = []
    erased = 0
    for path in _with_logs(paths):
        if is_log(path):
            contents = read(path)
            entries = contents.entries
            kinds = Counter(entry.kind for entry in entries if entry.record is not None)
            erased += sum(entry.record is None for entry in entries) - contents.half_erased
            for kind, count in kinds.items():
                stored.append(
                    StoredItem(
                        place=str(path),
                        kind=kind.value,
                        count=count,
                        bytes=0,
                        personal=kind in _PERSONAL,
                        why=WHY[kind],
                    )
                )
            for info in (e.record for e in entries if isinstance(e.record, SessionInfo)):
                sessions.append(f"{info.study}/{info.session}")
                people.update(p.pseudonym for p in info.participants)
                retention.append(_limit(info.session, info.retention_days))
        elif is_study(path):
            file = Study(path).file
            people.update(file.participants)
            retention.append(_limit(file.study, file.retention_days))
        stored += _files(path)
    return Inventory(
        stored=tuple(stored),
        sessions=tuple(sessions),
        participants=tuple(sorted(people)),
        retention=tuple(retention),
        erased_entries=erased,
    )


def _limit(name: str, days: int | None) -> str:
    return f"{name}: {f'{days} days' if days else 'no limit stated'}"


def _with_logs(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield each path, and the logs of a study before its folder."""
    for path in paths:
        if is_study(path):
            yield from (log for _, log in Study(path).logs())
        yield path


def _files(path: Path) -> list[StoredItem]:
    """List files by type. Names foreign files as such. Of a study, leave out the logs, which are listed apart."""
    files = (
        segments(path) if path.is_file() else [f for f in sorted(path.rglob("*")) if f.is_file() and f.name != ".lock"]
    )
    if path.is_dir() and (path / "metadata.yaml").exists():
        why = "a recording with whatever its topics hold, faces and voices included"
        return [_file(file, why) for file in files]
    study = Study(path) if is_study(path) else None
    logs = {log.resolve() for _, log in study.logs()} if study else set()
    whose = {(path / output.path).resolve(): output.session for output in outputs_of(study)} if study else {}
    items = []
    for file in files:
        if file.resolve().parent in logs:
            continue
        if study and file.parent == path and file.name in _OF_STUDY:
            items.append(_file(file, _OF_STUDY[file.name], personal=file.name not in (OUTPUTS, REMOVED)))
        elif (session := whose.get(file.resolve())) is not None:
            items.append(_file(file, f"an export or a report of {f'session {session}' if session else 'all sessions'}"))
        else:
            items.append(_file(file, _BY_ENDING.get(file.suffix, "not of the study desk: look into it")))
    return items


_BY_ENDING = {".jsonl": "the log itself", ".torn": "half an entry that a dying writer left"}
_OF_STUDY = {
    STUDY_FILE: "sessions, participants by pseudonym, and their consents",
    OUTPUTS: "which exports and reports were made",
    REMOVED: "which sessions were removed, when and why",
    KEY_FILE: "which label of the published dataset stands for whom",
}


def _file(file: Path, why: str, *, personal: bool = True) -> StoredItem:
    return StoredItem(place=str(file), kind="file", count=1, bytes=file.stat().st_size, personal=personal, why=why)
