"""Remember the packs and analyses made from a study's logs, and delete them with what they were made from."""

import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path

from norm_core.files.atomic_file import write_atomic
from norm_core.records.json_codec import to_json
from norm_core.records.record import record
from norm_monitor.session_log.study_folder import Study, append_line, read_lines, relative_path

# The file in a study's folder with one line for each output.
OUTPUTS = "outputs.jsonl"

# Kinds of outputs.
PACK = "pack"
PACK_MEDIA = "pack media"
LEFT = "holds what was withdrawn"  # a file that is to be erased by hand

# What the analysis script writes beside itself.
_SCRIPT_TABLES = {"analysis.R": "estimates_r.csv"}


@record
class Output:
    """A file that was made from a session, or from all if none is named.

    `path` counts from the study's folder if it lies there.
    """

    session: str
    kind: str
    path: str
    sha256: str


@record
class RemovedOutputs:
    """The fate of outputs: deleted, left because they were changed, or left outside the study's folder."""

    deleted: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()


def note_study_output(study: Study, file: Path, kind: str, session: str = "") -> None:
    """Remember a file made from a session, or else from all sessions of a study."""
    output = Output(session=session, kind=kind, path=relative_path(file, study.folder), sha256=_hash_file(file))
    append_line(study.folder / OUTPUTS, to_json(output))


def note_left_files(study: Study, paths: Iterable[str]) -> None:
    """Remember files of the study's folder that hold what a participant withdrew, until they are erased or changed."""
    for path in paths:
        note_study_output(study, study.folder / path, LEFT)


def list_left_files(study: Study) -> tuple[str, ...]:
    """List the files that hold what a participant withdrew."""
    left = [output.path for output in read_outputs(study) if output.kind == LEFT and not _is_changed(study, output)]
    return tuple(path for path in left if (study.folder / path).is_file())


def _is_changed(study: Study, output: Output) -> bool:
    """Whether a file was changed since it was made."""
    path = study.folder / output.path
    return path.is_file() and _hash_file(path) != output.sha256


def read_outputs(study: Study) -> tuple[Output, ...]:
    """List the outputs; of a file that was made again, the latest."""
    outputs = read_lines(study.folder / OUTPUTS, Output, "delete the line at fault, and look for that file")
    return tuple({output.path: output for output in outputs}.values())


def remove_outputs(study: Study, sessions: Collection[str], kinds: Collection[str] | None = None) -> RemovedOutputs:
    """Delete the outputs of sessions that lie in the study's folder. A file that was changed since stays."""
    if not sessions:
        return RemovedOutputs()
    outputs = read_outputs(study)
    of_sessions = [output for output in outputs if output.session in {"", *sessions} and output.kind != LEFT]
    deleted: list[str] = []
    changed: list[str] = []
    outside: list[str] = []
    for output in [output for output in of_sessions if kinds is None or output.kind in kinds]:
        path = study.folder / output.path
        if Path(output.path).is_absolute():
            if path.exists():
                outside.append(output.path)
            continue
        if _is_changed(study, output):
            changed.append(output.path)
        else:
            path.unlink(missing_ok=True)
            deleted.append(output.path)
        table = path.with_name(_SCRIPT_TABLES.get(path.name, path.name))
        if table != path and table.is_file():
            table.unlink()
            deleted.append(relative_path(table, study.folder))
    if deleted:
        remaining = "".join(to_json(output) + "\n" for output in outputs if output.path not in deleted)
        write_atomic(study.folder / OUTPUTS, remaining, mode=0o600, fsync=True)
    return RemovedOutputs(deleted=tuple(deleted), changed=tuple(changed), outside=tuple(outside))


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
