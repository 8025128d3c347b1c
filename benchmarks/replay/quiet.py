"""Host the nodes with every model switched off, to measure the replay alone."""

import sys
from typing import Any
from unittest.mock import patch

import numpy as np

from norm_core.records.presence import Face


class NoVoice:
    """A voice detector that finds no speech."""

    def __init__(self, *_: object) -> None:
        """Load nothing."""

    def reset(self) -> None:
        """Do nothing: it has no state."""

    def __call__(self, samples: Any) -> float:
        """Return 0, the probability of speech in any samples."""
        return 0.0


class NoFaces:
    """A face detector that finds nobody."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def find(self, frame: Any) -> tuple[Face, ...]:
        """Return no face for any frame."""
        return ()


class NoWords:
    """A recognizer that is never called, because nobody speaks."""

    def __init__(self, *_: Any) -> None: ...

    def recognize(self, segment: Any) -> Any:
        """Fail, because silence must not reach the recognizer."""
        raise AssertionError(f"asked about {np.shape(segment.samples)} samples of silence")


def switch_models_off() -> None:
    """Switch models off in this process. Raises AttributeError if a model's factory has a new name."""
    patch("norm_monitor.senses.speech.audio_front_end.Silero", NoVoice).start()
    patch("sim_replays.drivers.bag_driver.FaceFinder", NoFaces).start()


if __name__ == "__main__":
    switch_models_off()
    from norm_bench import node_host

    patch("norm_nodes.camera.FaceFinder", NoFaces).start()
    patch("norm_nodes.ears.Whisper", NoWords).start()
    sys.exit(node_host.main(sys.argv[1:]))
