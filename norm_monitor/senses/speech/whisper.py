"""Whisper on one segment at a time, without sampling or context, so that a recording always gives the same text."""

import math
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel
from pydantic import AfterValidator, Field

from norm_core.engines.providers import OnFault, ProviderFault
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import Task
from norm_core.models.store import Store, WeightsError
from norm_core.records.speech import Word
from norm_core.runtime.config import Config, ConfigError
from norm_core.runtime.time import NS_PER_MS, s_to_ns
from norm_monitor.senses.speech.recognition import ESTIMATE_DIGITS, RecognizedSpeech
from norm_monitor.senses.speech.segmenter import AudioSegment

DEFAULT_MODEL = "whisper-tiny-en"

# The language setting that detects any language.
ANY_LANGUAGE = "auto"
# The silence after speech within the window. With less, the model hallucinates.
_MIN_SILENCE_S = 3.0
_FRAMES_PER_S = 100
# The tokens that English and Chinese take at most, and languages of other scripts, with several tokens a letter.
_MAX_TOKENS_PER_S = 12
_MAX_TOKENS_PER_S_ELSEWHERE = 36
# The tokens that any segment may take in addition.
_MAX_TOKENS_ANYWAY = 24


def find_model_folder(model: str) -> Path:
    """Find the folder of a model. Raises ConfigError for a model that is unknown, damaged or not installed."""
    catalogue = Catalogue()
    name = model or DEFAULT_MODEL
    if "/" in name or (name not in catalogue.list_names() and Path(name).is_dir()):
        return Path(name)
    manifest = catalogue.read_manifest(name)
    if manifest.task is not Task.SPEECH_TO_TEXT:
        raise ConfigError(f"{name}: is a model for {manifest.task}; name one for {Task.SPEECH_TO_TEXT}")
    try:
        folder = Store().open_files(manifest).folder
    except WeightsError as error:
        raise ConfigError(str(error)) from error
    if folder is None:
        raise ConfigError(f"{name}: runs on a server; name a Whisper model on this machine")
    return folder


def _check_languages(codes: str) -> str:
    if not re.fullmatch(r"auto|[a-z]{2,3}(,[a-z]{2,3})*", codes):
        raise ValueError("write a language code such as en or zh, several as en,zh, or auto")
    return codes


Device = Literal["auto", "cuda", "cpu"]
Languages = Annotated[str, AfterValidator(_check_languages)]


class WhisperConfig(Config):
    """The Whisper model and its decoding."""

    model: str = Field(
        default="",
        description=f"a model such as whisper-base, or the folder of one for CTranslate2; empty for {DEFAULT_MODEL}",
    )
    language: Languages = Field(
        default="en",
        description="language code, such as en; several, as en,zh, to detect one of them; auto to detect any",
    )
    compute_type: str = Field(
        default="",
        description="CTranslate2's number type; empty for float16 on cuda, and int16, if supported, or float32 on cpu",
    )
    device: Device = Field(default="cpu", description="cpu, cuda, or auto for cuda where there is a GPU")
    threads: int = Field(default=2, ge=1, le=64, description="threads on the CPU")
    window_s: float = Field(
        default=15.0,
        ge=15,
        le=30,
        description="length of the model's input with silence; the model was trained with 30",
    )


class _WindowedModel(WhisperModel):  # type: ignore[misc]
    """Encode less than 30 s at a time if possible, because encoding takes most of the time."""

    window_frames = 30 * _FRAMES_PER_S

    def encode(self, features: Any) -> Any:
        return super().encode(np.ascontiguousarray(features[..., : self.window_frames]))


