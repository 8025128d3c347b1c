"""ONNX Runtime sessions on the fastest provider that runs the model, with few threads."""

import io
import logging
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.providers import OnFault, Provider, ProviderFault
from norm_core.records.record import record
from norm_core.runtime.extras import format_install_command

Arrays = Mapping[str, NDArray[Any]]

CUDA = "CUDAExecutionProvider"
CPU = "CPUExecutionProvider"
# The fastest first.
PROVIDERS = (CUDA, CPU)
_PROVIDERS_BY_NAME: Mapping[Provider, str] = {"cuda": CUDA, "cpu": CPU}
# The numpy type of each type name of ONNX Runtime.
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

# Also here, because a program may import onnxruntime before norm_core.
onnxruntime.disable_telemetry_events()


@record
class SessionSource:
    """The arguments of a session, with which it is created again on another provider."""

    model: Path
    threads: int
    memory_arena: bool
    weights: Arrays
    on_fault: OnFault


def create_session(source: SessionSource, providers: Sequence[str]) -> Any:
    """Create the session of a model on the first provider.

    Raises EngineFailedError if that provider cannot load the model.
    """
    provider = providers[0]
    if provider not in onnxruntime.get_available_providers():
        raise EngineFailedError(
            f"this ONNX Runtime does not contain it; run {format_install_command('gpu')} for one that does"
        )
    complaints = "" if provider == CPU else _load_libraries()
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
    # Single nodes of the graph may fall back to later providers, but not the whole model.
    available = [name for name in providers if name in onnxruntime.get_available_providers()]
    session = onnxruntime.InferenceSession(
        str(source.model), options, providers=list(dict.fromkeys((*available, CPU))), enable_fallback=0
    )
    if session.get_providers()[0] != provider:
        raise EngineFailedError(f"its libraries could not be loaded ({complaints or 'see the log'})")
    return session


def make_zero_inputs(session: Any) -> dict[str, NDArray[Any]]:
    """Return zeros of the declared shapes, with length one for a dimension of any length."""
    return {
        declared.name: np.zeros(
            [side if isinstance(side, int) else 1 for side in declared.shape], _TYPES[declared.type]
        )
        for declared in session.get_inputs()
    }


def _load_libraries() -> str:
    """Load the CUDA libraries of Python packages; return the messages about those not found."""
    complaints = io.StringIO()
    with redirect_stdout(complaints):
        onnxruntime.preload_dlls()
    return complaints.getvalue().strip().replace("\n", "; ")


class OnnxSession:
    """A loaded model, which any thread may run; `provider` runs it, and `faults` lists the failed ones."""

    def __init__(self, source: SessionSource, providers: Sequence[str], example: Arrays | None) -> None:
        """Load the model with the first provider that can run it. Raises EngineFailedError if none can."""
        self._source = source
        self._lock = Lock()
        self.faults: tuple[ProviderFault, ...] = ()
        self._use(_find_running(source, providers, None, example))

    @property
    def inputs(self) -> dict[str, tuple[int | None, ...]]:
        """The shape of each input by name; None for a dimension of any length."""
        return {
            declared.name: tuple(side if isinstance(side, int) else None for side in declared.shape)
            for declared in self._session.get_inputs()
        }

    def run(self, outputs: Sequence[str] | None, inputs: Arrays) -> list[Any]:
        """Return the named outputs, or all.

        If the provider fails, the next one that can run these inputs takes its place.

        Raises EngineFailedError if no provider can run the model.
        """
        session = self._session
        try:
            return list(session.run(outputs, inputs))
        except Exception as error:  # noqa: BLE001  ONNX Runtime's errors share no other base
            return self._run_elsewhere(session, outputs, inputs, error)

    def _run_elsewhere(self, failed: Any, outputs: Sequence[str] | None, inputs: Arrays, error: Exception) -> list[Any]:
        with self._lock:
            if self._session is failed:
                fault = ProviderFault(provider=self.provider, reason=f"it failed at work: {_cut_to_first_line(error)}")
                try:
                    running = _find_running(self._source, self._later_providers, outputs, inputs)
                except EngineFailedError:
                    # The inputs are wrong or the file is missing, so the provider stays.
                    reason = f"{self._source.model.name}: cannot be run on {self.provider}: {_cut_to_first_line(error)}"
                    raise EngineFailedError(reason) from error
                self._use(replace(running, faults=(fault, *running.faults)))
        return list(self._session.run(outputs, inputs))

    def _use(self, running: "_Running") -> None:
        self._session = running.session
        self.provider = running.provider
        self._later_providers = running.later_providers
        self.faults += running.faults
        for fault in running.faults:
            _log.warning("%s does not run on %s: %s", self._source.model.name, fault.provider, fault.reason)
            self._source.on_fault(fault)


@record
class _Running:
    """A session that ran once, the providers to try after its own, and the faults of the earlier ones."""

    session: Any
    provider: str
    later_providers: tuple[str, ...]
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

    By default, all providers of this ONNX Runtime are tried, the fastest first. `on_fault` is called for each failed
    provider, now or later. `weights` are the external tensors of the model by name.

    Raises EngineFailedError if the file is missing or no provider can run it.
    """
    if not model.is_file():
        raise EngineFailedError(f"{model}: there is no such model file; correct the path, or download the model")
    if providers is None:
        providers = [name for name in PROVIDERS if name in onnxruntime.get_available_providers()]
    source = SessionSource(
        model=model, memory_arena=memory_arena, weights=weights or {}, on_fault=on_fault, threads=threads
    )
    return OnnxSession(source, providers, warm_up)


def list_providers(names: Sequence[Provider]) -> tuple[str, ...]:
    """Return the names of providers in ONNX Runtime, with the CPU last."""
    return tuple(dict.fromkeys((*(_PROVIDERS_BY_NAME[name] for name in names), CPU)))


def _find_running(
    source: SessionSource, providers: Sequence[str], outputs: Sequence[str] | None, example: Arrays | None
) -> _Running:
    faults: list[ProviderFault] = []
    for index, provider in enumerate(providers):
        try:
            session = create_session(source, providers[index:])
            session.run(outputs, example or make_zero_inputs(session))
        except Exception as error:  # noqa: BLE001  ONNX Runtime's errors share no other base
            faults.append(ProviderFault(provider=provider, reason=_cut_to_first_line(error)))
        else:
            later_providers = tuple(providers[index + 1 :])
            return _Running(session=session, provider=provider, later_providers=later_providers, faults=tuple(faults))
    reasons = "; ".join(f"{fault.provider}: {fault.reason}" for fault in faults)
    raise EngineFailedError(
        f"{source.model}: cannot be loaded: {reasons}; if it is cut off or not an ONNX model, download it again"
    )


def _cut_to_first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
