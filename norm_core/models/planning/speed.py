"""The speed of a model on a GPU: as measured there, or a bound by published figures with what measured models lost."""

import re
from typing import Literal

from norm_core.models.manifest import EngineKind, Manifest
from norm_core.records.record import record

QUANTIZED_AT_LOAD = ("nf4", "int8")
# How often weights are read, and how many tokens are computed: for a window of `./tactful benchmark --gpu` (15 pictures
# and a minute of talk, eight questions of 160 tokens), and for a written token.
Task = Literal["window", "token"]
_PASSES: dict[Task, int] = {"window": 1 + 8, "token": 1}
_TOKENS: dict[Task, int] = {"window": 4000 + 8 * 160, "token": 1}


@record
class Duration:
    """Seconds, and whether they were measured for this model on this kind of GPU."""

    seconds: float
    basis: Literal["measured", "estimated"]


@record
class Speed:
    """The time of a window and of a written token; None where the engine was not measured on any GPU.

    No engine writes a token in less than `token_bound_s`. `source` tells where the figures come from.
    """

    window: Duration | None = None
    token: Duration | None = None
    token_bound_s: float
    source: str


@record
class _Gpu:
    """Published figures: memory bandwidth, and dense 16-bit arithmetic where it is known."""

    bandwidth_gb_s: float
    tflops: float | None = None

    def bound_s(self, task: Task, parameters_million: float, load_mb: float) -> float:
        """Return the time that reading the weights and the arithmetic take at least."""
        computing_s = 2e-6 * parameters_million * _TOKENS[task] / self.tflops if self.tflops else 0.0
        return _PASSES[task] * 1e-3 * load_mb / self.bandwidth_gb_s + computing_s


@record
class _MeasuredModel:
    """A model of true size with random weights in the transformers engine."""

    parameters_million: float
    load_mb: float
    window_s: float
    token_s: float | None = None
    quantized: bool = False

    def seconds(self, task: Task) -> float | None:
        return self.window_s if task == "window" else self.token_s


# By a pattern of the name that nvidia-smi or the device tree gives; the first that matches counts.
_GPUS = {
    r"RTX 3090(?! Ti)": _Gpu(bandwidth_gb_s=936.2, tflops=71.0),
    r"RTX 4090(?! (Laptop|D))": _Gpu(bandwidth_gb_s=1008.0, tflops=165.2),
    r"RTX 4060 Laptop": _Gpu(bandwidth_gb_s=256.0),
    r"\bT4\b": _Gpu(bandwidth_gb_s=320.0, tflops=65.0),
    r"A100.*40GB": _Gpu(bandwidth_gb_s=1555.0, tflops=312.0),
    r"A100.*80GB": _Gpu(bandwidth_gb_s=2039.0, tflops=312.0),
    r"H100 80GB HBM3": _Gpu(bandwidth_gb_s=3350.0, tflops=989.0),
    r"Jetson (AGX )?Thor": _Gpu(bandwidth_gb_s=273.0),
}
# The kind of GPU on which `./tactful benchmark --gpu` measured models, and when.
_KIND, _DATE = r"H100 80GB HBM3", "2026-11-26"
_MEASURED = {
    "qwen3-vl-2b": _MeasuredModel(parameters_million=2128, load_mb=4256, window_s=0.297, token_s=0.0209),
    "qwen3-vl-4b": _MeasuredModel(parameters_million=4438, load_mb=8876, window_s=0.396, token_s=0.0261),
    "qwen3-vl-4b-nf4": _MeasuredModel(
        parameters_million=4438, load_mb=3106, window_s=0.55, token_s=0.0342, quantized=True
    ),
    "qwen3-vl-8b": _MeasuredModel(parameters_million=8767, load_mb=17534, window_s=0.445),
}


def estimate_speed(manifest: Manifest, gpu_name: str) -> Speed | None:
    """Return a model's speed on a GPU; None where the size of the model or the figures of the GPU are unknown."""
    kind = next((pattern for pattern in _GPUS if re.search(pattern, gpu_name)), "")
    if not kind or manifest.parameters_million is None or manifest.memory is None:
        return None
    token_bound_s = _bound_s("token", manifest, _GPUS[kind])
    if manifest.engine is not EngineKind.TRANSFORMERS:
        return Speed(token_bound_s=token_bound_s, source="not measured in this engine")
    return Speed(
        window=_duration("window", manifest, kind),
        token=_duration("token", manifest, kind),
        token_bound_s=token_bound_s,
        source=f"measured on an {_KIND}, {_DATE}; others are estimated from it",
    )


def _duration(task: Task, manifest: Manifest, kind: str) -> Duration:
    """Return the measured time, or the bound and what the measured model nearest in size lost to its own bound."""
    own = _MEASURED.get(manifest.name) if kind == _KIND else None
    if own and (seconds := own.seconds(task)):
        return Duration(seconds=seconds, basis="measured")
    quantized, parameters = manifest.quantization in QUANTIZED_AT_LOAD, manifest.parameters_million or 0.0
    lost = {
        abs(model.parameters_million - parameters): seconds
        - _GPUS[_KIND].bound_s(task, model.parameters_million, model.load_mb)
        for model in _MEASURED.values()
        if model.quantized == quantized and (seconds := model.seconds(task))
    }
    return Duration(seconds=_bound_s(task, manifest, _GPUS[kind]) + lost[min(lost)], basis="estimated")


def _bound_s(task: Task, manifest: Manifest, gpu: _Gpu) -> float:
    assert manifest.parameters_million
    assert manifest.memory
    return gpu.bound_s(task, manifest.parameters_million, manifest.memory.load_mb)