class Whisper:
    """A loaded Whisper model. `recognize` is slow and for one thread."""

    def __init__(self, config: WhisperConfig, on_fault: OnFault = lambda fault: None) -> None:
        """Load the model. If CUDA cannot be used, call `on_fault` and use the CPU.

        Raises ConfigError if the model is missing, damaged or does not know the language.
        """
        self._config = config
        self._on_fault = on_fault
        folder = find_model_folder(config.model)
        if not (folder / "model.bin").is_file():
            raise ConfigError(f"{folder}: holds no Whisper model (model.bin) for CTranslate2")
        self._folder = folder
        has_gpu = config.device == "cuda" or (config.device == "auto" and ctranslate2.get_cuda_device_count() > 0)
        self._load(*(("cuda",) if has_gpu else ()), "cpu")
        languages = self._model.supported_languages
        if languages == ["en"] and config.language != "en":
            raise ConfigError(
                f"{folder}: this model knows English alone, and language is {config.language}; use the model "
                "whisper-base"
            )
        self._languages = languages if config.language == ANY_LANGUAGE else config.language.split(",")
        if unknown := [code for code in self._languages if code not in languages]:
            raise ConfigError(f"{folder}: the model does not know {', '.join(unknown)}; use codes such as en or zh")

    def warm_up(self) -> None:
        """Run once, so that the first real segment is as fast as any other."""
        list(self._model.transcribe(np.zeros(16_000, np.float32), language="en", temperature=0.0)[0])

    def recognize(self, segment: AudioSegment) -> RecognizedSpeech:
        """Return the words of a segment. A short segment is read in the short window of the settings.

        If CUDA fails, the CPU takes its place, from this segment on.
        """
        try:
            return self._recognize(segment)
        except RuntimeError as error:
            if self.device == "cpu":
                raise
            self._load("cpu")
            self._on_fault(ProviderFault(provider="cuda", reason=f"it failed at work: {_add_remedy(error)}"))
            return self._recognize(segment)

    def _load(self, *devices: str) -> None:
        """Load the model on the first of these devices that works. Raises ConfigError if the CPU does not."""
        for device in devices:
            try:
                self._model = _WindowedModel(
                    str(self._folder),
                    device=device,
                    compute_type=_choose_number_type(device, self._config),
                    cpu_threads=self._config.threads,
                    local_files_only=True,
                )
                self.device = device
                if device != "cpu":
                    self.warm_up()  # CUDA's libraries are loaded by the first use
            except (RuntimeError, ValueError) as error:
                if device == "cpu":
                    raise ConfigError(f"{self._folder}: the Whisper model cannot be loaded: {error}") from error
                self._on_fault(ProviderFault(provider=device, reason=_add_remedy(error)))
            else:
                return

    def _recognize(self, segment: AudioSegment) -> RecognizedSpeech:
        length_s = len(segment.samples) / 16_000
        window_s = self._config.window_s if length_s + _MIN_SILENCE_S <= self._config.window_s else 30.0
        self._model.window_frames = round(window_s * _FRAMES_PER_S)
        language = self._choose_language(segment)
        tokens_per_s = _MAX_TOKENS_PER_S if language in {"en", "zh"} else _MAX_TOKENS_PER_S_ELSEWHERE
        parts, _ = self._model.transcribe(
            segment.samples,
            # No real segment has more tokens, and a loop would take seconds.
            max_new_tokens=round(length_s * tokens_per_s) + _MAX_TOKENS_ANYWAY,
            language=language,
            beam_size=1,
            temperature=0.0,
            condition_on_previous_text=False,
            word_timestamps=True,
            vad_filter=False,
            # Doubtful text is classified later, not dropped here.
            no_speech_threshold=None,
            log_prob_threshold=None,
            compression_ratio_threshold=None,
        )
        parts = list(parts)
        length_ns = s_to_ns(length_s)

        def to_stamp_ns(second: float) -> int:
            return segment.sound_ns + min(round(second * 1000) * NS_PER_MS, length_ns)

        # Estimates are rounded, because their last digits differ by processor.
        words = tuple(
            Word(
                text=word.word.strip(),
                start_ns=to_stamp_ns(float(word.start)),
                end_ns=to_stamp_ns(float(word.end)),
                probability=round(float(word.probability), ESTIMATE_DIGITS),
            )
            for part in parts
            for word in part.words or ()
        )
        tokens = sum(len(part.tokens) for part in parts)
        log_probability = sum(part.avg_logprob * len(part.tokens) for part in parts) / max(tokens, 1)
        return RecognizedSpeech(
            text="".join(part.text for part in parts).strip(),
            locale=language,
            words=words,
            confidence=round(min(1.0, math.exp(log_probability)), ESTIMATE_DIGITS) if parts else 0.0,
            no_speech_probability=round(
                max((float(part.no_speech_prob) for part in parts), default=1.0), ESTIMATE_DIGITS
            ),
        )

    def _choose_language(self, segment: AudioSegment) -> str:
        """Return the likeliest of the languages in question. To detect one costs a second encoding."""
        if len(self._languages) == 1:
            return self._languages[0]
        _, _, probabilities = self._model.detect_language(segment.samples)
        probability_of = dict(probabilities)
        return max(self._languages, key=lambda code: probability_of[code])


def _add_remedy(error: Exception) -> str:
    """Return the text of an error, with a remedy if a library of another CUDA version is needed."""
    library = re.search(r"Library (lib\S+) is not found", str(error))
    if not library:
        return str(error)
    return (
        f"{error}; CTranslate2 needs CUDA 12's libraries, also beside those of CUDA 13: add the folder of {library[1]} "
        "(of the package nvidia-cublas-cu12) to LD_LIBRARY_PATH"
    )


def _choose_number_type(device: str, config: WhisperConfig) -> str:
    """Choose the number type: that of the settings, if the device supports it.

    Without one, the type with half the memory of float32 and the same words, or float32; int8 gets some words wrong.
    """
    supported = ctranslate2.get_supported_compute_types(device)
    if config.compute_type in supported or (config.compute_type and config.device == device):
        return config.compute_type
    half = "float16" if device == "cuda" else "int16"
    return half if half in supported else "float32"
