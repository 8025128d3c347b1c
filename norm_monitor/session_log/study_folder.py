"""The folder of a study: study.yaml, and its sessions with their logs."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from norm_core.files.atomic_file import write_atomic
from norm_core.files.data_files import shipped_text
from norm_core.records.json_codec import RecordError, from_json
from norm_core.runtime.config import ConfigError, check_config, load_config, parse_yaml
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_monitor.session_log.reader import is_log
from norm_monitor.session_log.recording import Recording, open_recording
from norm_monitor.session_log.schema import Consent, Participant, SessionInfo, limit_consents
from norm_monitor.session_log.study_file import PlannedSession, StudyFile, check_known

T = TypeVar("T")
# How errors about YAML call a text whose file they do not know.
_SOURCE = "the file"

STUDY_FILE = "study.yaml"
# The folders of a new study.
_FOLDERS = ("sessions", "exports")


def set_in_yaml(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Return the text with a value set under nested keys. A new key becomes the last line of its mapping.

    Raises ConfigError if the layout of the text does not allow that.
    """
    plain = parse_yaml(text, _SOURCE) or {}
    if not isinstance(plain, dict):
        raise ConfigError(f"{_SOURCE}: holds no keys; begin with one, such as study: NAME")
    node = yaml.compose(text, Loader=yaml.SafeLoader)  # it recurses, but the text was found to be shallow above
    parent: yaml.MappingNode | None = None
    depth = 0
    while depth < len(keys) and isinstance(node, yaml.MappingNode):
        inner_node = next((inner for key, inner in node.value if key.value == keys[depth]), None)
        if inner_node is None:
            break
        parent = node
        node = inner_node
        depth += 1
    new_keys = keys[depth:]
    if new_keys and isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
        new_text = _add_line(text, node, new_keys[0], _nest(new_keys[1:], value))
    elif node is None or parent is None:
        new_text = text
    elif new_keys and not parent.flow_style and not _parse_node(text, node):
        indent = " " * (parent.start_mark.column + 2)
        line = f"\n{indent}{_dump_flow(new_keys[0])}: {_dump_flow(_nest(new_keys[1:], value))}"
        new_text = text[: node.start_mark.index].rstrip(" ") + line + text[node.end_mark.index :]
    else:
        old_value = _parse_node(text, node) if new_keys else None
        new_value = _merge(old_value if isinstance(old_value, dict) else {}, new_keys, value)
        new_text = _replace_node(text, node, _dump_flow(new_value))
    expected = _merge(plain, keys, parse_yaml(_dump_flow(value), _SOURCE))  # a date becomes its text
    try:
        is_set = parse_yaml(new_text, _SOURCE) == expected
    except ConfigError:
        is_set = False
    if not is_set:
        raise ConfigError(f"{'.'.join(keys)}: cannot be set in this layout; write there: {_dump_flow(value)}")
    return new_text


def _parse_node(text: str, node: yaml.Node) -> Any:
    return parse_yaml(text[node.start_mark.index : node.end_mark.index], _SOURCE)


def remove_from_yaml(text: str, keys: tuple[str, ...]) -> str:
    """Return the text without a key, and without the lines of its value. Raises ConfigError as set_in_yaml does."""
    parent: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    expected = parse_yaml(text, _SOURCE)
    mapping = expected
    for key in keys[:-1]:
        parent = next(value for name, value in parent.value if name.value == key)
        mapping = mapping[key]
    del mapping[keys[-1]]
    if parent.flow_style:
        return set_in_yaml(text, keys[:-1], mapping)
    key_node, value = next(pair for pair in parent.value if pair[0].value == keys[-1])
    column = key_node.start_mark.column
    line_end = text.find("\n", _find_end(value) - 1)
    before = text[: key_node.start_mark.index - column]
    after = text[line_end + 1 :] if line_end >= 0 else ""
    new_text = before + ("" if mapping else " " * column + "{}\n") + after
    if parse_yaml(new_text, _SOURCE) != expected:
        raise ConfigError(f"{'.'.join(keys)}: cannot be removed in this layout; delete it there")
    return new_text


def _add_line(text: str, mapping: yaml.MappingNode, key: str, value: Any) -> str:
    """Add a line after the last value of a block mapping."""
    end = _find_end(mapping)
    if not text[:end].endswith("\n"):
        line_end = text.find("\n", end)
        text, end = (text, line_end + 1) if line_end >= 0 else (text + "\n", len(text) + 1)
    indent = " " * mapping.start_mark.column
    return f"{text[:end]}{indent}{_dump_flow(key)}: {_dump_flow(value)}\n{text[end:]}"


def _find_end(node: yaml.Node) -> int:
    """Return the index at which a value ends. The end mark of a block lies behind the comments that follow it."""
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    return int(node.end_mark.index)


