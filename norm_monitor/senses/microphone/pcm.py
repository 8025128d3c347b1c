"""Convert audio bytes to samples, and recognize compressed streams."""

from math import gcd
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError

Samples = NDArray[np.float32]

MIN_RATE_HZ = 8_000
MAX_RATE_HZ = 96_000
MAX_CHANNELS = 8

# Other names of the sample formats.
_NAMES = {
    "pcm-s16": "s16le", "s16": "s16le", "int16": "s16le", "wave": "s16le", "pcm": "s16le", "pcm-s16le": "s16le",
    "pcm-s8": "s8", "int8": "s8", "uint8": "u8", "pcm-s32": "s32le", "s32": "s32le", "int32": "s32le",
    "f32": "f32le", "float32": "f32le", "pcm-f32": "f32le", "s24": "s24le", "pcm-s24": "s24le",
    "u16": "u16le", "f64": "f64le",
}  # fmt: skip

# By sample format: numpy type, offset and full scale.
_TYPES: dict[str, tuple[str, float, float]] = {
    "s8": ("i1", 0.0, 2.0**7),
    "u8": ("u1", 2.0**7, 2.0**7),
    "s16le": ("<i2", 0.0, 2.0**15),
    "s16be": (">i2", 0.0, 2.0**15),
    "u16le": ("<u2", 2.0**15, 2.0**15),
    "s32le": ("<i4", 0.0, 2.0**31),
    "s32be": (">i4", 0.0, 2.0**31),
    "f32le": ("<f4", 0.0, 1.0),
    "f32be": (">f4", 0.0, 1.0),
    "f64le": ("<f8", 0.0, 1.0),
}

