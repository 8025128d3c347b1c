"""An ONNX Runtime session on one provider: its libraries, threads and compiled engines."""

import ctypes
import hashlib
import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.providers import OnFault
from norm_core.records.record import record
from norm_core.runtime.cache_dir import make_cache_folder
from norm_core.runtime.extras import install_command

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

onnxruntime.disable_telemetry_events()  # also if a program imported it before norm_core


@record
class SessionSource:
    """What a session is made of, so that it can be made again on another provider."""

    model: Path
    threads: int
    memory_arena: bool
    cache_folder: Path | None
    weights: Arrays
    on_fault: OnFault


def create_session(source: SessionSource, providers: Sequence[str]) -> Any:
    """Return the model's session on the first of the providers; raise EngineFailedError if that cannot run it."""
    provider = providers[0]
    if provider not in onnxruntime.get_available_providers():
        raise EngineFailedError(f"this ONNX Runtime is built without it; {install_command('gpu')} brings one with it")
    missed = "" if provider == CPU else _load_libraries()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = source.threads
    options.enable_cpu_mem_arena = source.memory_arena
    # A spinning thread would take a core from other work on the robot.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 3
    if source.weights:
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in source.weights.values()]
        options.add_external_initializers(list(source.weights), values)
    # Single nodes may fall back to later providers; the whole model must not do so unnoticed.
    available = [one for one in providers if one in onnxruntime.get_available_providers()]
    wanted = [(one, _settings(one, source)) for one in dict.fromkeys((*available, CPU))]
    session = onnxruntime.InferenceSession(str(source.model), options, providers=wanted, enable_fallback=0)
    used = session.get_providers()[0]
    if used != provider:
        raise EngineFailedError(f"its libraries could not be loaded ({missed or 'see the log'})")
    return session


def zeros_for(session: Any) -> dict[str, NDArray[Any]]:
    """Return zeros of the declared shapes, with length one for a free dimension."""
    return {
        given.name: np.zeros([side if isinstance(side, int) else 1 for side in given.shape], _TYPES[given.type])
        for given in session.get_inputs()
    }


def _load_libraries() -> str:
    """Load what packages hold of CUDA and TensorRT, where the loader does not look; return what was missed."""
    complaints = io.StringIO()
    with redirect_stdout(complaints):
        onnxruntime.preload_dlls()
    with suppress(ImportError):
        import_module("tensorrt_libs")  # loads its libraries
    return complaints.getvalue().strip().replace("\n", "; ")


def _settings(provider: str, source: SessionSource) -> dict[str, str]:
    if provider != TENSORRT:
        return {}
    # Building an engine takes minutes, loading takes seconds. An engine fits its weights and versions alone; its file's
    # name holds the kind of GPU.
    digest = hashlib.sha256()
    for suffix in ("", ".data", "_data"):  # those of external weights
        path = source.model.with_name(source.model.name + suffix)
        if path.is_file():
            with path.open("rb") as part:
                digest.update(hashlib.file_digest(part, "sha256").digest())
    versions = f"onnxruntime-{onnxruntime.__version__}-tensorrt-{_tensorrt_version()}"
    folder = source.cache_folder or make_cache_folder("tensorrt")
    folder /= f"{source.model.stem}-{digest.hexdigest()[:16]}-{versions}"
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": str(folder),
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": str(folder),
    }


def _tensorrt_version() -> str:
    for library in ("libnvinfer.so.11", "libnvinfer.so.10"):
        with suppress(OSError, AttributeError):
            return str(ctypes.CDLL(library).getInferLibVersion())
    return "unknown"
