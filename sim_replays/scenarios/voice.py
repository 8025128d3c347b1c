"""Synthesize speech with flite or espeak-ng, one process per piece, cached during a run."""

import shutil
import subprocess
import tempfile
from enum import StrEnum
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


class Speech(StrEnum):
    """The synthesizer: small recognizers understand flite well, espeak-ng supports more languages."""

    FLITE = "flite"
    ESPEAK = "espeak-ng"


@record
class Voice:
    """The settings by which each synthesizer sounds like one person."""

    espeak: str
    pitch: int = 50  # for espeak-ng, 0 to 99
    speed_wpm: int = 160
    flite: str = ""  # empty where flite lacks the language
    pitch_hz: int = 0  # for flite; 0: the voice's own
    stretch: float = 1.0  # for flite: slowdown factor


VOICES = {
    "robot_clear": Voice(espeak="en-us+m3", pitch=70, flite="kal16"),
    "robot_warm": Voice(espeak="en-us+m7", pitch=35, speed_wpm=155, flite="slt", pitch_hz=150, stretch=1.05),
    "woman_us": Voice(espeak="en-us+f4", pitch=70, flite="slt"),
    "woman_uk": Voice(espeak="en-gb+f4", pitch=50, flite="slt", pitch_hz=200, stretch=0.95),
    "man_us": Voice(espeak="en-us+m1", pitch=35, flite="rms"),
    "man_uk": Voice(espeak="en-gb+m2", pitch=38, flite="rms", pitch_hz=130),
    "man_scot": Voice(espeak="en-gb-scotland+m5", pitch=35, flite="awb"),
    "elder_man": Voice(espeak="en-gb+m1", pitch=22, speed_wpm=140, flite="rms", pitch_hz=85, stretch=1.15),
    "elder_woman": Voice(espeak="en-gb+f5", pitch=35, speed_wpm=140, flite="slt", pitch_hz=165, stretch=1.15),
    "girl": Voice(espeak="en-us+f2", pitch=85, flite="slt", pitch_hz=250),
    "boy": Voice(espeak="en-gb+f1", pitch=78, flite="slt", pitch_hz=230, stretch=1.05),
    "mandarin": Voice(espeak="cmn-latn-pinyin", speed_wpm=150),
}


class VoiceError(TactfulError, RuntimeError):
    """Speech cannot be made; the message gives the remedy."""

    exit_code = 3


def speak(text: str, voice_name: str, speech: Speech = Speech.FLITE) -> Sound:
    """Synthesize text, trimmed to its audible samples. The same text and voice give the same sound."""
    if voice_name not in VOICES:
        raise VoiceError(f"there is no voice {voice_name!r}; the voices are {', '.join(VOICES)}")
    program = shutil.which(speech)
    if program is None:
        raise VoiceError(f"{speech} is not installed: install it (apt install {speech}), or use the shipped bags")
    return _speak(text, VOICES[voice_name], speech, program)


@lru_cache(maxsize=4096)
def _speak(text: str, voice: Voice, speech: Speech, program: str) -> Sound:
    with tempfile.TemporaryDirectory(prefix="tactful-") as folder:
        path = Path(folder, "speech.wav")
        _run([program, *_arguments(text, voice, speech, path)], speech, text)
        spoken = path.read_bytes()
    rate_hz = int.from_bytes(spoken[24:28], "little")
    samples = np.frombuffer(spoken[_HEADER_BYTES : len(spoken) // 2 * 2], "<i2").astype(np.float32) / np.float32(2**15)
    sound = _trimmed(_resampled(samples, rate_hz))
    sound.flags.writeable = False
    return sound


def _arguments(text: str, voice: Voice, speech: Speech, path: Path) -> list[str]:
    if speech is Speech.ESPEAK:
        return ["-v", voice.espeak, "-p", str(voice.pitch), "-s", str(voice.speed_wpm), "-w", str(path), "--", text]
    if not voice.flite:
        raise VoiceError(f"flite has no voice like {voice.espeak}: use espeak-ng")
    pitch = ["--setf", f"int_f0_target_mean={voice.pitch_hz}"] if voice.pitch_hz else []
    return [
        "-voice", voice.flite, *pitch, "--setf", f"duration_stretch={voice.stretch:g}", "-t", text, "-o", str(path)
    ]  # fmt: skip


def _run(command: list[str], speech: Speech, text: str) -> None:
    try:
        subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
    except subprocess.TimeoutExpired as error:
        raise VoiceError(f"{speech} took more than {TIMEOUT_S:g} s for {text!r}") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise VoiceError(f"{speech} could not say {text!r}: {said or 'it said nothing'}") from error


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


def durations(encounter: Encounter, turn: ScriptedTurn, speech: Speech) -> tuple[float, ...]:
    """Return the duration of each piece of a turn, in its speaker's voice."""
    return tuple(len(speak(piece, encounter.voices[turn.speaker], speech)) / RATE_HZ for piece in turn.pieces)


def mix(encounter: Encounter, timeline: Timeline, seed: int, speech: Speech) -> Sound:
    """Mix one channel at RATE_HZ over the whole encounter, within full scale."""
    chance = np.random.default_rng([seed, 1])
    length = round(timeline.length_s * RATE_HZ)
    sound = _room(length, NOISE[encounter.noise], chance)
    for spoken in timeline.spoken:
        loudness = (ECHO if spoken.speaker == ROBOT else 1.0) * chance.uniform(1 - LOUDNESS_JITTER, 1 + LOUDNESS_JITTER)
        for piece in spoken.pieces:
            voice = speak(piece.text, encounter.voices[spoken.speaker], speech)
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
