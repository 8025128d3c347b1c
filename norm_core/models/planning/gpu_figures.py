"""Published figures of GPUs, for an estimate of speed before anybody has measured it."""

import re

from norm_core.records.record import record


@record
class GpuFigures:
    """Memory bandwidth in GB/s and, where known, dense 16-bit arithmetic in TFLOP/s, with their source."""

    bandwidth_gb_s: float
    tflops: float | None
    source: str


_MAKER = "the maker's published figure, not measured here"
_THREAD = "a published table of llama.cpp's efficiency, November 2024"
# By a pattern of the name that nvidia-smi or the device tree gives; the first that matches counts.
_FIGURES = (
    (r"RTX 3050 6GB", 168.0, 13.6, _THREAD),
    (r"RTX 3090(?! Ti)", 936.2, 71.0, _THREAD),
    (r"RTX 4090(?! (Laptop|D))", 1008.0, 165.2, _THREAD),
    (r"RTX 4060 Laptop", 256.0, None, "a published comparison of GPUs"),
    (r"RTX 5090(?! Laptop)", 1792.0, None, _MAKER),
    (r"\bT4\b", 320.0, 65.0, _MAKER),
    (r"A100.*40GB", 1555.0, 312.0, _MAKER),
    (r"A100.*80GB", 2039.0, 312.0, _MAKER),
    (r"H100 80GB HBM3", 3350.0, 989.0, _MAKER),
    (r"Jetson Orin Nano.*Super", 102.0, 17.0, _MAKER),
    (r"Jetson Orin Nano", 68.0, None, _MAKER),
    (r"Jetson Orin NX", 102.4, None, _MAKER),
    (r"Jetson AGX Orin", 204.8, None, _MAKER),
    (r"Jetson (AGX )?Thor", 273.0, None, _MAKER),
)


def figures_of(name: str) -> GpuFigures | None:
    """Return the figures of a GPU by its name; None if this project knows none."""
    for pattern, bandwidth_gb_s, tflops, source in _FIGURES:
        if re.search(pattern, name):
            return GpuFigures(bandwidth_gb_s=bandwidth_gb_s, tflops=tflops, source=source)
    return None
