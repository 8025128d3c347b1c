"""Transcribe a clip's sound with the robot's ears, along the path of a microphone."""

from dataclasses import replace
from pathlib import Path

from norm_core.health.health_log import HealthLog
from norm_core.records.speech import Utterance
from norm_core.runtime.time import NS_PER_S
from norm_monitor.ears import Ears
from norm_monitor.senses.microphone.audio_message import read_sound_file
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.items.clip import VIDEO_SUFFIXES, VIDEOS
from sim_replays.items.target import SuiteError

AUDIO = "audio"
AUDIO_SUFFIXES = (".wav", ".flac", ".mp3", ".m4a", ".ogg")
# A stamp of zero means "not set".
_BASE_NS = NS_PER_S


class ClipTranscriber:
    """Transcribe clips with one model per language. A clip shared by several norms is transcribed once."""

    def __init__(self, model: str = "") -> None:
        self._model = model
        self._whispers: dict[str, tuple[HearingConfig, Whisper]] = {}
        self._heard: dict[Path, tuple[Utterance, ...]] = {}

    def heard(self, folder: Path, clip: str, language: str) -> tuple[Utterance, ...]:
        """Transcribe folder/audio/CLIP.wav or folder/videos/CLIP.mp4, with stamps from the clip's start."""
        path = _sound(folder, clip)
        if path not in self._heard:
            self._heard[path] = self._written(path, language)
        return self._heard[path]

    def _written(self, path: Path, language: str) -> tuple[Utterance, ...]:
        if language not in self._whispers:
            whisper = WhisperConfig(model=self._model, language=language)
            config = HearingConfig(partial_every_s=0, whisper=whisper)
            self._whispers[language] = config, Whisper(whisper)
        config, whisper_model = self._whispers[language]
        ears = Ears(config, HealthLog(), whisper_model, AUDIO)
        written = [records for chunk in read_sound_file(path, _BASE_NS) for records in ears.take_sound(chunk, _BASE_NS)]
        heard = [*written, *ears.end_input()]
        return tuple(
            _from_beginning(utterance) for utterance in heard if isinstance(utterance, Utterance) and utterance.final
        )


def _from_beginning(utterance: Utterance) -> Utterance:
    words = tuple(
        replace(word, start_ns=word.start_ns - _BASE_NS, end_ns=word.end_ns - _BASE_NS) for word in utterance.words
    )
    start_ns = max(0, utterance.start_ns - _BASE_NS)
    return replace(utterance, stamp_ns=start_ns, start_ns=start_ns, end_ns=utterance.end_ns - _BASE_NS, words=words)


def _sound(folder: Path, clip: str) -> Path:
    wanted = [folder / AUDIO / f"{clip}{suffix}" for suffix in AUDIO_SUFFIXES]
    wanted += [folder / VIDEOS / f"{clip}{suffix}" for suffix in VIDEO_SUFFIXES]
    file = next((path for path in wanted if path.is_file()), None)
    if file is None:
        raise SuiteError(f"{folder}: has no sound of {clip}: put audio/{clip}.wav or videos/{clip}.mp4 there")
    return file
