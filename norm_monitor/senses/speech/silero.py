"""The Silero voice activity model, one block at a time, on one thread."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from faster_whisper.utils import get_assets_path

from norm_core.engines.onnx.session import in_order, open_session
from norm_core.engines.providers import OnFault, Provider
from norm_monitor.senses.microphone.pcm import Samples

# Samples of the previous block that the model sees again.
_CONTEXT = 64


class Silero:
    """Return the probability of speech in each block of a stream; reset it for a new stream."""

    def __init__(self, providers: Sequence[Provider] = ("cpu",), on_fault: OnFault = lambda fault: None) -> None:
        self._session = open_session(
            Path(get_assets_path(), "silero_vad_v6.onnx"),
            providers=in_order(providers),
            on_fault=on_fault,
            memory_arena=False,
        )
        self.reset()

    def reset(self) -> None:
        """Forget all earlier blocks."""
        self._h = np.zeros((1, 1, 128), np.float32)
        self._c = np.zeros((1, 1, 128), np.float32)
        self._context = np.zeros(_CONTEXT, np.float32)

    def __call__(self, block: Samples) -> float:
        """Return the probability of speech in the next block, and move on by it."""
        heard = np.concatenate((self._context, block))[None, :]
        probability, self._h, self._c = self._session.run(None, {"input": heard, "h": self._h, "c": self._c})
        self._context = block[-_CONTEXT:]
        # The last digits differ by processor.
        return round(float(np.asarray(probability).ravel()[0]), 3)
