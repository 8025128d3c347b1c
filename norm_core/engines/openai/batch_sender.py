"""Send a batch's requests to a server, some at a time, and append its answers to the folder."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any

from norm_core.engines.errors import EngineError
from norm_core.engines.openai.batch import MODE, BatchError, answered_ids, requests_of
from norm_core.engines.openai.client import OpenAIServer
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.engines.settings import Answers, OpenAISettings
from norm_core.runtime.time import NS_PER_S, WallClock
from norm_core.runtime.wording import count_of

ANSWERS = "answers.jsonl"
MAX_FAILURES = 20  # in a row, after which nothing more is sent
TIMEOUT_S = 600
Line = dict[str, Any]


class PatientDeadline(Deadline):
    """The time of one request, in which a busy or absent server is waited for."""

    is_patient = True


class BatchSender:
    """The requests of a folder that have no answer yet, and the server that answers them."""

    def __init__(self, folder: Path, server: OpenAIServer, settings: OpenAISettings) -> None:
        self._folder, self._server, self._settings = folder.expanduser(), server, settings
        self.reasons = Counter[str]()
        self._failures_in_row, self._last_reason = 0, ""
        self._cancelled = Event()

    def pending(self) -> Iterator[Line]:
        """Return the requests without an answer. Raises BatchError where the folder holds no requests."""
        answered = answered_ids(self._folder)
        return (request for request in requests_of(self._folder) if request["custom_id"] not in answered)

    def send(self, concurrency: int, advance: Callable[[], None]) -> None:
        """Send what is pending, and call `advance` after each answer. Raises BatchError after too many failures.

        What was answered is stored, and a second call goes on there.
        """
        path = self._folder / ANSWERS
        if path.is_file() and (content := path.read_bytes()) and not content.endswith(b"\n"):
            self._append(b"\n")  # after a line that a killed run left cut
        running: set[Future[Line]] = set()
        with ThreadPoolExecutor(concurrency) as pool:
            try:
                for request in self.pending():
                    if self._failures_in_row >= MAX_FAILURES:
                        raise BatchError(
                            f"{count_of(self._failures_in_row, 'request')} failed in a row, the last with: "
                            f"{self._last_reason}; correct that, then give the same command again"
                        )
                    running.add(pool.submit(self._ask, request))
                    if len(running) >= concurrency:
                        self._store_done(running, advance)
                while running:
                    self._store_done(running, advance)
            except BaseException as error:
                if not isinstance(error, BatchError):
                    self._cancelled.set()
                for future in running:  # an answer that is under way is paid for
                    self._store(future.result())
                raise

    def _ask(self, request: Line) -> Line:
        """Return the line of an answer, or of the reason why there is none."""
        clock = WallClock()
        deadline = PatientDeadline(clock, clock.now_ns() + TIMEOUT_S * NS_PER_S, self._cancelled)
        response, error = None, None
        try:
            body = adapt(request["body"], self._settings)
            response = {"status_code": 200, "body": json.loads(self._server.complete(body, RequestContext(deadline)))}
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

    def _store(self, line: Line) -> None:
        self._append(json.dumps(line).encode() + b"\n")
        if line["error"]:
            self._failures_in_row, self._last_reason = self._failures_in_row + 1, line["error"]["message"]
            self.reasons[self._last_reason] += 1
        else:
            self._failures_in_row = 0

    def _append(self, content: bytes) -> None:
        path = self._folder / ANSWERS
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, MODE), "ab") as file:
                file.write(content)
        except OSError as error:
            raise BatchError(f"{path}: cannot be written: {error.strerror}; free some room there") from error


def adapt(body: Mapping[str, Any], settings: OpenAISettings) -> Line:
    """Return a body with a server's own names and fields; None in its settings removes a field."""
    fields = ("max_tokens", "max_completion_tokens")
    tokens = max(body.get(name, 0) for name in fields)
    if settings.answers is Answers.TEXT:
        tokens = max(tokens, settings.text_tokens)
    model = {"model": settings.model} if settings.model else {}
    changed = {**body, **dict.fromkeys(fields), settings.tokens_field: tokens, **model, **settings.extra}
    return {name: value for name, value in changed.items() if value is not None}
