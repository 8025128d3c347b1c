"""The nodes' host with every model switched off, so that what is measured is the replay and not the models."""

import sys
from typing import Any

import numpy as np

from norm_core.records.presence import Face
from norm_monitor.senses.speech import hearing
from sim_replays.drivers import bag_driver


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

    def recognise(self, segment: Any) -> Any:
        raise AssertionError(f"asked about {np.shape(segment.samples)} samples of silence")


def switch_models_off() -> None:
    """In this process."""
    hearing.Silero = NoVoice  # type: ignore[misc, assignment]
    bag_driver.FaceFinder = NoFaces  # type: ignore[misc, assignment]


if __name__ == "__main__":
    switch_models_off()
    from norm_nodes import camera, ears, host

    camera.FaceFinder = NoFaces
    ears.Whisper = NoWords
    sys.exit(host.main(sys.argv[1:]))
