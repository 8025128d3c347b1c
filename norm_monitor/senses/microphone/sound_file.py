"""Read audio files as chunks of sound, like a microphone's."""

from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np

from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.microphone.audio_message import SoundChunk
from norm_monitor.senses.microphone.pcm import scaled


class SoundFileError(TactfulError, ValueError):
    """A file contains no readable sound."""


def chunks_of(path: Path, start_ns: int = 0) -> Iterator[SoundChunk]:
    """Yield the sound in a file (wav, flac and other FFmpeg formats), stamped from `start_ns` on."""
    try:
        with av.open(str(path)) as container:
            if not container.streams.audio:
                raise SoundFileError(f"{path}: holds no sound")
            done = 0
            for frame in container.decode(container.streams.audio[0]):
                array, channels = frame.to_ndarray(), len(frame.layout.channels)
                planar = array.shape[0] == channels and frame.format.is_planar
                samples = scaled(array.T if planar else array.reshape(-1, channels))
                stamp_ns = start_ns + done * NS_PER_S // frame.sample_rate
                yield SoundChunk(samples=np.ascontiguousarray(samples), rate_hz=frame.sample_rate, stamp_ns=stamp_ns)
                done += len(samples)
    except (av.error.FFmpegError, OSError) as error:
        raise SoundFileError(f"{path}: cannot be read as sound: {error}") from error