def _replace_node(text: str, node: yaml.Node, value: str) -> str:
    start = node.start_mark.index
    end = node.end_mark.index
    space = " " if text[:start].endswith(":") else ""
    newline = "\n" if text[start:end].endswith("\n") else ""
    return f"{text[:start]}{space}{value}{newline}{text[end:]}"


def _dump_flow(value: Any) -> str:
    """Write a value as YAML on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False, allow_unicode=True)
    return text.removesuffix("...\n").strip()


def _nest(keys: tuple[str, ...], value: Any) -> Any:
    """Put a value under nested keys."""
    return {keys[0]: _nest(keys[1:], value)} if keys else value


def _merge(mapping: dict[str, Any], keys: tuple[str, ...], value: Any) -> Any:
    """Return a mapping with a value set under nested keys; without keys, the value."""
    if not keys:
        return value
    inner = mapping.get(keys[0])
    return mapping | {keys[0]: _merge(inner if isinstance(inner, dict) else {}, keys[1:], value)}


class StudyError(TactfulError, ValueError):
    """A study's folder cannot be used as asked; the message gives the remedy."""


class NotWatchableError(StudyError):
    """A participant of a session did not agree to be watched by coders."""


class Study:
    """A study in its folder. `file` is study.yaml as it was when it was last read or changed."""

    def __init__(self, folder: Path) -> None:
        if not is_study(folder):
            raise StudyError(
                f"{folder}: holds no {STUDY_FILE}; name the folder of a study, or make one with {PROGRAM} study init"
            )
        self.folder = folder
        self.file = load_config(StudyFile, self.path)

    @property
    def path(self) -> Path:
        """The file study.yaml."""
        return self.folder / STUDY_FILE

    def log_of(self, session: str) -> Path:
        """Return the folder of a session's log, which may not exist yet."""
        return self.folder / (self.session(session).log or f"sessions/{session}")

    def session(self, name: str) -> PlannedSession:
        """Return a session of study.yaml. Raises StudyError for an unknown one."""
        self.check_known("session", [name], self.file.sessions)
        return self.file.sessions[name]

    def logs(self) -> Iterator[tuple[str, Path]]:
        """Yield the name and folder of each log that is there."""
        for name in self.file.sessions:
            if is_log(self.log_of(name)):
                yield name, self.log_of(name)

    def check_known(self, what: str, names: Iterable[str], known_names: Iterable[str]) -> None:
        """Raise StudyError for a name that study.yaml lacks."""
        try:
            check_known(what, names, known_names, str(self.path))
        except ValueError as error:
            raise StudyError(str(error)) from error

    def find_disagreements(self, name: str, info: SessionInfo) -> list[str]:
        """List the points in which the log of a session differs from study.yaml."""
        session = self.session(name)
        disagreements = []
        for what, logged, planned in (
            ("study", info.study, self.file.study),
            ("session", info.session, name),
            ("condition", info.condition or session.condition, session.condition or info.condition),
        ):
            if logged != planned:
                disagreements.append(
                    f"its log is of {what} {logged or 'without a name'}, and {STUDY_FILE} says {planned}"
                )
        logged_people = {p.pseudonym: {*p.person_ids} for p in info.participants}
        planned_people = {pseudonym: {*ids} for pseudonym, ids in session.participants.items()}
        if logged_people and planned_people and logged_people != planned_people:
            disagreements.append(
                f"its log has {_format_people(logged_people)}, and {STUDY_FILE} says {_format_people(planned_people)}"
            )
        return disagreements

    def recording_of(self, name: str) -> Recording:
        """Open a session, and complete its log from study.yaml. Raises StudyError where they disagree."""
        recording = open_recording(self.log_of(name))
        info = recording.info
        if disagreements := self.find_disagreements(name, info):
            raise StudyError(
                f"session {name}: {'; '.join(disagreements)}: correct {self.path}, or log the session again"
            )
        session = self.session(name)
        participants = self._limit_to_consents(info.participants) or self.file.participants_of(name)
        pseudonyms = [p.pseudonym for p in participants if p.pseudonym in self.file.participants]
        withdrawn = [who for who in pseudonyms if Consent.EVERYTHING in self.file.participants[who].withdrawn]
        return replace(
            recording,
            missing=recording.missing or (f"{' and '.join(withdrawn)} withdrew everything" if withdrawn else ""),
            info=replace(
                info,
                condition=info.condition or session.condition,
                participants=participants,
                media=info.media or tuple(str(self.folder / path) for path in session.media),
            ),
        )

    def recording_for_coders(self, name: str) -> Recording:
        """Open a session for coders. Raises NotWatchableError unless its participants agreed to that."""
        recording = self.recording_of(name)
        if reason := self.file.explain_hidden(p.pseudonym for p in recording.info.participants):
            remedy = f"if they agree now: {PROGRAM} study participant {self.folder} PSEUDONYM --coders"
            raise NotWatchableError(f"session {name}: {reason}; {remedy}")
        return recording

    def recordings(self) -> tuple[dict[str, Recording], list[str]]:
        """Open the sessions that have data. Return them by name, and remarks on those that are left out."""
        recordings: dict[str, Recording] = {}
        remarks = []
        logs = dict(self.logs())
        for name in self.file.sessions:
            recording = self.recording_of(name) if name in logs else None
            if recording is None:
                remarks.append(f"session {name}: has no log, so is left out")
            elif recording.missing:
                remarks.append(f"session {name}: {recording.missing}, so is left out")
            else:
                recordings[name] = recording
        return recordings, remarks

    def set(self, keys: tuple[str, ...], value: Any) -> None:
        """Set a value in study.yaml, whose comments stay."""
        self.set_all([(keys, value)])

    def set_all(self, changes: Iterable[tuple[tuple[str, ...], Any]]) -> None:
        """Set values in study.yaml at once, whose comments stay."""

        def apply_changes(text: str) -> str:
            for keys, value in changes:
                text = set_in_yaml(text, keys, value)
            return text

        self._rewrite(apply_changes)

    def remove(self, keys: tuple[str, ...]) -> None:
        """Remove a key from study.yaml, whose other lines stay."""
        self._rewrite(lambda text: remove_from_yaml(text, keys))

    def _rewrite(self, change: Callable[[str], str]) -> None:
        """Change the text of study.yaml. Raises StudyError, and leaves the file, if the result is not valid."""
        try:
            text = change(self.path.read_text(encoding="utf-8"))
            file = check_config(StudyFile, parse_yaml(text, str(self.path)), str(self.path))
        except OSError as error:
            raise StudyError(f"{self.path}: cannot be read: {error.strerror}; check its permissions") from error
        except ConfigError as error:
            raise StudyError(f"{self.path}: stays as it was: {error}") from error
        write_atomic(self.path, text, mode=0o600, fsync=True)
        self.file = file

    def _limit_to_consents(self, participants: Iterable[Participant]) -> tuple[Participant, ...]:
        """Limit the consents of a log to those of study.yaml."""

        def is_allowed(pseudonym: str, what: Consent) -> bool:
            person = self.file.participants.get(pseudonym)
            return person is None or person.allows(what)

        return limit_consents(participants, is_allowed)


