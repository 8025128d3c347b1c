"""A host of nodes whose models of llama.cpp run out of memory at any picture, as `python -m` from a test."""

import sys

from norm_nodes.node_host import main

from norm_core.engines.engine_registry import OPENERS
from norm_core.models.manifest import EngineKind
from tests.norm_core.engines.scripted import BoundedBackend

if __name__ == "__main__":
    OPENERS[EngineKind.LLAMA_CPP] = lambda manifest, weights: BoundedBackend(room_bytes=0)
    sys.exit(main())
