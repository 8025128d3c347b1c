"""What is decided is the same on every instruction set that a switch of the libraries reaches on this processor.

Whisper's words differ by processor: equal words give equal flags, and the words are nearly the same.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from norm_monitor.senses.microphone.audio_message import read_sound_file
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from tests.norm_monitor.senses.speech_path import START_NS, utterances
from tests.patience import PATIENCE_S

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the switches are those of x86-64"),
]

FLAGS = set(Path("/proc/cpuinfo").read_text().split())
DISPATCHED: list[str] = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
ABOVE_AVX2 = [name for name in DISPATCHED if name.startswith(("AVX512", "X86_V4"))]
# The instruction sets of CTranslate2, with the processor's flag.
RECOGNIZER_ROWS = {"GENERIC": "sse2", "AVX": "avx", "AVX2": "avx2", "AVX512": "avx512f"}
WORDS_OF = ("factory_shift", "zoo_keeper")
EVERY_BAG = "all generic"  # the other rows take the demo
# By row: the switches, and the flag that the processor needs for it.
ROWS: dict[str, tuple[dict[str, str], str]] = {
    "openblas Prescott": ({"OPENBLAS_CORETYPE": "Prescott"}, "sse2"),
    "openblas Sandybridge": ({"OPENBLAS_CORETYPE": "Sandybridge"}, "avx"),
    "openblas Haswell": ({"OPENBLAS_CORETYPE": "Haswell"}, "avx2"),
    "openblas Zen": ({"OPENBLAS_CORETYPE": "Zen"}, "avx2"),
    "openblas SkylakeX": ({"OPENBLAS_CORETYPE": "SkylakeX"}, "avx512f"),
    "numpy baseline": ({"NPY_DISABLE_CPU_FEATURES": " ".join(DISPATCHED)}, "sse2"),
    "numpy AVX2": ({"NPY_DISABLE_CPU_FEATURES": " ".join(ABOVE_AVX2)}, "avx512f"),
    EVERY_BAG: (
        {
            "OPENBLAS_CORETYPE": "Prescott",
            "NPY_DISABLE_CPU_FEATURES": " ".join(DISPATCHED),
        },
        "sse2",
    ),
    "one thread": ({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}, "sse2"),
    "four threads": ({"OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "4"}, "sse2"),
}


def goldens(state: Path, switches: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the goldens in a process of its own: libraries read the switches as they are loaded."""
    # The usual cache holds what another instruction set computed.
    environment = {**os.environ, **switches, "TACTFUL_STATE": str(state), "TACTFUL_READER": "none"}
    return subprocess.run(
        [sys.executable, "-m", "tests.goldens", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize("row", ROWS)
def test_equal_words_give_equal_flags(row: str, tmp_path: Path) -> None:
    switches, needed = ROWS[row]
    if needed not in FLAGS:
        pytest.skip(f"this processor lacks {needed}")
    compared = goldens(tmp_path, switches, "compare", "demo", *(["shipped_bags"] if row == EVERY_BAG else []))
    assert compared.returncode == 0, compared.stdout + compared.stderr


@pytest.mark.parametrize("row", RECOGNIZER_ROWS)
def test_whisper_recognizes_nearly_the_same_words(row: str, tmp_path: Path) -> None:
    needed = RECOGNIZER_ROWS[row]
    if needed not in FLAGS:
        pytest.skip(f"this processor lacks {needed}")
    compared = goldens(tmp_path, {"CT2_FORCE_CPU_ISA": row}, "words", *WORDS_OF)
    assert compared.returncode == 0, compared.stdout + compared.stderr


def test_whisper_hears_the_same_with_any_number_of_threads(shared_data: Path) -> None:
    sound = list(read_sound_file(shared_data / "speech/jfk.flac", START_NS))
    one, *others = (utterances(sound, Whisper(WhisperConfig(threads=threads))) for threads in (1, 2, 4))
    assert one
    assert others == [one, one]
