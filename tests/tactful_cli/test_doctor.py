"""`tactful doctor`: what single checks find."""

import os
from pathlib import Path

import pytest

from tactful_cli import doctor


@pytest.mark.parametrize(
    ("flags", "found", "meaning"),
    [
        ("avx avx2 avx512f avx512_vnni", "AVX2, AVX-512, VNNI", ""),
        ("avx avx2 avx_vnni amx_int8", "AVX2, VNNI, AMX", ""),
        ("avx avx2", "AVX2", "less accurate"),
        ("sse4_2 avx", "no instruction set", "several times slower"),
    ],
)
def test_the_instruction_set_is_named_with_what_it_means(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: str, found: str, meaning: str
) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\n")
    monkeypatch.setattr(doctor, "CPU_INFO", info)
    row = doctor.examine("processor")
    assert found in row.found
    assert meaning in row.found
    assert bool(meaning) == (";" in row.found)


@pytest.mark.parametrize(
    ("module", "found"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ends with SIGSEGV at a question"),
        ("raise OSError('libcuda.so.1 is missing')", "libcuda.so.1 is missing"),
    ],
)
def test_a_llama_cpp_that_does_not_answer_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: str, found: str
) -> None:
    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp/__init__.py").write_text(module)
    (tmp_path / "llama-named").write_text("-DGGML_NATIVE=OFF")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    monkeypatch.setenv("TACTFUL_STATE", str(tmp_path))
    row = doctor.examine("llama.cpp")
    assert row.verdict is doctor.CheckResult.ABSENT
    assert found in row.found
    assert "built with -DGGML_NATIVE=OFF" in row.found
    assert "setup llama" in row.mend
