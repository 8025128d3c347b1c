"""Send a batch's requests to a server, some at a time, and append its answers to the folder."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from norm_core.engines.errors import EngineError
from norm_core.engines.openai.batch import MODE, BatchError, BatchSize, answered_ids, answers_of, requests_of
from norm_core.engines.openai.client import OpenAIServer
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.models.manifest import Prices
from norm_core.runtime.time import WallClock, s_to_ns
from norm_core.runtime.wording import count_of

ANSWERS = "answers.jsonl"
MAX_FAILURES = 20  # in a row, after which nothing more is sent
Line = dict[str, Any]


class PatientDeadline(Deadline):
    """The time of one request, in which a busy or absent server is waited for."""

    is_patient = True


@dataclass
class BatchSender:
    """Send what has no answer yet. `adapt` returns a request's body as the server takes it."""

    folder: Path
    server: OpenAIServer
    adapt: Callable[[Line], Line] = dict
    concurrency: int = 8
    timeout_s: float = 600.0
    max_cost: float = 0.0  # 0 for no limit
    prices: Prices | None = None
    spent: BatchSize = field(default_factory=BatchSize)  # by the server's own count
    earlier: BatchSize = field(default_factory=BatchSize)  # of the answers that the folder held before
    reasons: Counter[str] = field(default_factory=Counter)
    _failures: int = 0
    _cancelled: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        """Count what the folder's earlier answers spent."""
        for fields in answers_of(self.folder):
            if isinstance(response := fields.get("response"), dict):
                self.earlier.add_usage(response.get("body"))

    def pending(self) -> BatchSize:
        """Return the size of what has no answer yet."""
        size = BatchSize()
        for request in self._open_requests():
            size.add(request)
        return size

    def send(self, advance: Callable[[], None]) -> None:
        """Send all open requests, and call `advance` after each. Raises BatchError where a limit is reached.

        What was answered is kept, and a second call goes on there.
        """
        path = self.folder / ANSWERS
        if path.is_file() and (content := path.read_bytes()) and not content.endswith(b"\n"):
            self._append(b"\n")  # after a line that a killed run left cut
        requests = self._open_requests()
        running: set[Future[Line]] = set()
        with ThreadPoolExecutor(self.concurrency) as pool:
            try:
                for request in requests:
                    self._check()
                    running.add(pool.submit(self._ask, request))
                    if len(running) >= self.concurrency:
                        self._store_done(running, advance)
                while running:
                    self._store_done(running, advance)
            except BaseException as error:
                if not isinstance(error, BatchError):
                    self._cancelled.set()
                for future in running:  # an answer that is under way is paid for
                    self._store(future.result())
                raise

    def _open_requests(self) -> Iterator[Line]:
        answered = answered_ids(self.folder)
        return (request for request in requests_of(self.folder) if request.get("custom_id") not in answered)

    def _ask(self, request: Line) -> Line:
        """Return the line of an answer, or of the reason why there is none."""
        clock = WallClock()
        deadline = PatientDeadline(clock, clock.now_ns() + s_to_ns(self.timeout_s), self._cancelled)
        response, error = None, None
        try:
            body = json.loads(self.server.complete(self.adapt(request["body"]), RequestContext(deadline)))
            response = {"status_code": 200, "body": body}
        except EngineError as failure:
            error = {"code": failure.outcome.value, "message": str(failure)}
        except ValueError as failure:
            error = {"code": "unparsed", "message": f"the answer is no JSON: {failure}"}
        return {"custom_id": request["custom_id"], "response": response, "error": error}

    def _store_done(self, running: set[Future[Line]], advance: Callable[[], None]) -> None:
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            running.discard(future)
            self._store(future.result())
            advance()

    def _append(self, content: bytes) -> None:
        """Append to the answers. Raises BatchError."""
        path = self.folder / ANSWERS
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, MODE), "ab") as file:
                file.write(content)
        except OSError as error:
            raise BatchError(f"{path}: cannot be written: {error.strerror}; free some room there") from error

    def _store(self, line: Line) -> None:
        self._append(json.dumps(line).encode() + b"\n")
        self._failures = self._failures + 1 if line["error"] else 0
        if line["error"]:
            self._reason = line["error"]["message"]
            self.reasons[self._reason] += 1
        if line["response"]:
            self.spent.add_usage(line["response"]["body"])

    def _check(self) -> None:
        if self._failures >= MAX_FAILURES:
            raise BatchError(
                f"{count_of(self._failures, 'request')} failed in a row, the last with: {self._reason}; correct that, "
                "then give the same command again"
            )
        cost = self.spent.cost(self.prices) + self.earlier.cost(self.prices) if self.prices else 0.0
        if self.max_cost and cost >= self.max_cost:
            raise BatchError(f"{cost:.4f} were spent here, and --max-cost is {self.max_cost:g}: give more to go on")


def adapt(body: Line, model: str, tokens_field: str, extra: Mapping[str, Any], least_tokens: int) -> Line:
    """Return a body with a server's own names and fields; None removes a field."""
    fields = ("max_tokens", "max_completion_tokens")
    tokens = max(least_tokens, *(body.get(name, 0) for name in fields))
    changed = {**body, **dict.fromkeys(fields), tokens_field: tokens, **({"model": model} if model else {}), **extra}
    return {name: value for name, value in changed.items() if value is not None}
