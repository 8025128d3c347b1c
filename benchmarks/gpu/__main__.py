"""Measure speed and memory of models on a GPU, in four minutes and without a network.

    python -m benchmarks.gpu [--tiny] [--only STEPS] [--wheels FOLDER] [--out FOLDER] [--json]

Call it from the checkout's root. Models have true sizes and random weights.
"""

import argparse
import importlib
import os
import platform
import shutil
import signal
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.runner import ROOT, Report, Step, print_figures, run_steps, write_results

BUDGET_S = 225.0  # with the imports before them, four minutes
_NEEDED = (
    "torch", "transformers", "accelerate", "pydantic", "cv2", "yaml", "lazy_loader", "lz4", "zstandard", "simplejpeg",
    "onnxruntime",
)  # fmt: skip
_SHARED_MEMORY, _ROOMY_BYTES = Path("/dev/shm"), 46e9


def prepare(wheels: Path | None, site: Path) -> None:
    """Make the packages of `wheels` importable."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # it starts no CUDA before the steps fork
    for wheel in sorted(wheels.glob("*.whl")) if wheels else ():
        zipfile.ZipFile(wheel).extractall(site)
    sys.path.insert(0, str(site))
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        sys.exit(f"{', '.join(missing)}: not installed; run ./tactful setup transformers, or carry wheels (--wheels)")


def facts(report: Report, *, device: str) -> None:
    """Note the versions and the machine."""
    import torch
    import transformers

    about: dict[str, Any] = {"torch": torch.__version__, "transformers": transformers.__version__}
    if device == "cuda":
        free, total = torch.cuda.mem_get_info()
        about |= {"cuda": torch.version.cuda, "memory_mb": round(total / 1e6), "free_mb": round(free / 1e6)}
    report.note(python=platform.python_version(), cores=os.cpu_count(), **about)


def steps_of(folder: Path, device: str, *, is_tiny: bool) -> list[Step]:
    """List the steps: each checkpoint is written before those that read it, and what matters most comes first."""
    from benchmarks.gpu import models

    bench = models.Bench(folder=folder, device=device, is_tiny=is_tiny)

    def write(name: str) -> Step:
        def run(report: Report) -> None:
            report.note(million_parameters=round(models.write_checkpoint(name, folder / name, device, tiny=is_tiny)))

        return Step(f"write_{name}", run, 40)

    def step(name: str, max_s: float, function: Any, **settings: Any) -> Step:
        return Step(name, partial(function, bench, **settings), max_s)

    two, four, eight = "qwen3-vl-2b", "qwen3-vl-4b", "qwen3-vl-8b"
    quantized = [] if device == "cpu" else [step("window_4b_nf4", 40, models.window, model=four, weights="nf4")]
    return [
        Step("facts", partial(facts, device=device), 25),
        write(two),
        write(four),
        step("window_4b", 60, models.window, model=four),
        *quantized,
        step("memory_caps", 35, models.caps, model=two),
        step("window_2b", 40, models.window, model=two),
        write(eight),
        step("window_8b", 40, models.window, model=eight),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps, write gpu.json, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tiny", "--cpu", action="store_true", help="try all of it with tiny models on the CPU")
    parser.add_argument("--only", default="", help="names of steps, with commas; a checkpoint is written where needed")
    parser.add_argument("--wheels", type=Path, help="folder of wheels to use without installing them")
    parser.add_argument("--out", type=Path, default=ROOT / "scratch/benchmark", help="folder of results")
    parser.add_argument("--json", action="store_true", help="print only JSON")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=_choose_folder(options.tiny)) as name:
        folder = Path(name)
        prepare(options.wheels, folder / "site")
        import torch

        device = "cpu" if options.tiny else "cuda"
        if options.tiny:
            torch.set_num_threads(1)
        elif not torch.cuda.is_available():
            sys.exit("no GPU is here, so nothing was measured; --tiny tries the benchmark on the CPU")
        for module in ("transformers.models.qwen3_vl.modeling_qwen3_vl", "benchmarks.gpu.models"):
            importlib.import_module(module)  # before the steps fork, so that each starts at once
        steps = steps_of(folder, device, is_tiny=options.tiny)
        if wanted := set(filter(None, options.only.split(","))):
            if unknown := wanted - {step.name for step in steps}:
                sys.exit(
                    f"--only: no step {', '.join(sorted(unknown))}; name some of {', '.join(s.name for s in steps)}"
                )
            steps = [step for step in steps if step.name in wanted or step.name.startswith("write_")]
        gpu_name = "none: tiny models on the CPU" if options.tiny else _gpu_name()
        machine = {"gpu": gpu_name, "architecture": platform.machine()}
        path = options.out / "gpu.json"
        content = write_results(path, machine, run_steps(steps, folder, BUDGET_S))
    return print_figures(content, path, as_json=options.json)


def _choose_folder(is_tiny: bool) -> str | None:
    """Return memory as the folder of checkpoints where it has room: 40 GB are written and read at once."""
    roomy = not is_tiny and _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > _ROOMY_BYTES
    return str(_SHARED_MEMORY) if roomy else None


def _gpu_name() -> str:
    """Ask nvidia-smi, because torch would start CUDA before the steps fork."""
    from norm_core.models.machine import survey_machine

    gpu = survey_machine().gpu
    return gpu.name if gpu else "a GPU without nvidia-smi"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, so that no step survives
    sys.exit(main())
