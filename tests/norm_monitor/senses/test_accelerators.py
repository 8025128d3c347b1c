"""Senses that are to run on a GPU run on the CPU where it fails, give the same, and say so."""

from pathlib import Path
from typing import Any

import ctranslate2
import pytest

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.providers import ProviderFault, make_fault_reporter
from norm_core.health.health_log import HealthLog
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.records.status import Health
from norm_core.runtime.time import NS_PER_S
from norm_monitor.eyes import Eyes
from norm_monitor.senses.faces.finder import FaceFinder, FaceWeightsMissingError
from norm_monitor.senses.microphone.audio_message import read_sound_file
from norm_monitor.senses.speech.segmenter import AudioSegment
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from tests.node_records import counted
from tests.norm_core.engines.test_onnx_session import broken_gpu
from tests.norm_monitor.senses.camera_messages import START_NS, compressed, face_image
from tests.norm_monitor.senses.speech_path import segments, utterances

__all__ = ["broken_gpu"]  # a fixture

NO_GPU = pytest.mark.skipif(ctranslate2.get_cuda_device_count() > 0, reason="a GPU is here")


@pytest.fixture
def segment(shared_data: Path) -> AudioSegment:
    """The first words of a recorded speech."""
    chunks = read_sound_file(shared_data / "speech/jfk.flac", START_NS)
    return next(speech.segment for speech in segments(chunks) if speech.segment.final)


@NO_GPU
@pytest.mark.parametrize("compute_type", ["", "float16"])
def test_whisper_without_cuda_runs_on_the_cpu_and_says_why(compute_type: str, segment: AudioSegment) -> None:
    faults: list[ProviderFault] = []
    whisper = Whisper(WhisperConfig(device="cuda", compute_type=compute_type), faults.append)
    assert whisper.device == "cpu"
    assert [fault.provider for fault in faults] == ["cuda"]
    assert "CUDA" in faults[0].reason
    words = whisper.recognize(segment)
    assert words.text
    assert words == Whisper(WhisperConfig()).recognize(segment)


class GpuWhisper:
    """CTranslate2's model: its GPU is this CPU, and breaks at the n-th picture of sound."""

    made = ctranslate2.models.Whisper
    encodings = 0
    error = ""

    def __init__(self, path: str, device: str, compute_type: str, **rest: Any) -> None:
        self._model = GpuWhisper.made(path, device="cpu", compute_type="float32", **rest)
        self._left = self.encodings if device == "cuda" else None

    def encode(self, *arguments: Any, **named: Any) -> Any:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise RuntimeError(self.error)
        return self._model.encode(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


MEMORY = "CUDA failed with error out of memory"
LIBRARY = "Library libcublas.so.12 is not found or cannot be loaded"


@pytest.mark.parametrize(
    ("encodings", "error", "told"),
    [
        (0, MEMORY, "out of memory"),  # while it loads
        (1, LIBRARY, "libcublas.so.12 (of the package nvidia-cublas-cu12) to LD_LIBRARY_PATH"),
        (2, MEMORY, "out of memory"),
    ],
)
def test_whisper_loses_no_utterance_when_its_gpu_breaks(
    encodings: int, error: str, told: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = list(read_sound_file(shared_data / "speech/jfk.flac", START_NS))
    expected = utterances(sound, Whisper(WhisperConfig(compute_type="float32")))
    monkeypatch.setattr(GpuWhisper, "encodings", encodings)
    monkeypatch.setattr(GpuWhisper, "error", error)
    monkeypatch.setattr("faster_whisper.transcribe.ctranslate2.models.Whisper", GpuWhisper)
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda device: {"float16", "float32"})
    health_log = HealthLog()
    whisper = Whisper(
        WhisperConfig(device="cuda"), make_fault_reporter(health_log, "speech recognition", "whisper_device of ears")
    )
    assert whisper.device == ("cuda" if encodings else "cpu")
    assert utterances(sound, whisper) == expected != []
    assert whisper.device == "cpu"
    assert counted(health_log) == {"provider_fallbacks": 1}
    assert health_log.health is Health.DEGRADED
    assert told in health_log.reasons[0]


@pytest.fixture(scope="module")
def face_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    try:
        FaceFinder(folder)
    except FaceWeightsMissingError as error:
        pytest.skip(str(error))
    return folder


class FailingFinder(FaceFinder):
    """A finder that fails while `fails` is set."""

    fails = True

    def find(self, frame: Frame) -> Any:
        if self.fails:
            raise EngineFailedError("face_landmark.onnx: cannot be run on CPUExecutionProvider: out of memory")
        return super().find(frame)


def test_a_frame_without_face_search_gives_no_presence(face_weights: Path) -> None:
    health_log, finder = HealthLog(), FailingFinder(face_weights)
    eyes = Eyes("/camera", health_log, finder=finder)
    [frame] = eyes.take(compressed(START_NS, face_image()))
    assert isinstance(frame, Frame)
    assert counted(health_log)["frames_without_faces"] == 1
    assert "faces: a frame was not searched" in health_log.reasons[0]
    finder.fails = False
    _, presence = eyes.take(compressed(START_NS + NS_PER_S, face_image()))
    assert isinstance(presence, Presence)
    assert health_log.health is Health.OK
