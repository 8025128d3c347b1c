"""Decode audio messages of any robot by their fields, because packages share names of types; and read sound files."""

from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from norm_core.records.record import record
from norm_core.records.stamps import join_stamp
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.microphone.pcm import (
    PcmFormat,
    Samples,
    SoundError,
    check_shape,
    decode_bytes,
    detect_compression,
    scale_samples,
)

# Types that `decode` reads by their fields. `up --init` offers their topics as microphones.
AUDIO_MESSAGES = ("AudioData", "AudioDataStamped", "AudioStamped", "AudioBuffer", "RawAudio")

# How the label begins in which a message without a header states its stamp.
_STAMP_LABEL = "stamp_ns="
# The sample format numbers of PortAudio, with the field of the samples.
_PORTAUDIO = {1: "float32_data", 2: "int32_data", 8: "int16_data", 16: "int8_data", 32: "uint8_data"}
_PORTAUDIO_DTYPES = {
    "float32_data": np.float32,
    "int32_data": np.int32,
    "int16_data": np.int16,
    "int8_data": np.int8,
    "uint8_data": np.uint8,
}


@record
class SoundChunk:
    """The samples of one message, with a row for each instant and a column for each channel."""

    samples: Samples
    rate_hz: int
    stamp_ns: int | None


def decode(message: Any, stated: PcmFormat) -> SoundChunk:
    """Return the samples of a message. `stated` supplies missing format fields. Raises SoundError if it is unusable."""
    if has_fields(message, "data", "sample_rate", "number_of_channels", "format"):  # foxglove RawAudio
        samples = _decode_raw(message.data, message.format)
        return _make_chunk(
            samples, int(message.number_of_channels), int(message.sample_rate), _to_ns(message.timestamp)
        )
    if has_fields(message, "frequency", "channel_map", "data"):  # naoqi AudioBuffer
        samples = scale_samples(np.asarray(message.data, np.int16))
        return _make_chunk(samples, len(message.channel_map), int(message.frequency), _to_ns(message.header.stamp))
    stamp_ns = _to_ns(message.header.stamp) if has_fields(message, "header") else _read_label_ns(message)
    body = getattr(message, "audio", message)
    if has_fields(body, "audio_data", "info"):  # PortAudio's numbers
        return _make_chunk(_decode_portaudio(body), int(body.info.channels), int(body.info.rate), stamp_ns)
    if has_fields(body, "int16_data"):
        raise SoundError(
            "audio_without_info",
            "this message holds samples without their rate: subscribe the AudioStamped or Audio topic instead",
        )
    if has_fields(message, "layout", "data") and _holds_int16(message.data):  # an Int16MultiArray
        return _make_chunk(scale_samples(np.asarray(message.data, np.int16)), stated.channels, stated.rate_hz, stamp_ns)
    if has_fields(body, "data") and _holds_bytes(body):  # bytes only, with or without a stamp
        return _make_chunk(_decode_raw(body.data, stated.sample_format), stated.channels, stated.rate_hz, stamp_ns)
    raise SoundError("audio_type_unknown", f"{type(message).__name__} has none of the fields of an audio message")


def make_stamp_label(stamp_ns: int) -> str:
    """Return the layout label in which a UInt8MultiArray states the stamp of its first sample, as it has no header."""
    return f"{_STAMP_LABEL}{stamp_ns}"


def read_format(info: Any, otherwise: PcmFormat) -> PcmFormat:
    """Return the format in an AudioInfo message. `otherwise` supplies its empty fields.

    Raises SoundError for another message or a compressed stream.
    """
    if has_fields(info, "sample_rate", "sample_format", "coding_format"):
        coding = str(info.coding_format).lower()
        if coding not in ("", "wave", "wav", "raw", "pcm"):
            raise SoundError(
                "audio_compressed", f"the stream is {coding}: let the capture node publish raw samples (format wave)"
            )
        return PcmFormat(
            sample_format=str(info.sample_format) or otherwise.sample_format,
            rate_hz=int(info.sample_rate) or otherwise.rate_hz,
            channels=int(info.channels) or otherwise.channels,
        )
    raise SoundError("audio_type_unknown", f"{type(info).__name__} has none of the fields of an AudioInfo message")