# MPEG audio: kbit/s of layer III by version, and the base sample rates.
_MP3_KBPS = {
    1: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_MP3_RATES_HZ = (44_100, 48_000, 32_000)
# How compressed files begin.
_CONTAINERS = {b"ID3": "mp3", b"OggS": "ogg", b"fLaC": "flac", b"RIFF": "wav"}

# The zero crossings of the windowed sinc on each side, the shape of the Kaiser window, and the share of the passband.
_ZERO_CROSSINGS = 24
_WINDOW_BETA = 9.0
_PASSBAND_RATIO = 0.94


class SoundError(TactfulError, ValueError):
    """Unusable sound. `fault` names its counter, and the message gives the remedy."""

    def __init__(self, fault: str, message: str) -> None:
        super().__init__(message)
        self.fault = fault


@record
class PcmFormat:
    """The layout of samples in bytes without a description."""

    sample_format: str = "s16le"
    rate_hz: int = 16_000
    channels: int = 1


def check_shape(rate_hz: int, channels: int) -> None:
    """Raise SoundError for a rate or channel count that no microphone has."""
    if not MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ:
        raise SoundError("audio_rate_refused", f"{rate_hz} Hz is outside {MIN_RATE_HZ} to {MAX_RATE_HZ} Hz")
    if not 1 <= channels <= MAX_CHANNELS:
        raise SoundError("audio_channels_refused", f"{channels} channels are not 1 to {MAX_CHANNELS}")


def decode_bytes(data: bytes, sample_format: str) -> Samples:
    """Return samples between -1 and 1 from bytes, without a truncated last sample. Raises SoundError if unknown."""
    name = sample_format.strip().lower()
    name = _NAMES.get(name, name)
    if name == "s24le":
        whole = np.frombuffer(data, np.uint8, len(data) // 3 * 3).reshape(-1, 3)
        wide = np.zeros((len(whole), 4), np.uint8)
        wide[:, 1:] = whole
        return scale_samples(wide.view("<i4").ravel())
    if name not in _TYPES:
        formats = ", ".join([*_TYPES, "s24le"])
        raise SoundError("audio_format_unknown", f"the sample format {sample_format!r} is unknown; known are {formats}")
    kind, offset, scale = _TYPES[name]
    samples = np.frombuffer(data, kind, len(data) // np.dtype(kind).itemsize).astype(np.float32)
    if offset:
        samples -= np.float32(offset)
    if scale != 1.0:
        samples *= np.float32(1.0 / scale)  # a power of two: no rounding
    return samples


def measure_sample_bytes(sample_format: str) -> int:
    """Return the size of one sample in bytes. Raises SoundError for an unknown format."""
    return 24 // len(decode_bytes(bytes(24), sample_format))


def scale_samples(values: Any) -> Samples:
    """Return samples between -1 and 1 from an array, whose element type determines their scale."""
    array = np.asarray(values)
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    if array.dtype == np.uint8:
        return ((array.astype(np.float32) - 128.0) / 128.0).astype(np.float32)
    return (array / float(-int(np.iinfo(array.dtype).min))).astype(np.float32)


def detect_compression(data: bytes) -> str | None:
    """Return the name of the data's compressed format, or None if it may be samples."""
    for magic, name in _CONTAINERS.items():
        if data.startswith(magic):
            return name
    length = _read_mp3_frame_length(data)
    if length is None:
        return None
    # Samples may look like the header of a frame, but hardly again where the next frame would begin.
    rest = data[length:]
    return "mp3" if not rest or _read_mp3_frame_length(rest) is not None else None


def _read_mp3_frame_length(data: bytes) -> int | None:
    """Return the length in bytes of the MP3 frame with which data begin; None for other data."""
    if len(data) < 4 or data[0] != 0xFF or data[1] & 0xE0 != 0xE0:
        return None
    version_bits, layer_bits = data[1] >> 3 & 3, data[1] >> 1 & 3
    bitrate_index, rate_index, padding = data[2] >> 4, data[2] >> 2 & 3, data[2] >> 1 & 1
    if version_bits == 1 or layer_bits != 1 or bitrate_index in (0, 15) or rate_index == 3:
        return None
    version = 1 if version_bits == 3 else 2
    rate_hz = _MP3_RATES_HZ[rate_index] // {3: 1, 2: 2, 0: 4}[version_bits]
    samples = 144 if version == 1 else 72
    return samples * _MP3_KBPS[version][bitrate_index] * 1000 // rate_hz + padding


class Resampler:
    """A polyphase FIR resampler with blocks of a fixed length. Output n is exactly at n / to_hz seconds.

    Each block is computed from the same inputs in the same order, for any chunk sizes.
    """

    def __init__(self, from_hz: int, to_hz: int, block: int) -> None:
        common = gcd(from_hz, to_hz)
        self._up, self._down = to_hz // common, from_hz // common
        self._block = block
        self._phases = _make_phases(self._up, self._down) if self._up != self._down else None
        self._half = 0 if self._phases is None else self._phases.shape[1] // 2
        self._input: Samples = np.zeros(self._half, np.float32)
        self._input_start = -self._half  # the index of the first buffered input
        self._received = self._output_count = 0

    def feed(self, samples: Samples) -> list[Samples]:
        """Add samples and return the blocks that they complete."""
        self._received += len(samples)
        self._input = np.concatenate((self._input, samples))
        blocks = []
        while (block := self._next_block()) is not None:
            blocks.append(block)
        return blocks

    def flush(self) -> list[Samples]:
        """Return the last blocks, padded with silence. The resampler cannot be used afterwards."""
        due = -(-self._received * self._up // self._down)
        lacking = -(-(due - self._output_count) // self._block)
        padding = (lacking * self._block * self._down) // self._up + 2 * self._half + 2
        return self.feed(np.zeros(padding, np.float32))[:lacking]

    def _next_block(self) -> Samples | None:
        """Return the next block, or None if inputs are missing."""
        last = (self._output_count + self._block - 1) * self._down // self._up
        if last + self._half >= self._input_start + len(self._input):
            return None
        first = self._output_count - self._input_start
        block = self._filter(self._phases) if self._phases is not None else self._input[first:][: self._block].copy()
        self._output_count += self._block
        spent = min((self._output_count * self._down) // self._up - self._half - self._input_start, len(self._input))
        self._input, self._input_start = self._input[spent:], self._input_start + spent
        return block

    def _filter(self, phases: NDArray[np.float32]) -> Samples:
        positions = np.arange(self._output_count, self._output_count + self._block, dtype=np.int64) * self._down
        first_inputs = positions // self._up - self._half - self._input_start
        windows = sliding_window_view(self._input, phases.shape[1])[first_inputs]
        return np.asarray(np.einsum("ij,ij->i", windows, phases[positions % self._up]), np.float32)


def _make_phases(up: int, down: int) -> NDArray[np.float32]:
    """Return a row of coefficients for each position between two inputs. Each row preserves a constant."""
    cutoff = min(1.0, up / down) * _PASSBAND_RATIO
    half = int(np.ceil(_ZERO_CROSSINGS / cutoff))
    offsets = np.arange(-half, half + 1)[None, :] - (np.arange(up) / up)[:, None]
    window = np.i0(_WINDOW_BETA * np.sqrt(np.clip(1.0 - (offsets / (half + 1)) ** 2, 0.0, None)))
    rows = np.sinc(offsets * cutoff) * window
    return np.asarray(rows / rows.sum(axis=1, keepdims=True), np.float32)
