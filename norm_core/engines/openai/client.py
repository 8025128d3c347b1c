"""Post to an OpenAI-compatible server, with retries until the deadline."""

import asyncio
import json
import random
import re
import time
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Any

import httpx2

from norm_core.engines.engine import ServerStatus
from norm_core.engines.errors import (
    EngineError,
    EngineFailedError,
    InvalidRequestError,
    PastDeadlineError,
    RefusedError,
)
from norm_core.engines.openai.api_key import ApiKey
from norm_core.engines.request_context import RequestContext
from norm_core.runtime.server_address import is_on_this_machine

# The first pause before a probe. It doubles after each failure.
_FIRST_PROBE_S = 0.5
_MAX_PROBE_S = 15.0
# The interval of deadline and cancellation checks while the server works.
_POLL_S = 0.02
# The time to connect. A near deadline shortens it, but not below the minimum.
_CONNECT_S = 5.0
_MIN_CONNECT_S = 1.0
# A completion with the log-probabilities of thousands of tokens is smaller.
_MAX_ANSWER_BYTES = 32 * 2**20
# The longest pause before a retry.
_MAX_RETRY_S = 10.0
# The messages of servers by their meaning.
_TOO_LONG = re.compile(r"exceed_context_size|context_length_exceeded|context (length|size|window)|max_model_len", re.I)
_FILTERED = re.compile(r"content[_ ](filter|management policy|policy)|safety system", re.I)
_NO_IMAGES = re.compile(r"at most \d+ (image|video|audio)|image input is not supported|not a multimodal model", re.I)