def has_fields(message: Any, *names: str) -> bool:
    """Whether a message has all these fields."""
    return all(map(hasattr, repeat(message), names))


def _to_ns(stamp: Any) -> int:
    return join_stamp(int(stamp.sec), int(stamp.nanosec))


def _read_label_ns(message: Any) -> int | None:
    """Return the stamp in the layout label of a message; None without one."""
    dimensions: Any = message.layout.dim if has_fields(message, "layout") else ()
    label = str(dimensions[0].label) if len(dimensions) else ""
    digits = label.removeprefix(_STAMP_LABEL)
    return int(digits) if digits != label and digits.isdecimal() else None


def _holds_bytes(body: Any) -> bool:
    """Whether `data` holds bytes of sound: pictures, video, maps, clouds and number arrays call their field so too."""
    if any(hasattr(body, name) for name in ("format", "encoding", "width", "fields", "info")):
        return False
    if isinstance(body.data, np.ndarray):
        return bool(body.data.dtype == np.uint8)
    return isinstance(body.data, bytes | bytearray | list) or getattr(body.data, "typecode", "") == "B"


def _holds_int16(data: Any) -> bool:
    return getattr(data, "dtype", None) == np.int16 or getattr(data, "typecode", "") == "h"


def _decode_raw(data: Any, sample_format: str) -> Samples:
    raw = data.tobytes() if hasattr(data, "tobytes") else bytes(data)
    kind = detect_compression(raw)
    if kind:
        raise SoundError(
            "audio_compressed", f"the stream is {kind}: let the capture node publish raw samples (format wave)"
        )
    return decode_bytes(raw, sample_format)


def _decode_portaudio(body: Any) -> Samples:
    field = _PORTAUDIO.get(int(body.info.format))
    if field is None:
        formats = ", ".join(map(str, _PORTAUDIO))
        raise SoundError("audio_format_unknown", f"PortAudio format {body.info.format} is unknown; known are {formats}")
    return scale_samples(np.asarray(getattr(body.audio_data, field), _PORTAUDIO_DTYPES[field]))


def _make_chunk(samples: Samples, channels: int, rate_hz: int, stamp_ns: int | None) -> SoundChunk:
    check_shape(rate_hz, channels)
    if not len(samples):
        raise SoundError("audio_empty", "a message without a single sample")
    complete_rows = samples[: len(samples) // channels * channels].reshape(-1, channels)
    # A publisher that never sets its stamp leaves it at zero.
    return SoundChunk(samples=complete_rows, rate_hz=rate_hz, stamp_ns=stamp_ns or None)


class SoundFileError(TactfulError, ValueError):
    """A file contains no readable sound."""


def read_sound_file(path: Path, start_ns: int = 0) -> Iterator[SoundChunk]:
    """Yield the sound in a file of any format that FFmpeg reads, stamped from `start_ns` on.

    Raises SoundFileError for a file without readable sound.
    """
    # Imported here: no node reads sound from files.
    import av  # noqa: PLC0415

    try:
        with av.open(str(path)) as container:
            if not container.streams.audio:
                raise SoundFileError(f"{path}: holds no sound")
            sample_count = 0
            for frame in container.decode(container.streams.audio[0]):
                array = frame.to_ndarray()
                channels = len(frame.layout.channels)
                is_planar = array.shape[0] == channels and frame.format.is_planar
                samples = scale_samples(array.T if is_planar else array.reshape(-1, channels))
                stamp_ns = start_ns + sample_count * NS_PER_S // frame.sample_rate
                yield SoundChunk(samples=np.ascontiguousarray(samples), rate_hz=frame.sample_rate, stamp_ns=stamp_ns)
                sample_count += len(samples)
    except SoundFileError:
        raise
    except (av.error.FFmpegError, OSError, ValueError) as error:  # ValueError: samples of 64 bits
        raise SoundFileError(f"{path}: cannot be read as sound: {error}") from error
