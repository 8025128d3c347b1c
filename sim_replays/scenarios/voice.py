"""Synthesize speech with flite, one process per piece, cached during a run."""

import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from sim_replays.scenarios.encounter import ROBOT, Encounter, Noise, ScriptedTurn
from sim_replays.scenarios.timeline import Timeline

RATE_HZ = 16_000
LOUDEST = 0.35  # peak of speech as a share of full scale
TIMEOUT_S = 20.0
Sound = NDArray[np.float32]

_HEADER_BYTES = 44
_SILENT = 0.01  # samples below this share of the peak are silence at either end
FLITE = "flite"


@record
class Voice:
    """The settings by which flite sounds like one person."""

    flite: str
    pitch_hz: int = 0  # 0: the voice's own
    stretch: float = 1.0  # slowdown factor


VOICES = {
    "robot_clear": Voice(flite="kal16"),
    "robot_warm": Voice(flite="slt", pitch_hz=150, stretch=1.05),
    "woman_us": Voice(flite="slt"),
    "woman_uk": Voice(flite="slt", pitch_hz=200, stretch=0.95),
    "man_us": Voice(flite="rms"),
    "man_uk": Voice(flite="rms", pitch_hz=130),
    "man_scot": Voice(flite="awb"),
    "elder_man": Voice(flite="rms", pitch_hz=85, stretch=1.15),
    "elder_woman": Voice(flite="slt", pitch_hz=165, stretch=1.15),
    "girl": Voice(flite="slt", pitch_hz=250),
    "boy": Voice(flite="slt", pitch_hz=230, stretch=1.05),
}


class VoiceError(TactfulError, RuntimeError):
    """Speech cannot be made; the message gives the remedy."""

    exit_code = 3


def speak(text: str, voice_name: str) -> Sound:
    """Synthesize text, trimmed to its audible samples. The same text and voice give the same sound."""
    if voice_name not in VOICES:
        raise VoiceError(f"there is no voice {voice_name!r}; the voices are {', '.join(VOICES)}")
    program = shutil.which(FLITE)
    if program is None:
        raise VoiceError(f"{FLITE} is not installed: install it (apt install {FLITE}), or use the shipped bags")
    return _speak(text, VOICES[voice_name], program)


@lru_cache(maxsize=4096)
def _speak(text: str, voice: Voice, program: str) -> Sound:
    pitch = ["--setf", f"int_f0_target_mean={voice.pitch_hz}"] if voice.pitch_hz else []
    with tempfile.TemporaryDirectory(prefix="tactful-") as folder:
        path = Path(folder, "speech.wav")
        stretch = ["--setf", f"duration_stretch={voice.stretch:g}"]
        _run([program, "-voice", voice.flite, *pitch, *stretch, "-t", text, "-o", str(path)], text)
        spoken = path.read_bytes()
    rate_hz = int.from_bytes(spoken[24:28], "little")
    samples = np.frombuffer(spoken[_HEADER_BYTES : len(spoken) // 2 * 2], "<i2").astype(np.float32) / np.float32(2**15)
    sound = _trimmed(_resampled(samples, rate_hz))
    sound.flags.writeable = False
    return sound


def _run(command: list[str], text: str) -> None:
    try:
        subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
    except subprocess.TimeoutExpired as error:
        raise VoiceError(f"{FLITE} took more than {TIMEOUT_S:g} s for {text!r}") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise VoiceError(f"{FLITE} could not say {text!r}: {said or 'it said nothing'}") from error


def _resampled(samples: Sound, rate_hz: int) -> Sound:
    """Resample to RATE_HZ, with a low-pass filter."""
    if not len(samples) or rate_hz == RATE_HZ:
        return samples
    length = round(len(samples) * RATE_HZ / rate_hz)
    spectrum = np.fft.rfft(samples)[: length // 2 + 1]
    return (np.fft.irfft(spectrum, length) * (length / len(samples))).astype(np.float32)


def _trimmed(samples: Sound) -> Sound:
    peak = float(np.abs(samples).max(initial=0))
    if not peak:
        raise VoiceError("there is speech without a sound")
    audible = np.flatnonzero(np.abs(samples) > _SILENT * peak)
    return np.ascontiguousarray(samples[audible[0] : audible[-1] + 1] * (LOUDEST / peak))


ECHO = 0.4  # loudness of the robot's own voice in its microphone, relative to a person in front of it
NOISE = {Noise.QUIET: 0.0004, Noise.ROOM: 0.0015, Noise.BUSY: 0.005}  # root mean square as a share of full scale
LOUDNESS_JITTER = 0.15


def durations(encounter: Encounter, turn: ScriptedTurn) -> tuple[float, ...]:
    """Return the duration of each piece of a turn, in its speaker's voice."""
    return tuple(len(speak(piece, encounter.voices[turn.speaker])) / RATE_HZ for piece in turn.pieces)


def mix(encounter: Encounter, timeline: Timeline, seed: int) -> Sound:
    """Mix one channel at RATE_HZ over the whole encounter, within full scale."""
    chance = np.random.default_rng([seed, 1])
    length = round(timeline.length_s * RATE_HZ)
    sound = _room(length, NOISE[encounter.noise], chance)
    for spoken in timeline.spoken:
        loudness = (ECHO if spoken.speaker == ROBOT else 1.0) * chance.uniform(1 - LOUDNESS_JITTER, 1 + LOUDNESS_JITTER)
        for piece in spoken.pieces:
            voice = speak(piece.text, encounter.voices[spoken.speaker])
            start = round(piece.start_s * RATE_HZ)
            sound[start : start + len(voice)] += np.float32(loudness) * voice[: max(0, length - start)]
    return np.clip(sound, -1.0, 1.0)


def _room(length: int, loudness: float, chance: np.random.Generator) -> Sound:
    """Make noise that falls off towards high frequencies, like that of rooms."""
    white = chance.standard_normal(length).astype(np.float32)
    spectrum = np.fft.rfft(white)
    hertz = np.fft.rfftfreq(length, 1 / RATE_HZ)
    spectrum /= np.sqrt(np.maximum(hertz, 60.0))
    noise = np.fft.irfft(spectrum, length)
    return (noise * (loudness / max(float(np.sqrt(np.mean(noise**2))), 1e-12))).astype(np.float32)
