"""Mix the robot's microphone signal: everyone's speech, the robot's echo and room noise."""

import numpy as np

from sim_replays.scenarios.encounter import ROBOT, Encounter, Noise, ScriptedTurn
from sim_replays.scenarios.timeline import Timeline
from sim_replays.scenarios.voice import RATE_HZ, Sound, Speech, speak

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
