"""Send the requests of a batch to a server, some at a time, and append its answers to the folder."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any

from norm_core.engines.errors import EngineError
from norm_core.engines.openai.batch import FILE_MODE, BatchError, read_answered_ids, read_requests
from norm_core.engines.openai.client import OpenAIServer
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.engines.settings import Answers, OpenAISettings
from norm_core.runtime.time import NS_PER_S, WallClock
from norm_core.runtime.wording import count_of

ANSWERS = "answers.jsonl"
# Number of failures in a row after which nothing more is sent.
MAX_FAILURES = 20
TIMEOUT_S = 600
Line = dict[str, Any]


class PatientDeadline(Deadline):
    """A deadline until which a request waits for a busy or absent server."""

    is_patient = True


class BatchSender:
    """The requests of a folder that have no answer yet, and the server that answers them."""

    def __init__(self, folder: Path, server: OpenAIServer, settings: OpenAISettings) -> None:
        self._folder = folder.expanduser()
        self._server = server
        self._settings = settings
        self.failure_reasons = Counter[str]()
        self._failures_in_row = 0
        self._last_reason = ""
        self._cancelled = Event()

    def find_unanswered(self) -> Iterator[Line]:
        """Return the requests without an answer. Raises BatchError if the folder has no requests."""
        answered_ids = read_answered_ids(self._folder)
        return (request for request in read_requests(self._folder) if request["custom_id"] not in answered_ids)

    def send(self, concurrency: int, advance: Callable[[], None]) -> None:
        """Send the requests without an answer, and call `advance` after each one.

        Answers are stored at once, and a second call sends the rest.

        Raises BatchError after too many failures in a row.
        """
        path = self._folder / ANSWERS
        if path.is_file() and (content := path.read_bytes()) and not content.endswith(b"\n"):
            self._append(b"\n")  # A killed run left an incomplete line.
        running: set[Future[Line]] = set()
        with ThreadPoolExecutor(concurrency) as pool:
            try:
                for request in self.find_unanswered():
                    if self._failures_in_row >= MAX_FAILURES:
                        raise BatchError(
                            f"{count_of(self._failures_in_row, 'request')} failed in a row, the last with: "
                            f"{self._last_reason}; correct that, then run the same command again"
                        )
                    running.add(pool.submit(self._ask, request))
                    if len(running) >= concurrency:
                        self._store_done(running, advance)
                while running:
                    self._store_done(running, advance)
            except BaseException as error:
                if not isinstance(error, BatchError):
                    self._cancelled.set()
                # Answers on their way are stored too, because they cost money.
                for future in running:
                    self._store(future.result())
                raise

    def _ask(self, request: Line) -> Line:
        """Return the line of an answer, or of the reason why there is none."""
        clock = WallClock()
        deadline = PatientDeadline(clock, clock.now_ns() + TIMEOUT_S * NS_PER_S, self._cancelled)
        response: Line | None = None
        error: Line | None = None
        try:
            body = adapt_body(request["body"], self._settings)
            response = {"status_code": 200, "body": json.loads(self._server.complete(body, RequestContext(deadline)))}
        except EngineError as failure:
            error = {"code": failure.outcome.value, "message": str(failure)}
        except ValueError as failure:
            error = {"code": "unparsed", "message": f"the answer is not JSON: {failure}"}
        return {"custom_id": request["custom_id"], "response": response, "error": error}

    def _store_done(self, running: set[Future[Line]], advance: Callable[[], None]) -> None:
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            running.discard(future)
            self._store(future.result())
            advance()

    def _store(self, line: Line) -> None:
        self._append(json.dumps(line).encode() + b"\n")
        if line["error"]:
            self._failures_in_row += 1
            self._last_reason = line["error"]["message"]
            self.failure_reasons[self._last_reason] += 1
        else:
            self._failures_in_row = 0

    def _append(self, content: bytes) -> None:
        path = self._folder / ANSWERS
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE), "ab") as file:
                file.write(content)
        except OSError as error:
            raise BatchError(f"{path}: cannot be written: {error.strerror}; free some room there") from error


def adapt_body(body: Mapping[str, Any], settings: OpenAISettings) -> Line:
    """Return a body with the names and fields of a server; None in its settings removes a field."""
    limit_fields = ("max_tokens", "max_completion_tokens")
    max_tokens = max(body.get(name, 0) for name in limit_fields)
    if settings.answers is Answers.TEXT:
        max_tokens = max(max_tokens, settings.text_tokens)
    model = {"model": settings.model} if settings.model else {}
    fields = {**body, **dict.fromkeys(limit_fields), settings.tokens_field: max_tokens, **model, **settings.extra}
    return {name: value for name, value in fields.items() if value is not None}
