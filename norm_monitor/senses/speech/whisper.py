"""Whisper on one segment at a time, without sampling or context, so that a recording always gives the same text."""

import math
import re
from typing import Annotated, Any

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel
from pydantic import AfterValidator, Field

from norm_core.records.speech import Word
from norm_core.runtime.config import Config, ConfigError
from norm_core.runtime.time import s_to_ns
from norm_monitor.senses.speech.recognition import RecognizedSpeech
from norm_monitor.senses.speech.segmenter import AudioSegment
from norm_monitor.senses.speech.whisper_weights import DEFAULT_MODEL, model_folder

ANY_LANGUAGE = "auto"


def _check_languages(codes: str) -> str:
    if not re.fullmatch(r"auto|[a-z]{2,3}(,[a-z]{2,3})*", codes):
        raise ValueError("write a language code as en or zh, several as en,zh, or auto")
    return codes


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
        description="CTranslate2's number type, such as int16; empty for int16 if supported, or else float32",
    )
    device: str = Field(default="cpu", description="cpu or cuda")
    threads: int = Field(default=2, ge=1, le=64, description="threads on the CPU")
    beam_size: int = Field(default=1, ge=1, le=10, description="hypotheses during decoding")
    window_s: float = Field(
        default=15.0,
        ge=15,
        le=30,
        description="length of the model's input with silence; the model was trained with 30",
    )


# The silence after speech within the window: with less, the model hallucinates.
_SILENCE_S = 3.0
_FRAMES_PER_S = 100
# A language of another script takes several tokens a letter.
_TOKENS_PER_S, _TOKENS_PER_S_ELSEWHERE, _TOKENS_ANYWAY = 12, 36, 24


class _WindowedModel(WhisperModel):  # type: ignore[misc]
    """Encode less than 30 s at a time if possible, because encoding takes most of the time."""

    window_frames = 30 * _FRAMES_PER_S

    def encode(self, features: Any) -> Any:
        return super().encode(np.ascontiguousarray(features[..., : self.window_frames]))


class Whisper:
    """A loaded model; `recognize` is slow and for one thread."""

    def __init__(self, config: WhisperConfig) -> None:
        """Load the model. Raises ConfigError if it is missing, damaged or does not know the language."""
        self._config = config
        folder = model_folder(config.model)
        if not (folder / "model.bin").is_file():
            raise ConfigError(f"{folder}: holds no Whisper model (model.bin) for CTranslate2")
        try:
            self._model = _WindowedModel(
                str(folder),
                device=config.device,
                compute_type=config.compute_type or _number_type(config.device),
                cpu_threads=config.threads,
                local_files_only=True,
            )
        except (RuntimeError, ValueError) as error:
            raise ConfigError(f"{folder}: the Whisper model cannot be loaded: {error}") from error
        known = self._model.supported_languages
        if known == ["en"] and config.language != "en":
            raise ConfigError(
                f"{folder}: this model knows English alone, and the language asked for is {config.language}; "
                "use the model whisper-base"
            )
        self._languages = known if config.language == ANY_LANGUAGE else config.language.split(",")
        if unknown := [code for code in self._languages if code not in known]:
            raise ConfigError(f"{folder}: the model knows no language {', '.join(unknown)}; use codes as en or zh")

    def warm_up(self) -> None:
        """Run once, so that the first real segment is as fast as any other."""
        language = self._languages[0]
        list(self._model.transcribe(np.zeros(16_000, np.float32), language=language, temperature=0.0)[0])

    def recognize(self, segment: AudioSegment) -> RecognizedSpeech:
        """Return a segment's words; a short segment is read in the short window that the settings name."""
        length_s = len(segment.samples) / 16_000
        window_s = self._config.window_s if length_s + _SILENCE_S <= self._config.window_s else 30.0
        self._model.window_frames = round(window_s * _FRAMES_PER_S)
        language = self._language_of(segment)
        tokens_per_s = _TOKENS_PER_S if language in {"en", "zh"} else _TOKENS_PER_S_ELSEWHERE
        parts, _ = self._model.transcribe(
            segment.samples,
            # A loop takes seconds; no real segment has this many tokens.
            max_new_tokens=round(length_s * tokens_per_s) + _TOKENS_ANYWAY,
            language=language,
            beam_size=self._config.beam_size,
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
        words = tuple(
            Word(
                text=word.word.strip(),
                start_ns=segment.sound_ns + min(s_to_ns(float(word.start)), length_ns),
                end_ns=segment.sound_ns + min(s_to_ns(float(word.end)), length_ns),
                probability=float(word.probability),
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
            confidence=min(1.0, math.exp(log_probability)) if parts else 0.0,
            no_speech_probability=max((float(part.no_speech_prob) for part in parts), default=1.0),
        )

    def _language_of(self, segment: AudioSegment) -> str:
        """Return the likeliest of the languages asked for; to detect one costs a second encoding."""
        if len(self._languages) == 1:
            return self._languages[0]
        _, _, probabilities = self._model.detect_language(segment.samples)
        probability_of = dict(probabilities)
        return max(self._languages, key=lambda code: probability_of[code])


def _number_type(device: str) -> str:
    """Return int16, with half the memory of float32 and the same words, or float32; int8 gets some words wrong."""
    return "int16" if "int16" in ctranslate2.get_supported_compute_types(device) else "float32"
