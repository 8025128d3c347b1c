"""What is decided is the same on every instruction set that a switch of the libraries reaches on this processor."""

import platform
from pathlib import Path

import numpy as np
import pytest

from norm_monitor.senses.microphone.audio_message import chunks_of
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.scenarios.library import shipped
from tests.goldens import collect, compare
from tests.norm_monitor.senses.speech_path import START_NS, utterances

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the switches are those of x86-64"),
]

FLAGS = set(Path("/proc/cpuinfo").read_text().split())
DISPATCHED: list[str] = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
ABOVE_AVX2 = [name for name in DISPATCHED if name.startswith(("AVX512", "X86_V4"))]
EVERY_BAG = "all generic"  # the other rows take three of the bags
# By row: the switches, and the flag that the processor needs for it.
ROWS: dict[str, tuple[dict[str, str], str]] = {
    "ctranslate2 generic": ({"CT2_FORCE_CPU_ISA": "GENERIC"}, "sse2"),
    "ctranslate2 AVX": ({"CT2_FORCE_CPU_ISA": "AVX"}, "avx"),
    "ctranslate2 AVX2": ({"CT2_FORCE_CPU_ISA": "AVX2"}, "avx2"),
    "ctranslate2 AVX-512": ({"CT2_FORCE_CPU_ISA": "AVX512"}, "avx512f"),
    "openblas Prescott": ({"OPENBLAS_CORETYPE": "Prescott"}, "sse2"),
    "openblas Sandybridge": ({"OPENBLAS_CORETYPE": "Sandybridge"}, "avx"),
    "openblas Haswell": ({"OPENBLAS_CORETYPE": "Haswell"}, "avx2"),
    "openblas Zen": ({"OPENBLAS_CORETYPE": "Zen"}, "avx2"),
    "openblas SkylakeX": ({"OPENBLAS_CORETYPE": "SkylakeX"}, "avx512f"),
    "numpy baseline": ({"NPY_DISABLE_CPU_FEATURES": " ".join(DISPATCHED)}, "sse2"),
    "numpy AVX2": ({"NPY_DISABLE_CPU_FEATURES": " ".join(ABOVE_AVX2)}, "avx512f"),
    EVERY_BAG: (
        {
            "CT2_FORCE_CPU_ISA": "GENERIC",
            "OPENBLAS_CORETYPE": "Prescott",
            "NPY_DISABLE_CPU_FEATURES": " ".join(DISPATCHED),
        },
        "sse2",
    ),
    "one thread": ({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}, "sse2"),
    "four threads": ({"OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "4"}, "sse2"),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_shipped_bags_give_equal_flags(row: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    switches, needed = ROWS[row]
    if needed not in FLAGS:
        pytest.skip(f"this processor lacks {needed}")
    for name, value in switches.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TACTFUL_STATE", str(tmp_path))  # the usual cache holds what another instruction set computed
    names = tuple(bag.name for bag in shipped()) if row == EVERY_BAG else collect.IN_TESTS["shipped_bags"][1]
    golden = {key: flag for key, flag in compare.read("shipped_bags").items() if key.split()[0] in names}
    assert not list(compare.differences(golden, collect.shipped_bags(names)))


def test_whisper_hears_the_same_with_any_number_of_threads(shared_data: Path) -> None:
    sound = list(chunks_of(shared_data / "speech/jfk.flac", START_NS))
    one, *others = (utterances(sound, Whisper(WhisperConfig(threads=threads))) for threads in (1, 2, 4))
    assert one
    assert others == [one, one]
