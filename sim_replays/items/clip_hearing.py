"""The robot's ears on the sound of a clip, along the path of a microphone."""

from dataclasses import replace
from pathlib import Path

from norm_core.health.health_log import HealthLog
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.runtime.time import NS_PER_S
from norm_monitor.ears import Ears
from norm_monitor.senses.microphone.audio_message import read_sound_file
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.items.clip import VIDEO_SUFFIXES, VIDEOS
from sim_replays.items.target import SuiteError

AUDIO = "audio"  # folder beside the data
AUDIO_SUFFIXES = (".wav", ".flac", ".mp3", ".m4a", ".ogg")
_START_NS = NS_PER_S  # The sound starts later than zero, because a stamp of zero means "not set".


class ClipTranscriber:
    """Transcriber of clips, with a model for each language. A clip of several norms is transcribed once."""

    def __init__(self, model: str = "") -> None:
        self._model = model
        self._whispers: dict[str, tuple[HearingConfig, Whisper]] = {}
        self._utterances: dict[Path, tuple[Utterance, ...]] = {}

    def transcribe(self, folder: Path, clip: str, language: str) -> tuple[Utterance, ...]:
        """Transcribe folder/audio/CLIP.wav or folder/videos/CLIP.mp4, with stamps from the start of the clip."""
        path = _find_sound(folder, clip)
        if path not in self._utterances:
            self._utterances[path] = self._run_ears(path, language)
        return self._utterances[path]

    def _run_ears(self, path: Path, language: str) -> tuple[Utterance, ...]:
        if language not in self._whispers:
            whisper = WhisperConfig(model=self._model, language=language)
            config = HearingConfig(partial_every_s=0, whisper=whisper)
            self._whispers[language] = config, Whisper(whisper)
        config, whisper_model = self._whispers[language]
        ears = Ears(config, HealthLog(), whisper_model, AUDIO)
        records: list[Utterance | RobotSpeech] = [
            entry for chunk in read_sound_file(path, _START_NS) for entry in ears.take_sound(chunk, _START_NS)
        ]
        records += ears.end_input()
        return tuple(_shift_to_start(entry) for entry in records if isinstance(entry, Utterance) and entry.final)


def _shift_to_start(utterance: Utterance) -> Utterance:
    words = tuple(
        replace(word, start_ns=word.start_ns - _START_NS, end_ns=word.end_ns - _START_NS) for word in utterance.words
    )
    start_ns = max(0, utterance.start_ns - _START_NS)
    return replace(utterance, stamp_ns=start_ns, start_ns=start_ns, end_ns=utterance.end_ns - _START_NS, words=words)


def _find_sound(folder: Path, clip: str) -> Path:
    paths = [folder / AUDIO / f"{clip}{suffix}" for suffix in AUDIO_SUFFIXES]
    paths += [folder / VIDEOS / f"{clip}{suffix}" for suffix in VIDEO_SUFFIXES]
    file = next((path for path in paths if path.is_file()), None)
    if file is None:
        raise SuiteError(f"{folder}: has no sound of {clip}; put audio/{clip}.wav or videos/{clip}.mp4 there")
    return file
