"""Pictures and sound of an encounter: a photographed head in a drawn room, and synthetic voices in noise."""

import shutil
import subprocess
import tempfile
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from norm_core.decoding.picture_decoding import encode_jpeg
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_monitor.encounters.encounter import ROBOT, Encounter, Noise, ScriptedTurn
from norm_monitor.encounters.timeline import Sighting, Timeline

WIDTH_PX = 320
HEIGHT_PX = 240
# The distance of a person if the script states none.
USUAL_M = 1.4
# The turn of a head that looks away: sideways and down, as to a phone.
AWAY_YAW_DEG = 20.0
AWAY_PITCH_DEG = 30.0
JPEG_QUALITY = 75
Pixels = NDArray[np.uint8]

# The square part of the photograph that is used, and the centre and half axes of the head in it.
_BUST = (slice(0, 300), slice(70, 370))
_HEAD = (156, 102, 70, 92)
# The height of the square at one metre.
_LENS_PX = 300.0
# The largest height: if a person were nearer, the camera would see only a chin.
_MAX_SIDE_PX = 420
# Beyond this angle, the edge of a head is not hair.
_MAX_EDGE_DEG = 72.0

RATE_HZ = 16_000
# The peak of speech, as a share of full scale.
SPEECH_PEAK = 0.35
TIMEOUT_S = 20.0
_HEADER_BYTES = 44
# Samples below this share of the peak are silence at either end.
_MIN_AUDIBLE_RATIO = 0.01
FLITE = "flite"
# The loudness of the robot in its own microphone, relative to a person in front of it.
ECHO_RATIO = 0.4
# The root mean square of noise, as a share of full scale.
NOISE = {Noise.QUIET: 0.0004, Noise.ROOM: 0.0015, Noise.BUSY: 0.005}
# The share by which the loudness of a turn may vary.
MAX_LOUDNESS_JITTER = 0.15


class EncounterPictureError(TactfulError, RuntimeError):
    """A picture cannot be made. The message names the missing package."""

    exit_code = 3


def render_frame(timeline: Timeline, at_s: float) -> bytes:
    """Render the camera's JPEG at a time of the encounter."""
    image = _draw_room().copy()
    seen = [(index, person) for index, person in enumerate(timeline.people) if person.is_seen(at_s)]
    for index, person in sorted(seen, key=lambda entry: -_distance_m(entry[1], at_s)):
        _draw_person(image, person, at_s, (index + 1) / (len(timeline.people) + 1), mirrored=index % 2 == 1)
    return encode_jpeg(image, JPEG_QUALITY)


def render_empty_room() -> bytes:
    """Render the camera's JPEG of the empty room."""
    return encode_jpeg(_draw_room(), JPEG_QUALITY)


def _distance_m(person: Sighting, at_s: float) -> float:
    return person.distance_at(at_s) or USUAL_M


def _draw_person(image: Pixels, person: Sighting, at_s: float, centre: float, mirrored: bool) -> None:
    bust, mask = _load_bust(person.is_away(at_s))
    if mirrored:
        bust, mask = bust[:, ::-1], mask[:, ::-1]
    side = int(np.clip(_LENS_PX / _distance_m(person, at_s), 48, _MAX_SIDE_PX))
    small: Any = cv2.resize(bust, (side, side), interpolation=cv2.INTER_AREA)
    shape: Any = cv2.resize(mask, (side, side), interpolation=cv2.INTER_AREA)[..., np.newaxis]
    left, top = round(centre * WIDTH_PX - side / 2), max(HEIGHT_PX - side, 0)
    begin, end = max(left, 0), min(left + side, WIDTH_PX)
    area = image[top:, begin:end]
    part = (slice(0, HEIGHT_PX - top), slice(begin - left, end - left))
    area[:] = (small[part] * shape[part] + area * (1 - shape[part])).astype(np.uint8)


