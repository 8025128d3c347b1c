"""Open an engine from a manifest: verify the weights, and import the backend."""

from pathlib import Path

from norm_core.engines.engine import Engine
from norm_core.engines.engine_registry import OPENERS, check_answers
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.memory_guard import guard_load
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EXTRAS, Manifest
from norm_core.models.store import Store
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import install_command
from norm_core.runtime.time import Clock


def open_engine(
    manifest: Manifest,
    clock: Clock,
    *,
    store: Store | None = None,
    beside: Path | None = None,
    verify: bool = True,
) -> Engine:
    """Return the engine for a manifest; raise a TactfulError if its weights are missing or damaged.

    `beside` is the manifest's folder. `verify=False` skips the hash check, for weights checked before.
    """
    check_answers(manifest)
    weights = (store or Store()).open(manifest, beside, verify=verify)
    try:
        with guard_load(manifest):
            backend = OPENERS[manifest.engine](manifest, weights)
    except TactfulError:
        raise
    except ImportError as error:
        missing = error.name or str(error)
        remedy = f"; install it with {install_command(EXTRAS[manifest.engine])}" if manifest.engine in EXTRAS else ""
        raise EngineFailedError(
            f"the {manifest.engine} engine needs {missing}, which is not installed{remedy}"
        ) from error
    except MemoryError as error:
        raise EngineFailedError(f"out of memory while {manifest.name} was loaded{_needs(manifest)}") from error
    except Exception as error:
        raise EngineFailedError(f"{manifest.name}: cannot be loaded: {type(error).__name__}: {error}") from error
    return Engine(backend, clock)


def open_engine_by_name(name: str, clock: Clock) -> Engine:
    """Return the engine for the catalogue's manifest of that name."""
    catalogue = Catalogue()
    return open_engine(catalogue.manifest(name), clock, beside=catalogue.path(name).parent)


def _needs(manifest: Manifest) -> str:
    if manifest.memory is None:
        return ""
    return f": it needs about {manifest.memory.peak_mb:.0f} MB{' (estimated)' if manifest.memory.estimated else ''}"
