"""The lock file beside pulled weights; later pulls and verifications must match it."""

from pathlib import Path

from pydantic import ValidationError

from norm_core.models.manifest import HashedFile, Manifest, ModelFile
from norm_core.records.json_codec import sha256_of
from norm_core.runtime.config import Config, ConfigError

LOCK_NAME = "tactful-lock.json"  # no repository has a file of this name


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


def locked_files(manifest: Manifest) -> str:
    """Describe where a manifest's weights come from, in one line."""
    source = manifest.source
    return source.hub or source.url or source.path or " ".join(source.packages)


def list_files(manifest: Manifest) -> Lock:
    """Return the lock that a manifest with a file list implies."""
    return Lock(source=locked_files(manifest), files=tuple(map(_locked, manifest.files)))


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
    made = folder / f".{LOCK_NAME}.new"
    made.write_text(lock.model_dump_json(indent=2) + "\n", encoding="utf-8")
    made.replace(folder / LOCK_NAME)


def _locked(file: ModelFile) -> HashedFile:
    return HashedFile(path=file.path, sha256=file.sha256, size_bytes=file.size_bytes)