@cache
def _load_bust(away: bool) -> tuple[Pixels, NDArray[np.float32]]:
    bust = np.ascontiguousarray(_load_photograph()[_BUST])
    height, width = bust.shape[:2]
    x, y, half_width, half_height = _HEAD
    mask = np.zeros((height, width), np.float32)
    cv2.ellipse(mask, (x, y), (half_width + 6, half_height + 6), 0, 0, 360, 1.0, -1)
    cv2.ellipse(mask, (x, height), (width // 2, height // 3), 0, 0, 360, 1.0, -1)
    mask = np.asarray(cv2.GaussianBlur(mask, (9, 9), 0), np.float32)
    if away:
        bust = _turn_head(bust, AWAY_YAW_DEG, AWAY_PITCH_DEG)
    return bust, mask


def _turn_head(bust: Pixels, yaw_deg: float, pitch_deg: float) -> Pixels:
    """Turn the head to its left and down, as a ball. Newly visible parts repeat the edge."""
    x, y, half_width, half_height = _HEAD
    rows, columns = np.mgrid[: bust.shape[0], : bust.shape[1]].astype(np.float32)
    up = (rows - y) / half_height
    girth = half_width * np.sqrt(np.maximum(1 - up**2, 0.0))
    across = (columns - x) / np.maximum(girth, 1e-6)
    inside = np.abs(across) < 1
    edge = np.radians(_MAX_EDGE_DEG)
    longitude = np.clip(np.arcsin(np.clip(across, -1, 1)) - np.radians(yaw_deg), -edge, edge)
    latitude = np.clip(np.arcsin(np.clip(up, -1, 1)) - np.radians(pitch_deg) * np.cos(longitude), -edge, edge)
    source_x = np.where(inside, x + half_width * np.cos(latitude) * np.sin(longitude), columns)
    source_y = np.where(inside, y + half_height * np.sin(latitude), rows)
    turned = cv2.remap(bust, source_x.astype(np.float32), source_y.astype(np.float32), cv2.INTER_LINEAR)
    return np.asarray(turned, np.uint8)


@cache
def _draw_room() -> Pixels:
    image = np.full((HEIGHT_PX, WIDTH_PX, 3), (168, 172, 176), np.uint8)
    cv2.rectangle(image, (0, 200), (WIDTH_PX, HEIGHT_PX), (96, 104, 120), -1)
    cv2.rectangle(image, (232, 60), (300, 200), (110, 130, 150), -1)
    cv2.line(image, (266, 60), (266, 200), (90, 100, 120), 1)
    return image


@cache
def _load_photograph() -> Pixels:
    spec = find_spec("skimage")
    path = Path(spec.origin).parent / "data/astronaut.png" if spec and spec.origin else None
    image = cv2.imread(str(path)) if path and path.is_file() else None
    if image is None:
        raise EncounterPictureError(
            "scikit-image, whose photograph of a face is used, is not installed: pip install it"
        )
    return np.asarray(image, np.uint8)


Sound = NDArray[np.float32]


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
    sound = _trim(_resample(samples, rate_hz))
    sound.flags.writeable = False
    return sound


def _run(command: list[str], text: str) -> None:
    try:
        subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
    except subprocess.TimeoutExpired as error:
        raise VoiceError(f"{FLITE} took more than {TIMEOUT_S:g} s for {text!r}") from error
    except subprocess.CalledProcessError as error:
        complaint = error.stderr.decode(errors="replace").strip()
        raise VoiceError(f"{FLITE} could not say {text!r}: {complaint or 'it said nothing'}") from error


def _resample(samples: Sound, rate_hz: int) -> Sound:
    if not len(samples) or rate_hz == RATE_HZ:
        return samples
    length = round(len(samples) * RATE_HZ / rate_hz)
    spectrum = np.fft.rfft(samples)[: length // 2 + 1]
    return (np.fft.irfft(spectrum, length) * (length / len(samples))).astype(np.float32)


def _trim(samples: Sound) -> Sound:
    peak = float(np.abs(samples).max(initial=0))
    if not peak:
        raise VoiceError("there is speech without a sound")
    audible = np.flatnonzero(np.abs(samples) > _MIN_AUDIBLE_RATIO * peak)
    return np.ascontiguousarray(samples[audible[0] : audible[-1] + 1] * (SPEECH_PEAK / peak))


def durations(encounter: Encounter, turn: ScriptedTurn) -> tuple[float, ...]:
    """Return the duration of each piece of a turn, in its speaker's voice."""
    return tuple(len(speak(piece, encounter.voices[turn.speaker])) / RATE_HZ for piece in turn.pieces)


def mix(encounter: Encounter, timeline: Timeline, seed: int) -> Sound:
    """Mix one channel at RATE_HZ over the whole encounter, within full scale."""
    chance = np.random.default_rng([seed, 1])
    length = round(timeline.length_s * RATE_HZ)
    sound = _make_noise(length, NOISE[encounter.noise], chance)
    for spoken in timeline.spoken:
        loudness = (ECHO_RATIO if spoken.speaker == ROBOT else 1.0) * chance.uniform(
            1 - MAX_LOUDNESS_JITTER, 1 + MAX_LOUDNESS_JITTER
        )
        for piece in spoken.pieces:
            voice = speak(piece.text, encounter.voices[spoken.speaker])
            start = round(piece.start_s * RATE_HZ)
            sound[start : start + len(voice)] += np.float32(loudness) * voice[: max(0, length - start)]
    return np.clip(sound, -1.0, 1.0)


def _make_noise(length: int, loudness: float, chance: np.random.Generator) -> Sound:
    """Make noise that falls off towards high frequencies, like that of rooms."""
    white = chance.standard_normal(length).astype(np.float32)
    spectrum = np.fft.rfft(white)
    hertz = np.fft.rfftfreq(length, 1 / RATE_HZ)
    spectrum /= np.sqrt(np.maximum(hertz, 60.0))
    noise = np.fft.irfft(spectrum, length)
    return (noise * (loudness / max(float(np.sqrt(np.mean(noise**2))), 1e-12))).astype(np.float32)
