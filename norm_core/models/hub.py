"""Download weights from a repository on the Hugging Face Hub."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

import httpx2
from pydantic import TypeAdapter, ValidationError

from norm_core.models.manifest import FilePath, Manifest
from norm_core.models.store import Lock, PullError, check_room, describe_file, find_damages
from norm_core.records.record import record
from norm_core.runtime.program import PROGRAM

_PATH_ADAPTER = TypeAdapter(FilePath)


@record
class Repository:
    """A commit with the size of each file in bytes, and the SHA-256 of large files."""

    commit: str
    sizes: Mapping[str, int]
    sha256: Mapping[str, str]


def _list_repository(name: str, revision: str) -> Repository:
    """Ask the hub for the files of a revision. Raises PullError if that fails."""
    from huggingface_hub import HfApi  # noqa: PLC0415  takes a fifth of a second

    with _explain_errors(name):
        info = HfApi().model_info(name, revision=revision or None, files_metadata=True)
    files = info.siblings or []
    try:
        sizes = {_PATH_ADAPTER.validate_python(file.rfilename): file.size or 0 for file in files}
    except ValidationError as error:
        raise PullError(f"{name}: lists a file outside of its folder; do not use this repository") from error
    return Repository(
        commit=info.sha or "",
        sizes=sizes,
        sha256={file.rfilename: file.lfs.sha256 for file in files if file.lfs},
    )


def pull_from_hub(manifest: Manifest, folder: Path, earlier: Lock | None) -> Lock:
    """Download missing or damaged files, and return the lock. An earlier lock fixes the commit and all hashes."""
    source = manifest.source
    assert source.hub
    if earlier and source.revision and earlier.revision != source.revision:
        raise PullError(
            f"{manifest.name} is locked at {earlier.revision}, and its manifest now says {source.revision}; "
            f"remove {folder} to pull that revision"
        )
    if earlier:
        damaged_paths = list(find_damages(folder, earlier))
        # Removed, because the client of the hub would accept a changed file.
        for path in damaged_paths:
            (folder / path).unlink(missing_ok=True)
        if damaged_paths:
            _download(source.hub, earlier.revision, damaged_paths, folder)
        lock = earlier
    else:
        repository = _list_repository(source.hub, source.revision or "")
        names = [name for name in repository.sizes if any(fnmatch(name, pattern) for pattern in source.include)]
        if not names:
            raise PullError(
                f"{source.hub}: no file at {repository.commit} matches {', '.join(source.include)}; correct that"
            )
        check_room(folder, sum(repository.sizes[name] for name in names))
        _download(source.hub, repository.commit, names, folder)
        files = tuple(describe_file(folder, name) for name in names)
        sha256_by_path = dict(repository.sha256) | {file.path: file.sha256 for file in manifest.files}
        locked_files = (
            file.model_copy(update={"sha256": sha256_by_path.get(file.path, file.sha256)}) for file in files
        )
        lock = Lock(source=source.hub, revision=repository.commit, files=tuple(locked_files))
    if damages := find_damages(folder, lock):
        path, damage = next(iter(damages.items()))
        (folder / path).unlink(missing_ok=True)
        raise PullError(f"{path}: {damage}; it was removed: run the same command again")
    return lock


def _download(repository: str, commit: str, names: list[str], folder: Path) -> None:
    from huggingface_hub import HfApi  # noqa: PLC0415  as above

    with _explain_errors(repository):
        HfApi().snapshot_download(repository, revision=commit or None, allow_patterns=names, local_dir=folder)


@contextmanager
def _explain_errors(repository: str) -> Iterator[None]:
    """Turn errors of the client of the hub into a PullError with a remedy."""
    try:
        yield
    except (httpx2.HTTPError, OSError, ValueError) as error:
        response = getattr(error, "response", None)
        status = getattr(response, "status_code", 0)
        remedy = "after a network failure, run the same command again; it resumes the download"
        if status in (401, 403, 404):
            remedy = "check its name and revision; for a gated model, accept its terms on the hub and set HF_TOKEN"
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        hub = os.environ.get("HF_ENDPOINT", "the hub")
        raise PullError(
            f"{repository}: {hub} does not send it: {reason}; {remedy}. Without a network, copy the folder that "
            f"{PROGRAM} models add prints elsewhere to TACTFUL_WEIGHTS here"
        ) from error
