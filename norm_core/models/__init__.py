"""Manifests, weights and quantization of the models that Tactful can ask."""

from typing import TYPE_CHECKING

from norm_core.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from norm_core.models.catalogue import Catalogue
    from norm_core.models.download import PullError
    from norm_core.models.lock import Lock, read_lock
    from norm_core.models.manifest import EngineKind, HashedFile, Manifest, MemoryNeed, ModelFile, ModelSource, Task
    from norm_core.models.pull import Origin, pull_model
    from norm_core.models.store import Damage, ModelFiles, Store, find_damages

__all__ = [
    "Catalogue",
    "Damage",
    "EngineKind",
    "HashedFile",
    "Lock",
    "Manifest",
    "MemoryNeed",
    "ModelFile",
    "ModelFiles",
    "ModelSource",
    "Origin",
    "PullError",
    "Store",
    "Task",
    "find_damages",
    "pull_model",
    "read_lock",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "catalogue": ("Catalogue",),
            "download": ("PullError",),
            "lock": ("Lock", "read_lock"),
            "manifest": ("EngineKind", "HashedFile", "Manifest", "MemoryNeed", "ModelFile", "ModelSource", "Task"),
            "pull": ("Origin", "pull_model"),
            "store": ("Damage", "ModelFiles", "Store", "find_damages"),
        },
    )
