"""Real voice activity and real Whisper on real speech, who said what, and which models are refused."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.spoken_words import join_words
from norm_monitor.senses.microphone.audio_message import SoundChunk, read_sound_file
from norm_monitor.senses.speech import segmenter
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.recognition import (
    HallucinationKind,
    RecognizedSpeech,
    detect_hallucination,
)
from norm_monitor.senses.speech.segmenter import AudioSegment, SegmentStage
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig, find_model_folder
from tests.norm_monitor.senses.speech_path import CONFIG, START_NS
from tests.norm_monitor.senses.speech_path import segments as speech_segments
from tests.norm_monitor.senses.speech_path import utterances as heard

RATE_HZ = 44_100  # of the recording
KENNEDY = "and so my fellow americans ask not what your country can do for you ask what you can do for your country"


@pytest.fixture(scope="module")
def whisper() -> Whisper:
    return Whisper(CONFIG.whisper)


@pytest.fixture
def kennedy(shared_data: Path) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in read_sound_file(shared_data / "speech/jfk.flac", START_NS)])


def cut(sound: np.ndarray, length: int) -> Iterator[SoundChunk]:
    for first in range(0, len(sound), length):
        stamp_ns = START_NS + first * NS_PER_S // RATE_HZ
        yield SoundChunk(samples=sound[first : first + length], rate_hz=RATE_HZ, stamp_ns=stamp_ns)


def segments(sound: np.ndarray, length: int, config: HearingConfig = CONFIG) -> list[AudioSegment]:
    return [speech.segment for speech in speech_segments(cut(sound, length), config)]


def words(utterances: list[Utterance]) -> str:
    return " ".join(re.findall(r"[a-z']+", " ".join(u.text for u in utterances).lower()))


def test_the_words_are_exact_and_lie_within_their_utterances(kennedy: np.ndarray, whisper: Whisper) -> None:
    utterances = heard(list(cut(kennedy, 1_600)), whisper)
    assert words(utterances) == KENNEDY
    assert {u.speaker for u in utterances} == {Speaker.UNKNOWN}
    assert all(w.start_ns <= w.end_ns for u in utterances for w in u.words)
    estimates = [
        e for u in utterances for e in (u.confidence, u.no_speech_probability, *(w.probability for w in u.words))
    ]
    assert estimates == [round(estimate or 0, 2) for estimate in estimates]  # the rest differs by processor


def test_segments_are_the_same_for_any_chunking(kennedy: np.ndarray) -> None:
    first, *others = [segments(kennedy, length) for length in (512, 333, 1_600, 40_000)]
    for other in others:
        assert [(s.start_ns, s.end_ns, s.samples.tobytes()) for s in other] == [
            (s.start_ns, s.end_ns, s.samples.tobytes()) for s in first
        ]


def test_long_speech_is_cut_and_partial_segments_share_their_onset(
    kennedy: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = HearingConfig(partial_every_s=0.5)
    monkeypatch.setattr(segmenter, "MAX_SPEECH_S", 2.0)
    all_segments = segments(np.concatenate([kennedy[:96_000]] * 3), 1_600, config)
    finals = [s for s in all_segments if s.final]
    assert all(s.end_ns - s.start_ns <= 2 * NS_PER_S for s in finals)
    assert {s.start_ns for s in all_segments if s.stage is SegmentStage.PARTIAL} <= {s.start_ns for s in finals}
    assert any(s.stage is SegmentStage.PARTIAL for s in all_segments)


def test_likely_and_final_segments_have_the_same_words(kennedy: np.ndarray) -> None:
    all_segments = segments(kennedy, 1_600)
    likely = {(s.start_ns, s.end_ns): s for s in all_segments if s.stage is SegmentStage.LIKELY}
    finals = [s for s in all_segments if s.final]
    same = [s for s in finals if (s.start_ns, s.end_ns) in likely]
    assert len(same) >= len(finals) - 1  # the last may be cut off by the end of the file
    for segment in same:
        assert segment.samples.tobytes() == likely[segment.start_ns, segment.end_ns].samples.tobytes()


@pytest.mark.parametrize(
    ("text", "no_speech", "confidence", "speech_s", "expected"),
    [
        ("Thank you.", 0.9, 0.2, 1.0, HallucinationKind.NO_SPEECH),
        ("Thank you.", 0.9, 0.9, 1.0, HallucinationKind.NONE),
        ("...", 0.0, 0.9, 1.0, HallucinationKind.EMPTY),
        ("so good so good so good so good so good", 0.0, 0.9, 5.0, HallucinationKind.LOOP),
        ("one two three four five six seven eight", 0.0, 0.9, 0.3, HallucinationKind.IN_SILENCE),
        ("谢谢谢谢", 0.0, 0.9, 1.0, HallucinationKind.NONE),
        ("谢谢谢谢谢谢谢谢", 0.0, 0.9, 2.0, HallucinationKind.LOOP),
        ("小小小小小小小小小小", 0.0, 0.9, 2.0, HallucinationKind.LOOP),
        ("请不吝点赞订阅转发打赏" * 4, 0.0, 0.9, 15.0, HallucinationKind.LOOP),
        ("我们现在马上就去图书馆", 0.0, 0.9, 1.2, HallucinationKind.NONE),
        ("我们现在马上就去图书馆", 0.0, 0.9, 0.4, HallucinationKind.IN_SILENCE),
    ],
)
def test_hallucinations_are_detected(
    text: str, no_speech: float, confidence: float, speech_s: float, expected: HallucinationKind
) -> None:
    recognized = RecognizedSpeech(
        text=text, locale="en", words=(), confidence=confidence, no_speech_probability=no_speech
    )
    assert detect_hallucination(recognized, speech_s) is expected


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["Good", "morning,", "Anna."], "Good morning, Anna."),
        (["早上", "好", "，", "安娜", "。"], "早上好，安娜。"),
        (["请", "说", "OK", "two", "times", "吧"], "请说OK two times吧"),
        (["ส", "วัส", "ดี"], "สวัสดี"),
    ],
)
def test_words_are_joined_as_their_script_is_written(words: list[str], text: str) -> None:
    assert join_words(words) == text


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ("whisper-bse", "did you mean whisper-base"),
        ("smollm2-135m-q4", "smollm2-135m-q4: is a model for language; name one for speech-to-text"),
        ("whisper-base", r"not installed; run \./tactful models add whisper-base"),
    ],
)
def test_a_model_without_speech_recognition_is_refused(
    model: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACTFUL_WEIGHTS", str(tmp_path))
    with pytest.raises(ConfigError, match=complaint):
        find_model_folder(model)


def test_a_folder_names_a_whisper_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ours").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_model_folder("ours") == Path("ours")
    assert find_model_folder("./ours") == Path("ours")


@pytest.mark.parametrize("language", ["zh", "en,zh", "auto"])
def test_an_english_model_is_refused_for_other_languages(language: str) -> None:
    with pytest.raises(ConfigError, match=r"knows English alone.*use the model whisper-base"):
        Whisper(WhisperConfig(language=language))


@pytest.mark.parametrize("language", ["", "English", "en,", "auto,en", "zh-CN"])
def test_a_language_without_a_code_is_refused(language: str) -> None:
    with pytest.raises(ConfigError, match="language: write a language code"):
        check_config(WhisperConfig, {"language": language}, "test")
