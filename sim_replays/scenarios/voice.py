"""Synthetic speech by espeak-ng, one process a piece, kept for the length of a run."""

import shutil
import subprocess
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from norm_core.error import TactfulError
from norm_core.record import record

RATE_HZ = 16_000
LOUDEST = 0.35  # peak of speech, in shares of full scale
TIMEOUT_S = 20.0
Sound = NDArray[np.float32]

_HEADER_BYTES = 44
_SILENT = 0.01  # what is below this share of the peak at either end is no speech


@record
class Voice:
    """How espeak-ng is to speak; variant names one of its voices."""

    variant: str
    pitch: int = 50  # 0 to 99
    speed_wpm: int = 165


VOICES = {
    "robot_clear": Voice(variant="en-us+m3", pitch=70, speed_wpm=160),
    "robot_warm": Voice(variant="en-us+m7", pitch=35, speed_wpm=155),
    "woman_us": Voice(variant="en-us+f4", pitch=70, speed_wpm=160),
    "woman_uk": Voice(variant="en-gb+f4", pitch=50, speed_wpm=165),
    "man_us": Voice(variant="en-us+m1", pitch=35, speed_wpm=160),
    "man_uk": Voice(variant="en-gb+m2", pitch=38, speed_wpm=160),
    "man_scot": Voice(variant="en-gb-scotland+m5", pitch=35, speed_wpm=160),
    "elder_man": Voice(variant="en-gb+m1", pitch=22, speed_wpm=140),
    "elder_woman": Voice(variant="en-gb+f5", pitch=35, speed_wpm=140),
    "girl": Voice(variant="en-us+f2", pitch=85, speed_wpm=160),
    "boy": Voice(variant="en-gb+f1", pitch=78, speed_wpm=160),
    "mandarin": Voice(variant="cmn", pitch=50, speed_wpm=150),
}


class VoiceError(TactfulError, RuntimeError):
    """Speech that could not be made; the message says what to install or mend."""

    exit_code = 3


def speak(text: str, voice_name: str) -> Sound:
    """The sound of text from its first to its last audible sample; the same text and voice sound the same."""
    if voice_name not in VOICES:
        raise VoiceError(f"there is no voice {voice_name!r}; the voices are {', '.join(VOICES)}")
    return _speak(text, VOICES[voice_name])


@lru_cache(maxsize=4096)
def _speak(text: str, voice: Voice) -> Sound:
    program = shutil.which("espeak-ng")
    if program is None:
        raise VoiceError("espeak-ng is not installed: install it (apt install espeak-ng), or use the shipped bags")
    command = [program, "-v", voice.variant, "-p", str(voice.pitch), "-s", str(voice.speed_wpm), "--stdout", "--", text]
    try:
        spoken = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True).stdout
    except subprocess.TimeoutExpired as error:
        raise VoiceError(f"espeak-ng took more than {TIMEOUT_S:g} s for {text!r}") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise VoiceError(f"espeak-ng could not speak with {voice.variant}: {said or 'it said nothing'}") from error
    rate_hz = int.from_bytes(spoken[24:28], "little")
    samples = np.frombuffer(spoken[_HEADER_BYTES : len(spoken) // 2 * 2], "<i2").astype(np.float32) / np.float32(2**15)
    sound = _trimmed(_resampled(samples, rate_hz))
    sound.flags.writeable = False
    return sound


def _resampled(samples: Sound, rate_hz: int) -> Sound:
    """At RATE_HZ, by leaving out the frequencies that it cannot hold."""
    if not len(samples) or rate_hz == RATE_HZ:
        return samples
    length = round(len(samples) * RATE_HZ / rate_hz)
    spectrum = np.fft.rfft(samples)[: length // 2 + 1]
    return (np.fft.irfft(spectrum, length) * (length / len(samples))).astype(np.float32)


def _trimmed(samples: Sound) -> Sound:
    peak = float(np.abs(samples).max(initial=0))
    if not peak:
        raise VoiceError("espeak-ng spoke without a sound")
    audible = np.flatnonzero(np.abs(samples) > _SILENT * peak)
    return np.ascontiguousarray(samples[audible[0] : audible[-1] + 1] * (LOUDEST / peak))
