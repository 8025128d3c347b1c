"""A streaming resampler whose output does not depend on the chunk sizes."""

from math import gcd

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from norm_monitor.senses.microphone.pcm import Samples

# Zero crossings of the windowed sinc per side, the window's shape, and the fraction of the passband.
_CROSSINGS, _BETA, _KEPT = 24, 9.0, 0.94


class Resampler:
    """Resample in blocks of a fixed length; output n is exactly at n / to_hz seconds.

    A polyphase FIR: each block is computed from the same inputs in the same order, for any chunk sizes.
    """

    def __init__(self, from_hz: int, to_hz: int, block: int) -> None:
        common = gcd(from_hz, to_hz)
        self._up, self._down = to_hz // common, from_hz // common
        self._block = block
        self._phases = _phases(self._up, self._down) if self._up != self._down else None
        self._half = 0 if self._phases is None else self._phases.shape[1] // 2
        self._input: Samples = np.zeros(self._half, np.float32)
        self._input_start = -self._half  # the index of the first buffered input
        self._received = self._made = 0

    def feed(self, samples: Samples) -> list[Samples]:
        """Add samples and return the blocks that they complete."""
        self._received += len(samples)
        self._input = np.concatenate((self._input, samples))
        blocks = []
        while (block := self._next_block()) is not None:
            blocks.append(block)
        return blocks

    def flush(self) -> list[Samples]:
        """Return the rest, padded with silence; the resampler cannot be used afterwards."""
        due = -(-self._received * self._up // self._down)
        lacking = -(-(due - self._made) // self._block)
        padding = (lacking * self._block * self._down) // self._up + 2 * self._half + 2
        return self.feed(np.zeros(padding, np.float32))[:lacking]

    def _next_block(self) -> Samples | None:
        last = (self._made + self._block - 1) * self._down // self._up
        if last + self._half >= self._input_start + len(self._input):
            return None
        block = self._copied() if self._phases is None else self._filtered(self._phases)
        self._made += self._block
        spent = min((self._made * self._down) // self._up - self._half - self._input_start, len(self._input))
        self._input, self._input_start = self._input[spent:], self._input_start + spent
        return block

    def _copied(self) -> Samples:
        first = self._made - self._input_start
        return self._input[first : first + self._block].copy()

    def _filtered(self, phases: NDArray[np.float32]) -> Samples:
        positions = np.arange(self._made, self._made + self._block, dtype=np.int64) * self._down
        first_inputs = positions // self._up - self._half - self._input_start
        windows = sliding_window_view(self._input, phases.shape[1])[first_inputs]
        return np.asarray(np.einsum("ij,ij->i", windows, phases[positions % self._up]), np.float32)


def _phases(up: int, down: int) -> NDArray[np.float32]:
    """Return one row of coefficients per position between two inputs; each row preserves a constant."""
    cutoff = min(1.0, up / down) * _KEPT
    half = int(np.ceil(_CROSSINGS / cutoff))
    offsets = np.arange(-half, half + 1)[None, :] - (np.arange(up) / up)[:, None]
    window = np.i0(_BETA * np.sqrt(np.clip(1.0 - (offsets / (half + 1)) ** 2, 0.0, None)))
    rows = np.sinc(offsets * cutoff) * window
    return np.asarray(rows / rows.sum(axis=1, keepdims=True), np.float32)