def is_study(folder: Path) -> bool:
    """Whether a folder is that of a study."""
    return (folder / STUDY_FILE).is_file()


def study_of(source: Path) -> tuple[Study, str] | None:
    """Find the study in whose folder a log or a bag lies, and the name of its session."""
    source = source.resolve()
    folder = next((parent for parent in source.parents[:3] if is_study(parent)), None)
    if folder is None:
        return None
    study = Study(folder)
    for name, session in study.file.sessions.items():
        paths = [study.log_of(name), *([folder / session.bag] if session.bag else [])]
        if {source, source.parent}.intersection(path.resolve() for path in paths):  # or one of its files
            return study, name
    return None


def init_study(
    folder: Path,
    name: str,
    conditions: Iterable[str] = (),
    coders: Iterable[str] = (),
    *,
    retention_days: int = 0,
) -> Study:
    """Write a commented study.yaml and the folders of a study, which its owner alone can read."""
    if (folder / STUDY_FILE).exists():
        raise StudyError(f"{folder / STUDY_FILE}: is there already; edit it, or name another folder")
    text = shipped_text("norm_monitor.session_log", "study_template.yaml").format(
        program=PROGRAM,
        name=_dump_flow(name),
        conditions=_dump_flow(list(conditions)),
        coders=_dump_flow(list(coders)),
        retention_days=retention_days,
    )
    check_config(StudyFile, parse_yaml(text, str(folder / STUDY_FILE)), str(folder / STUDY_FILE))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    for folder_name in _FOLDERS:
        (folder / folder_name).mkdir(mode=0o700, exist_ok=True)
    write_atomic(folder / STUDY_FILE, text, mode=0o600, fsync=True)
    return Study(folder)


def append_line(path: Path, text: str) -> None:
    """Append a line to a file that its owner alone can read, and sync it. Raises StudyError if that fails."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StudyError(f"{path}: cannot be written: {error.strerror}; make room, or allow writing there") from error


def read_lines(path: Path, kind: type[T], remedy: str) -> tuple[T, ...]:
    """Read the records of a file with one on each line, or none without a file. Raises StudyError with the remedy."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return tuple(from_json(kind, line) for line in lines)
    except (OSError, ValueError, RecordError) as error:
        raise StudyError(f"{path}: cannot be read: {error}; {remedy}") from error


def relative_path(path: Path, folder: Path) -> str:
    """Return a path relative to a folder, or the whole path if it lies outside."""
    path = path.resolve()
    folder = folder.resolve()
    return os.fspath(path.relative_to(folder) if path.is_relative_to(folder) else path)


def _format_people(people: dict[str, set[str]]) -> str:
    return ", ".join(f"{name}={','.join(sorted(ids))}" for name, ids in sorted(people.items())) or "no participants"
