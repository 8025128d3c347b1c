"""ONNX Runtime sessions: on the fastest provider that loads the model, and with few threads."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.records.record import record
from norm_core.runtime.cache_dir import make_cache_folder

Arrays = Mapping[str, NDArray[Any]]

TENSORRT, CUDA, CPU = PROVIDERS = ("TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider")

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}

_log = logging.getLogger(__name__)

onnxruntime.disable_telemetry_events()  # also if a program imported it before norm_core


@record
class ProviderFault:
    """A provider was available and did not load the model."""

    provider: str
    reason: str


class OnnxSession:
    """A loaded model; `provider` runs it, `faults` lists failed providers. Any thread may run it."""

    def __init__(self, session: Any, provider: str, faults: tuple[ProviderFault, ...]) -> None:
        self._session = session
        self.provider, self.faults = provider, faults

    @property
    def inputs(self) -> dict[str, tuple[int | None, ...]]:
        """The shape of each input by name; None for a dimension of any length."""
        return {
            given.name: tuple(side if isinstance(side, int) else None for side in given.shape)
            for given in self._session.get_inputs()
        }

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs, in order."""
        return [given.name for given in self._session.get_outputs()]

    def run(self, outputs: Sequence[str] | None, inputs: Arrays) -> list[Any]:
        """Run the model and return the outputs by name, or all outputs."""
        return list(self._session.run(outputs, inputs))

    def blank(self) -> dict[str, NDArray[Any]]:
        """Return zeros of the declared shapes, with length one for a free dimension."""
        return {
            given.name: np.zeros([side if isinstance(side, int) else 1 for side in given.shape], _TYPES[given.type])
            for given in self._session.get_inputs()
        }


def open_session(
    model: Path,
    *,
    threads: int = 1,
    providers: Sequence[str] = PROVIDERS,
    cache_folder: Path | None = None,
    warm_up: Arrays | None = None,
    memory_arena: bool = True,
    weights: Arrays | None = None,
) -> OnnxSession:
    """Load the model with the first available provider that can run it once, on `warm_up` or on zeros.

    `weights` are the model's external tensors by name. Raise EngineFailedError if the file is missing or no provider
    can run it.
    """
    if not model.is_file():
        raise EngineFailedError(f"{model}: there is no such model file")
    present = onnxruntime.get_available_providers()
    faults: list[ProviderFault] = []
    for provider in providers:
        if provider not in present:
            continue
        try:
            session = _created(model, provider, threads, memory_arena, cache_folder, weights or {})
            opened = OnnxSession(session, provider, tuple(faults))
            opened.run(None, warm_up or opened.blank())
        except Exception as error:  # noqa: BLE001  ONNX Runtime's errors share no other base
            faults.append(ProviderFault(provider=provider, reason=_first_line(error)))
            _log.warning("%s does not run on %s: %s", model.name, provider, faults[-1].reason)
        else:
            return opened
    if not faults:
        raise EngineFailedError(f"{model}: none of {', '.join(providers)} is in this ONNX Runtime")
    reasons = "; ".join(f"{fault.provider}: {fault.reason}" for fault in faults)
    raise EngineFailedError(f"{model}: cannot be loaded, so it may be cut off or no ONNX model: {reasons}")


def _created(  # noqa: PLR0917
    model: Path, provider: str, threads: int, memory_arena: bool, cache_folder: Path | None, weights: Arrays
) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.enable_cpu_mem_arena = memory_arena
    # A spinning thread would take a core from other work on the robot.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 3
    if weights:
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in weights.values()]
        options.add_external_initializers(list(weights), values)
    # Single nodes may fall back to the CPU; the whole model must not do so unnoticed.
    wanted = [(provider, _settings(provider, cache_folder)), *([CPU] if provider != CPU else [])]
    session = onnxruntime.InferenceSession(str(model), options, providers=wanted, enable_fallback=0)
    used = session.get_providers()[0]
    if used != provider:
        raise EngineFailedError(f"its libraries could not be loaded, and the model went to {used}")
    return session


def _settings(provider: str, cache_folder: Path | None) -> dict[str, str]:
    if provider != TENSORRT:
        return {}
    folder = cache_folder or make_cache_folder("tensorrt")  # building takes minutes, loading takes seconds
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": str(folder),
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": str(folder),
    }


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
