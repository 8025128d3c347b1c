"""Measure speech, faces and voice activity on CUDA, beside the CPU on the same input."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.runner import ROOT, Figure, Report, SkippedError
from norm_core.engines.providers import ProviderFault
from norm_core.runtime.errors import TactfulError

SPEECH = ROOT / "tests/norm_monitor/senses/conversation.flac"
RATE_HZ, VOICE_BLOCK = 16_000, 512
REMEDY = "run ./tactful setup gpu, or carry its wheels (--wheels)"

# Opens a sense on a device; returns what runs it once. Faults are appended.
Open = Callable[[str, list[ProviderFault]], Callable[[], Any]]


def compare(report: Report, *, name: str, open_sense: Open, device: str, rounds: int = 20) -> None:
    """Measure a sense on the device and on the CPU in turns; raise SkippedError where the device cannot run it."""
    if device != "cuda":
        raise SkippedError("no GPU is here; the CPU alone is measured by ./tactful benchmark")
    faults: list[ProviderFault] = []
    try:
        on_gpu, on_cpu = open_sense("cuda", faults), open_sense("cpu", [])
    except ImportError as error:
        raise SkippedError(f"{error.name} is not installed; {REMEDY}") from error
    except TactfulError as error:  # its weights are not here
        raise SkippedError(str(error)) from error
    if faults:
        raise SkippedError(f"CUDA does not run it: {faults[0].reason[:300]}; {REMEDY}")
    spent: dict[str, list[float]] = {"gpu": [], "cpu": []}
    for number in range(rounds + 1):
        for place, run in (("gpu", on_gpu), ("cpu", on_cpu)):
            started_s = time.perf_counter()
            run()
            spent[place] += [time.perf_counter() - started_s] if number else []  # the first warms up
    if faults:
        raise RuntimeError(f"CUDA failed at work: {faults[0].reason[:300]}")
    ratios = [gpu / cpu for gpu, cpu in zip(spent["gpu"], spent["cpu"], strict=True)]
    milliseconds = [1e3 * seconds for seconds in spent["gpu"]]
    report.add(Figure.of_runs(f"{name}_on_cuda", "ms", milliseconds, "the CPU", ratios))
    report.note(cpu_ms=round(1e3 * statistics.median(spent["cpu"]), 2))


def open_speech(device: str, faults: list[ProviderFault]) -> Callable[[], Any]:
    """Recognize eight seconds of a conversation."""
    from faster_whisper import decode_audio

    from norm_core.records.speech import Timing
    from norm_core.runtime.time import NS_PER_S
    from norm_monitor.senses.speech.segmenter import AudioSegment, SegmentStage
    from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig

    whisper = Whisper(WhisperConfig.model_validate({"device": device}), faults.append)
    segment = AudioSegment(
        start_ns=0,
        end_ns=8 * NS_PER_S,
        sound_ns=0,
        samples=np.asarray(decode_audio(str(SPEECH), RATE_HZ)[: 8 * RATE_HZ], np.float32),
        timing=Timing.SOURCE,
        stage=SegmentStage.FINAL,
    )
    return lambda: whisper.recognize(segment)


def open_faces(device: str, faults: list[ProviderFault]) -> Callable[[], Any]:
    """Detect faces in a picture of a camera; weights are looked up as the eyes do."""
    from norm_monitor.senses.faces.finder import SHORT_RANGE, FaceDetector

    detector = FaceDetector(SHORT_RANGE, 0.5, providers=[device], on_fault=faults.append)  # type: ignore[list-item]
    picture = np.random.default_rng(0).integers(0, 255, (480, 640, 3), np.uint8)
    return lambda: detector.detect(picture)


def open_voice(device: str, faults: list[ProviderFault]) -> Callable[[], Any]:
    """Find voice activity in a second of noise."""
    from norm_monitor.senses.speech.audio_front_end import Silero

    silero = Silero([device], faults.append)  # type: ignore[list-item]
    noise = np.random.default_rng(0).normal(0, 0.05, RATE_HZ).astype(np.float32)
    blocks = [noise[at : at + VOICE_BLOCK] for at in range(0, len(noise) - VOICE_BLOCK, VOICE_BLOCK)]
    return lambda: [silero(block) for block in blocks]