class CircuitBreaker:
    """Closed while the server can be reached, open after a failure to connect. Any thread may call."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = Lock()
        self._outage = ""
        self._refused_count = 0
        self._pause_s = _FIRST_PROBE_S
        self._due_s = 0.0

    @property
    def status(self) -> ServerStatus:
        """The current state, and the number of refused requests."""
        with self._lock:
            return ServerStatus(outage=self._outage, requests_refused=self._refused_count)

    def open(self, outage: str) -> bool:
        """Refuse requests, and double the pause until the next probe; return whether the outage is new."""
        with self._lock:
            is_new = not self._outage
            self._outage = outage
            self._pause_s = _FIRST_PROBE_S if is_new else min(2 * self._pause_s, _MAX_PROBE_S)
            self._due_s = self._now_s() + self._pause_s
            return is_new

    def close(self) -> None:
        """Accept requests again."""
        with self._lock:
            self._outage = ""

    def refuse(self) -> str:
        """Count a refused request and return the reason; return an empty text if requests are accepted."""
        with self._lock:
            self._refused_count += bool(self._outage)
            return self._outage

    def time_until_probe_s(self) -> float | None:
        """Return the seconds until the next probe is due; None while no probe is needed."""
        with self._lock:
            return max(0.0, self._due_s - self._now_s()) if self._outage else None


class _BusyError(Exception):
    """The server is busy, for `pause_s` if it states a time; `is_limit` is true for a limit of the request rate."""

    def __init__(self, reason: str, pause_s: float | None = None, *, is_limit: bool = False) -> None:
        super().__init__(reason)
        self.pause_s = pause_s
        self.is_limit = is_limit


class _UnreachableError(_BusyError):
    """No connection could be made."""


class OpenAIServer:
    """A server at `url`, such as http://gpu-box:8000/v1; its key comes from an environment variable and is never shown.

    A silence longer than `stall_s` seconds is a failure, with or without a deadline. After a failure to connect,
    requests with a deadline fail at once, until a background thread reaches the server. Any thread may ask. The pause
    of a busy server applies to all threads.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key_variable: str = "",
        tries: int = 4,
        backoff_s: float = 0.25,
        stall_s: float = 60.0,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        """Read the key and prepare the client. Raises EngineFailedError if the key or the address is unusable."""
        self.url = url.rstrip("/")
        self._max_tries = tries
        self._backoff_s = backoff_s
        self._stall_s = stall_s
        self._key = ApiKey(api_key_variable)
        if api_key_variable and not self._key:
            raise EngineFailedError(f"{url}: its key is missing; set the environment variable {api_key_variable}")
        self._settings: dict[str, Any] = {
            "headers": {"Content-Type": "application/json"} | self._key.headers,
            # A proxy from the environment would carry local requests off this machine.
            "mounts": {"http://": None, "https://": None} if is_on_this_machine(self.url) else None,
        }
        try:
            self._client = httpx2.AsyncClient(**self._settings)
            self._endpoint = httpx2.URL(f"{self.url}/chat/completions")
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise EngineFailedError(f"{url} or its key cannot be used: {type(error).__name__}") from None
        self._loop = asyncio.new_event_loop()
        self._worker = Thread(target=self._loop.run_forever, name=f"requests {self.url}", daemon=True)
        self._worker.start()
        # The time of the loop when the server accepts requests again.
        self._free_s = 0.0
        self._breaker = breaker or CircuitBreaker()
        self._closed = Event()

    @property
    def status(self) -> ServerStatus:
        """Whether the server can be reached; any thread may read it."""
        return self._breaker.status

    def complete(self, body: dict[str, Any], call: RequestContext) -> bytes:
        """Return the answer of the server to a request for a chat completion."""
        # A request without a deadline, as in an offline run, waits for its answer.
        fails_fast = call.remaining_s() is not None
        if fails_fast and (outage := self._breaker.refuse()):
            raise EngineFailedError(outage)
        reply = asyncio.run_coroutine_threadsafe(
            self._complete_with_retries(json.dumps(body).encode(), call, fails_fast), self._loop
        )
        try:
            return reply.result()
        except BaseException:
            reply.cancel()
            raise

    def close(self) -> None:
        """Close all connections and stop probing; a second call does nothing."""
        self._closed.set()
        if not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._client.aclose(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._worker.join()
            self._loop.close()

    async def _complete_with_retries(self, content: bytes, call: RequestContext, fails_fast: bool) -> bytes:
        tries = 0
        while True:
            if (busy_s := self._free_s - self._loop.time()) > 0:
                await self._pause(busy_s, "it limits the rate of requests", call)
            call.check()
            try:
                answer = await self._post_until_cancelled(content, call)
            except _BusyError as busy:
                is_last_try = tries + 1 == self._max_tries
                if isinstance(busy, _UnreachableError):
                    outage = self._report_outage(str(busy))
                    if fails_fast or is_last_try:
                        raise EngineFailedError(outage) from None
                # The random factor spreads the retries of many robots that share a server.
                pause_s = busy.pause_s or self._backoff_s * 2**tries * random.uniform(0.5, 1.0)
                pause_s = min(pause_s, _MAX_RETRY_S)
                if busy.is_limit:
                    self._free_s = max(self._free_s, self._loop.time() + pause_s)
                if is_last_try:
                    raise EngineFailedError(f"{self.url}: {busy} ({self._max_tries} tries)") from None
                await self._pause(pause_s, str(busy), call)
                call.add_usage(retries=1)
                tries += 1
            else:
                self._breaker.close()
                return answer

    def _report_outage(self, reason: str) -> str:
        """Open the breaker, probe the server from a thread until it answers, and return the message for a user."""
        outage = f"{self.url}: cannot be reached ({reason}); start the server, or correct source.url in the manifest"
        if self._breaker.open(outage):
            Thread(target=self._probe_until_reached, name=f"probe {self.url}", daemon=True).start()
        return outage

    def _probe_until_reached(self) -> None:
        while (pause_s := self._breaker.time_until_probe_s()) is not None and not self._closed.wait(pause_s):
            try:
                with httpx2.Client(**self._settings, timeout=_CONNECT_S) as client:
                    client.get(f"{self.url}/models")  # Any answer shows that the server is there.
            except httpx2.TransportError as error:
                self._report_outage(self._redact_error(error))
            else:
                self._breaker.close()

    async def _pause(self, pause_s: float, reason: str, call: RequestContext) -> None:
        remaining_s = call.remaining_s()
        if remaining_s is not None and remaining_s <= pause_s:
            raise PastDeadlineError(f"no time is left for another try at {self.url}: {reason}")
        end_s = self._loop.time() + pause_s
        while (pause_left_s := end_s - self._loop.time()) > 0:
            call.check()
            await asyncio.sleep(min(_POLL_S, pause_left_s))

    async def _post_until_cancelled(self, content: bytes, call: RequestContext) -> bytes:
        """Send one request; close the connection on cancellation, so that the server stops too."""
        remaining_s = call.remaining_s()
        # If a server does not even refuse, half of the time is left for the next step of the caller.
        connect_s = _CONNECT_S if remaining_s is None else min(_CONNECT_S, max(_MIN_CONNECT_S, remaining_s / 2))
        posting = asyncio.ensure_future(self._post(content, min(connect_s, self._stall_s)))
        try:
            while not posting.done():
                call.check()
                await asyncio.wait({posting}, timeout=_POLL_S)
            return posting.result()
        finally:
            if not posting.done():
                posting.cancel()
                await asyncio.wait({posting}, timeout=_CONNECT_S)

    async def _post(self, content: bytes, connect_s: float) -> bytes:
        answer = bytearray()
        timeout = httpx2.Timeout(self._stall_s, connect=connect_s)
        try:
            async with self._client.stream("POST", self._endpoint, content=content, timeout=timeout) as response:
                async for chunk in response.aiter_bytes():
                    answer += chunk
                    if len(answer) > _MAX_ANSWER_BYTES:
                        raise EngineFailedError(
                            f"{self.url}: the answer is larger than {_MAX_ANSWER_BYTES >> 20} "
                            "MB; check that the URL is that of a chat API"
                        )
        except httpx2.ConnectTimeout:
            raise _UnreachableError(f"no connection in {connect_s:.1f} s") from None
        except httpx2.ConnectError as error:
            raise _UnreachableError(self._redact_error(error)) from None
        except httpx2.TimeoutException:
            raise EngineFailedError(
                f"{self.url}: no data for {self._stall_s:g} s; check the load of the server, or raise settings.stall_s"
            ) from None
        except (httpx2.UnsupportedProtocol, httpx2.DecodingError) as error:
            raise EngineFailedError(f"{self.url}: {self._redact_error(error)}") from None
        except httpx2.TransportError as error:
            raise _BusyError(f"the connection failed: {self._redact_error(error)}") from None
        # The key is removed before a message is cut, which could leave half of the key.
        redacted = self._key.redact_bytes(bytes(answer))
        if response.status_code == httpx2.codes.OK:
            return redacted
        raise self._make_error(response, redacted)

    def _redact_error(self, error: Exception) -> str:
        """Return the text of an error without the key, because a server may quote it."""
        return self._key.redact(str(error)) or type(error).__name__

    def _make_error(self, response: httpx2.Response, content: bytes) -> EngineError | _BusyError:
        """Return the error for an answer other than 200."""
        message = _read_message(content)
        status = response.status_code
        if _TOO_LONG.search(message):
            return InvalidRequestError(f"the prompt exceeds the context: {message}")
        if _NO_IMAGES.search(message):
            return InvalidRequestError(f"the model does not take these pictures: {message}")
        if _FILTERED.search(message):
            return RefusedError(f"the content filter of the server declined the prompt: {message}")
        if status in (401, 403):
            return EngineFailedError(f"{self.url} refuses the key (status {status}): {message}")
        if status == httpx2.codes.TOO_MANY_REQUESTS or status >= 500:
            pause_s, is_limit = _read_retry_after_s(response), status == httpx2.codes.TOO_MANY_REQUESTS
            return _BusyError(f"status {status}: {message}", pause_s, is_limit=is_limit)
        return EngineFailedError(f"{self.url} does not take the request (status {status}): {message}")


def _read_message(content: bytes) -> str:
    """Return kind and message of an error; for an answer in another form, its beginning."""
    try:
        body = json.loads(content)
        error = body.get("error") or body
        kind = " ".join(str(error[name]) for name in ("type", "code") if isinstance(error.get(name), str))
        return f"{kind} {error.get('message') or error}".strip()[:400]
    except (ValueError, AttributeError):
        return content[:200].decode(errors="replace")


def _read_retry_after_s(response: httpx2.Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    return float(text) if re.fullmatch(r"\d{1,4}(\.\d+)?", text) else None
