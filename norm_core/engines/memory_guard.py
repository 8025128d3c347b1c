"""Refuse a model that does not fit into the free memory, also while other processes load theirs."""

import fcntl
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from uuid import uuid4

from pydantic import Field

from norm_core.engines.errors import ModelMemoryError
from norm_core.engines.free_memory import MAIN_MEMORY, MemoryPlace, place_of
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EngineKind, Manifest
from norm_core.runtime.cache_dir import make_cache_folder
from norm_core.runtime.config import Config, ConfigError, check_config
from norm_core.runtime.program import PROGRAM

# Loading a large model takes a minute or two; past that a load that hangs must not stop the others.
_WAIT_S, _LOOK_S = 180.0, 0.1

_log = logging.getLogger(__name__)


class _ToldClaim(Config):
    """A claim as its file says it."""

    place: str
    still_mb: float = Field(ge=0, allow_inf_nan=False)


class MemoryClaim:
    """What a loaded model will still take at its peak, told to other processes of this user until `release`.

    The file is locked while its process lives, so that the claim of a crashed process does not count.
    """

    def __init__(self, place: str, still_mb: float) -> None:
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{os.getpid()}-{uuid4().hex}.json"
        unfinished = self._path.with_suffix(".part")
        with ExitStack() as undo:  # who reads it meets a locked and complete file; an unlocked one would be removed
            self._stream: TextIOWrapper = undo.enter_context(unfinished.open("w"))
            undo.callback(unfinished.unlink, missing_ok=True)
            fcntl.flock(self._stream, fcntl.LOCK_EX)
            json.dump({"place": place, "still_mb": still_mb}, self._stream)
            self._stream.flush()
            unfinished.rename(self._path)
            undo.pop_all()

    def release(self) -> None:
        """Withdraw the claim; a second call does nothing."""
        with suppress(OSError):  # without its lock the file counts no more
            self._path.unlink(missing_ok=True)
        self._stream.close()


@contextmanager
def guard_load(manifest: Manifest) -> Iterator[MemoryClaim | None]:
    """Load a model inside the block; raise ModelMemoryError if its peak does not fit beside what others claim.

    One process loads at a time, so that what is free stays free until the weights are there. The block gets a claim
    to release when the model is closed; None for a server or a model of unknown size.
    """
    if manifest.memory is None or manifest.engine is EngineKind.OPENAI:
        yield None
        return
    with _load_lock():
        place = place_of(manifest)
        factor = _growth(manifest, place)
        need_mb, claimed_mb = factor * manifest.memory.peak_mb, _claimed_mb(place.name)
        if need_mb > place.free_mb - claimed_mb:
            raise ModelMemoryError(_refusal(manifest, place, need_mb, claimed_mb))
        claim = _claim(place.name, need_mb - factor * manifest.memory.load_mb)
        try:
            yield claim
        except BaseException:
            if claim:
                claim.release()
            raise


def _claim(place: str, still_mb: float) -> MemoryClaim | None:
    try:
        return MemoryClaim(place, still_mb)
    except OSError as error:
        _log.warning("other processes are not told what the model will take: %s", error)
        return None


def _growth(manifest: Manifest, place: MemoryPlace) -> int:
    """Return how many times its estimate a model takes: without a GPU, 16-bit weights become 32-bit."""
    widens = manifest.engine is EngineKind.TRANSFORMERS and manifest.quantization in {"bf16", "f16"}
    estimated = manifest.memory is not None and manifest.memory.estimated
    return 2 if widens and estimated and place.name == MAIN_MEMORY and "dtype" not in manifest.settings else 1


def _refusal(manifest: Manifest, place: MemoryPlace, need_mb: float, claimed_mb: float) -> str:
    left_mb = place.free_mb - claimed_mb
    claims = f" ({claimed_mb:.0f} MB more are claimed by models that run)" if claimed_mb else ""
    fits = _largest_that_fits(manifest, left_mb)
    estimated = " (estimated)" if manifest.memory and manifest.memory.estimated else ""
    remedy = f"name {fits}, which fits" if fits else f"{PROGRAM} models choose lists what fits"
    return (
        f"{manifest.name} needs {need_mb:.0f} MB{estimated}, and {left_mb:.0f} MB of {place.name} are "
        f"free{claims}; {remedy}, or stop what else uses the memory"
    )


def _largest_that_fits(manifest: Manifest, free_mb: float) -> str:
    """Return the largest other model for the same task on the same engine; empty if there is none."""
    catalogue = Catalogue()
    fitting: list[Manifest] = []
    for name in catalogue.names():
        with suppress(ConfigError):  # a broken manifest of somebody's own hides no other
            other = catalogue.manifest(name)
            if (other.task, other.engine) == (manifest.task, manifest.engine) and other.memory:
                fitting += [other] if other.memory.peak_mb <= free_mb and other.name != manifest.name else []
    return max(fitting, key=lambda other: other.memory.peak_mb if other.memory else 0).name if fitting else ""


def _claimed_mb(place: str) -> float:
    """Return what living claims say of a place; remove the claims of processes that ended."""
    claimed_mb = 0.0
    for path in _folder().glob("*.json"):
        with suppress(OSError), path.open() as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                claimed_mb += _told_mb(stream.read(), path, place)
            else:
                path.unlink(missing_ok=True)
    return claimed_mb


def _told_mb(content: str, path: Path, place: str) -> float:
    """Return what a claim says of a place; 0 with a warning for one that is damaged."""
    try:
        claim = check_config(_ToldClaim, json.loads(content), str(path))
    except (ValueError, ConfigError) as error:
        _log.warning("%s: what the model of another process will take is not known (%s); remove the file", path, error)
        return 0.0
    return claim.still_mb if claim.place == place else 0.0


@contextmanager
def _load_lock() -> Iterator[None]:
    """Hold the lock of those who load; go on without it where it cannot be had, or not in time."""
    with ExitStack() as opened:
        try:
            _folder().mkdir(parents=True, exist_ok=True)
            stream = opened.enter_context((_folder() / "loading").open("w"))
        except OSError as error:
            _log.warning("the model loads without waiting for others that load: %s", error)
            yield
            return
        until_s = time.monotonic() + _WAIT_S
        while time.monotonic() < until_s:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_LOOK_S)
            except OSError as error:  # as on a network's file system without locks
                _log.warning("the model loads without waiting for others that load: %s", error)
                break
        else:
            _log.warning("the model loads beside another that has been loading for %.0f s", _WAIT_S)
        yield


def _folder() -> Path:
    return make_cache_folder("memory_claims")
