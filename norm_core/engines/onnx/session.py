"""ONNX Runtime sessions on the fastest provider that runs the model, with few threads."""

import ctypes
import hashlib
import io
import logging
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.providers import OnFault, Provider, ProviderFault
from norm_core.files.data_files import make_cache_folder
from norm_core.records.record import record
from norm_core.runtime.extras import format_install_command

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
_BY_NAME: Mapping[Provider, str] = {"tensorrt": TENSORRT, "cuda": CUDA, "cpu": CPU}
_log = logging.getLogger(__name__)


@record
class SessionSource:
    """The arguments of a session, to create it again on another provider."""

    model: Path
    threads: int
    memory_arena: bool
    weights: Arrays
    on_fault: OnFault


def create_session(source: SessionSource, providers: Sequence[str]) -> Any:
    """Return the model's session on the first provider; raise EngineFailedError if that cannot load it."""
    provider = providers[0]
    if provider not in onnxruntime.get_available_providers():
        raise EngineFailedError(
            f"this ONNX Runtime is built without it; {format_install_command('gpu')} brings one with it"
        )
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
    available = [name for name in providers if name in onnxruntime.get_available_providers()]
    providers_with_settings = [(name, _settings(name, source)) for name in dict.fromkeys((*available, CPU))]
    session = onnxruntime.InferenceSession(
        str(source.model), options, providers=providers_with_settings, enable_fallback=0
    )
    used = session.get_providers()[0]
    if used != provider:
        raise EngineFailedError(f"its libraries could not be loaded ({missed or 'see the log'})")
    return session


def zeros_for(session: Any) -> dict[str, NDArray[Any]]:
    """Return zeros of the declared shapes, with length one for a free dimension."""
    return {
        declared.name: np.zeros(
            [side if isinstance(side, int) else 1 for side in declared.shape], _TYPES[declared.type]
        )
        for declared in session.get_inputs()
    }


def _load_libraries() -> str:
    """Load the CUDA and TensorRT libraries of Python packages; return the messages about those not found."""
    complaints = io.StringIO()
    with redirect_stdout(complaints):
        onnxruntime.preload_dlls()
    with suppress(ImportError):
        import_module("tensorrt_libs")  # loads its libraries
    return complaints.getvalue().strip().replace("\n", "; ")


def _settings(provider: str, source: SessionSource) -> dict[str, str]:
    if provider != TENSORRT:
        return {}
    # Building an engine takes minutes, loading takes seconds. An engine fits only its weights and versions; TensorRT
    # adds the kind of GPU to its file name.
    digest = hashlib.sha256()
    for suffix in ("", ".data", "_data"):  # files of external weights
        path = source.model.with_name(source.model.name + suffix)
        if path.is_file():
            with path.open("rb") as part:
                digest.update(hashlib.file_digest(part, "sha256").digest())
    versions = f"onnxruntime-{onnxruntime.__version__}-tensorrt-{_tensorrt_version()}"
    folder = make_cache_folder("tensorrt") / f"{source.model.stem}-{digest.hexdigest()[:16]}-{versions}"
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


class OnnxSession:
    """A loaded model; `provider` runs it, `faults` lists failed providers. Any thread may run it."""

    def __init__(self, source: SessionSource, providers: Sequence[str], example: Arrays | None) -> None:
        """Load the model with the first provider that can run it; raise EngineFailedError if none can."""
        self._source, self._lock = source, Lock()
        self.faults: tuple[ProviderFault, ...] = ()
        self._use(_first_running(source, providers, None, example))

    @property
    def inputs(self) -> dict[str, tuple[int | None, ...]]:
        """The shape of each input by name; None for a dimension of any length."""
        return {
            declared.name: tuple(side if isinstance(side, int) else None for side in declared.shape)
            for declared in self._session.get_inputs()
        }

    def run(self, outputs: Sequence[str] | None, inputs: Arrays) -> list[Any]:
        """Return the outputs by name, or all outputs; raise EngineFailedError if the model cannot be run.

        If the provider fails, the next one that can run these inputs takes its place.
        """
        session = self._session
        try:
            return list(session.run(outputs, inputs))
        except Exception as error:  # noqa: BLE001  ONNX Runtime's errors share no other base
            return self._run_elsewhere(session, outputs, inputs, error)

    def _run_elsewhere(self, failed: Any, outputs: Sequence[str] | None, inputs: Arrays, error: Exception) -> list[Any]:
        with self._lock:
            if self._session is failed:
                fault = ProviderFault(provider=self.provider, reason=f"it failed at work: {_first_line(error)}")
                try:
                    running = _first_running(self._source, self._later, outputs, inputs)
                except EngineFailedError:  # the inputs are wrong or the file is gone, so the provider stays
                    reason = f"{self._source.model.name}: cannot be run on {self.provider}: {_first_line(error)}"
                    raise EngineFailedError(reason) from error
                self._use(replace(running, faults=(fault, *running.faults)))
        return list(self._session.run(outputs, inputs))

    def _use(self, running: "_Running") -> None:
        self._session, self.provider, self._later = running.session, running.provider, running.later
        self.faults += running.faults
        for fault in running.faults:
            _log.warning("%s does not run on %s: %s", self._source.model.name, fault.provider, fault.reason)
            self._source.on_fault(fault)


@record
class _Running:
    """A session that ran once, the providers to try after its own, and the faults of those before it."""

    session: Any
    provider: str
    later: tuple[str, ...]
    faults: tuple[ProviderFault, ...]


def open_session(
    model: Path,
    *,
    providers: Sequence[str] | None = None,
    on_fault: OnFault = lambda fault: None,
    warm_up: Arrays | None = None,
    memory_arena: bool = True,
    weights: Arrays | None = None,
    threads: int = 1,
) -> OnnxSession:
    """Load the model with the first provider that can run it once, on `warm_up` or on zeros.

    Without `providers`, all that this ONNX Runtime has are tried, the fastest first. `on_fault` is called for each that
    fails, now or later. `weights` are the model's external tensors by name. Raise EngineFailedError if the file is
    missing or no provider can run it.
    """
    if not model.is_file():
        raise EngineFailedError(f"{model}: there is no such model file")
    if providers is None:
        providers = [name for name in PROVIDERS if name in onnxruntime.get_available_providers()]
    source = SessionSource(
        model=model, memory_arena=memory_arena, weights=weights or {}, on_fault=on_fault, threads=threads
    )
    return OnnxSession(source, providers, warm_up)


def in_order(names: Sequence[Provider]) -> tuple[str, ...]:
    """Return ONNX Runtime's names of the providers, with the CPU last."""
    return tuple(dict.fromkeys((*(_BY_NAME[name] for name in names), CPU)))


def _first_running(
    source: SessionSource, providers: Sequence[str], outputs: Sequence[str] | None, example: Arrays | None
) -> _Running:
    faults: list[ProviderFault] = []
    for index, provider in enumerate(providers):
        try:
            session = create_session(source, providers[index:])
            session.run(outputs, example or zeros_for(session))
        except Exception as error:  # noqa: BLE001  ONNX Runtime's errors share no other base
            faults.append(ProviderFault(provider=provider, reason=_first_line(error)))
        else:
            later = tuple(providers[index + 1 :])
            return _Running(session=session, provider=provider, later=later, faults=tuple(faults))
    reasons = "; ".join(f"{fault.provider}: {fault.reason}" for fault in faults)
    raise EngineFailedError(f"{source.model}: cannot be loaded, so it may be cut off or no ONNX model: {reasons}")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
