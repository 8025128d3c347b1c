"""Run a backend in a child process, so that a crash of its native library costs an answer and not the node."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from norm_core.engines.backend import EngineHealth
from norm_core.engines.errors import EngineError, EngineFailedError
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import RequestContext
from norm_core.records.status import Counter
from norm_core.runtime.program import PROGRAM

_MAX_CRASHES = 3  # in a row; after them the model is loaded no more
_END_S = 5.0
_GONE = (EOFError, BrokenPipeError, ConnectionResetError)  # the other process has ended
# What a child sends: the result of a call, its error, or a method of the request to call in the parent.
_RESULT, _FAULT, _REQUEST = "result", "fault", "request"


class BackendProcess:
    """A backend in a child process; after a crash the next question starts it again."""

    model_info: ModelInfo

    def __init__(self, backend: str, **settings: Any) -> None:
        """Load the backend, named as `module:Class`. Raises EngineFailedError if it cannot be loaded or crashes."""
        self._backend, self._settings = backend, settings
        self._crashes = self._crashes_in_row = 0
        self._ended_with = ""
        self._prefix: Prompt | None = None  # the prefix that the child holds
        self.model_info, self._health = self._start()

    @property
    def health(self) -> EngineHealth:
        """The problems of the backend, and the crashes of its process."""
        if not self._crashes:
            return self._health
        crash = f"{self.model_info.model}: its process ended with {self._ended_with}; run {PROGRAM} doctor"
        counter = Counter(name="engine_crashes", count=self._crashes)
        return EngineHealth(issues=(*self._health.issues, crash), counters=(*self._health.counters, counter))

    @contextmanager
    def encoded(self, prefix: Prompt, call: RequestContext) -> Iterator[Prompt]:
        """Encode the prefix in the child."""
        self._encode(prefix, call)
        try:
            yield prefix
        finally:
            if self._prefix is not None:
                self._prefix = None
                with suppress(EngineFailedError):  # a crash is counted, and the answers are there
                    self._ask(call, "release")

    def score(self, prefix: Prompt, question: Question, call: RequestContext) -> Sequence[float]:
        """Score a question in the child; one that was started again encodes the prefix first."""
        if self._prefix is None:
            self._encode(prefix, call)
        weights: Sequence[float] = self._ask(call, "score", question)
        return weights

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Write in the child."""
        return str(self._ask(call, "generate", prompt, schema, max_tokens, seed))

    def close(self) -> None:
        """End the child; a second call does nothing."""
        self._connection.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _encode(self, prefix: Prompt, call: RequestContext) -> None:
        self._ask(call, "encode", prefix)
        self._prefix = prefix

    def _start(self) -> tuple[ModelInfo, EngineHealth]:
        self._connection, theirs = Pipe()
        with theirs:
            command = f"from norm_core.engines.backend_process import serve; serve({theirs.fileno()})"
            self._process = subprocess.Popen(
                [sys.executable, "-c", command],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                start_new_session=True,  # Ctrl-C is for this process, which then ends the child
            )
        try:
            started: tuple[ModelInfo, EngineHealth] = self._exchange(None, (self._backend, self._settings))
        except BaseException:
            self.close()
            raise
        return started

    def _ask(self, call: RequestContext, method: str, *arguments: Any) -> Any:
        if self._process.poll() is not None or self._connection.closed:
            if self._crashes_in_row >= _MAX_CRASHES:
                raise EngineFailedError(
                    f"{self.model_info.model}: its process ended with {self._ended_with} {_MAX_CRASHES} times in a "
                    f"row; run {PROGRAM} doctor, mend what it says, and start the node again"
                )
            self._start()
        answer = self._exchange(call, (id(call), method, arguments))
        if method in {"score", "generate"}:
            self._crashes_in_row = 0
        return answer

    def _exchange(self, call: RequestContext | None, message: Any) -> Any:
        """Send a message; serve what the child asks of the request until its result comes."""
        try:
            self._connection.send(message)
            while True:
                kind, value = self._connection.recv()
                if kind == _RESULT:
                    return value
                if kind == _FAULT:
                    raise value
                name, arguments, named = value
                self._connection.send(_attempt(getattr(call, name), *arguments, **named))
        except _GONE:
            raise self._crash() from None

    def _crash(self) -> EngineFailedError:
        self.close()
        code = self._process.returncode
        self._ended_with = signal.Signals(-code).name if code < 0 else f"code {code}"
        self._crashes += 1
        self._crashes_in_row += 1
        self._prefix = None
        return EngineFailedError(
            f"{self._backend.partition(':')[2]}: its process ended with {self._ended_with}; the next question starts "
            f"it again; if that does not help, run {PROGRAM} doctor"
        )


class _RemoteRequest:
    """The request of the parent: each call of a method is one of the parent's."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        def ask(*arguments: Any, **named: Any) -> Any:
            self._connection.send((_REQUEST, (name, arguments, named)))
            kind, value = self._connection.recv()
            if kind == _FAULT:
                raise value
            return value

        return ask


class _Child:
    """The backend in the child, and the prefix that it holds encoded."""

    def __init__(self, connection: Connection, name: str, settings: dict[str, Any]) -> None:
        module, _, kind = name.partition(":")
        self._connection = connection
        self._backend = getattr(import_module(module), kind)(**settings)
        self._prefix = ExitStack()
        self._encoded: Any = None
        self._call_id = 0
        self._call = _RemoteRequest(connection)

    def describe(self) -> tuple[ModelInfo, EngineHealth]:
        return self._backend.model_info, getattr(self._backend, "health", EngineHealth())

    def answer(self, call_id: int, method: str, arguments: Sequence[Any]) -> Any:
        if call_id != self._call_id:  # a prefix remembers which request read it
            self._call_id, self._call = call_id, _RemoteRequest(self._connection)
        match method:
            case "encode":
                self._prefix.close()
                self._encoded = self._prefix.enter_context(self._backend.encoded(*arguments, self._call))
                return None
            case "release":
                return self._prefix.close()
            case "score":
                return [float(weight) for weight in self._backend.score(self._encoded, *arguments, self._call)]
        prompt, schema, max_tokens, seed = arguments
        return self._backend.generate(prompt, self._call, schema=schema, max_tokens=max_tokens, seed=seed)

    def close(self) -> None:
        self._prefix.close()
        self._backend.close()


def serve(handle: int) -> None:
    """Answer the parent's messages until it closes its end of the connection."""
    with Connection(handle) as connection, suppress(*_GONE), ExitStack() as stack:
        kind, child = _attempt(_Child, connection, *connection.recv())
        if kind == _FAULT:
            connection.send((kind, child))
            return
        stack.callback(child.close)
        connection.send((_RESULT, child.describe()))
        while True:
            connection.send(_attempt(child.answer, *connection.recv()))


def _attempt(step: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[str, Any]:
    """Return a step's result or its error, in a form that the other process knows."""
    try:
        return _RESULT, step(*arguments, **named)
    except (EngineError, ImportError, MemoryError) as error:
        return _FAULT, error.with_traceback(None)
    except _GONE:
        raise
    except Exception as error:  # noqa: BLE001  a backend may raise anything, and the next call must still work
        return _FAULT, EngineFailedError(f"{type(error).__name__}: {error}")
