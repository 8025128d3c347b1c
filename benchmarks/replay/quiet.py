"""The nodes' host with every model switched off, so that what is measured is the replay and not the models."""

import sys
from typing import Any
from unittest.mock import patch

import numpy as np

from norm_core.records.presence import Face


class NoVoice:
    """Hears no speech in anything."""

    def reset(self) -> None: ...

    def __call__(self, samples: Any) -> float:
        return 0.0


class NoFaces:
    """Sees nobody."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def find(self, frame: Any) -> tuple[Face, ...]:
        return ()


class NoWords:
    """Is never asked, as nobody speaks."""

    def __init__(self, *_: Any) -> None: ...

    def recognize(self, segment: Any) -> Any:
        raise AssertionError(f"asked about {np.shape(segment.samples)} samples of silence")


def switch_models_off() -> None:
    """In this process; AttributeError where a model is no longer opened by that name."""
    patch("norm_monitor.senses.speech.audio_front_end.Silero", NoVoice).start()
    patch("sim_replays.drivers.bag_driver.FaceFinder", NoFaces).start()


if __name__ == "__main__":
    switch_models_off()
    from norm_nodes import node_host

    patch("norm_nodes.camera.FaceFinder", NoFaces).start()
    patch("norm_nodes.ears.Whisper", NoWords).start()
    sys.exit(node_host.main(sys.argv[1:]))
