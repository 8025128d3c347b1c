"""Post to an OpenAI-compatible server; retry if that can help, but never past the deadline."""

import asyncio
import json
import os
import random
import re
from typing import Any

import httpx2

from norm_core.engines.errors import EngineError, EngineFailedError, InvalidRequestError, PastDeadlineError
from norm_core.engines.openai.address import is_on_this_machine
from norm_core.engines.request_context import RequestContext

# The interval of deadline and cancellation checks while the server works.
_POLL_S = 0.02
_CONNECT_S = 5.0
# A completion with the log-probabilities of thousands of tokens is smaller.
_MOST_BYTES = 32 * 2**20
_LONGEST_PAUSE_S = 10.0
_TOO_LONG = re.compile(r"exceed_context_size|context_length_exceeded|context (length|size|window)|max_model_len", re.I)
_NO_IMAGES = re.compile(r"at most \d+ (image|video|audio)|image input is not supported|not a multimodal model", re.I)


class _BusyError(Exception):
    """A retry may help, after `pause_s` if the server states it."""

    def __init__(self, reason: str, pause_s: float | None = None) -> None:
        super().__init__(reason)
        self.pause_s = pause_s


class OpenAIServer:
    """A server at `url`, such as http://gpu-box:8000/v1; the key comes from an environment variable and is never shown.

    A silence longer than `stall_s` seconds is a failure, with or without a deadline. For one thread at a time.
    """

    def __init__(
        self, url: str, *, api_key_variable: str = "", tries: int = 4, backoff_s: float = 0.25, stall_s: float = 60.0
    ) -> None:
        """Read the key and prepare the client. Raises EngineFailedError if the key or the address is unusable."""
        self.url, self._tries, self._backoff_s, self._stall_s = url.rstrip("/"), tries, backoff_s, stall_s
        self._key = os.environ.get(api_key_variable, "") if api_key_variable else ""
        if api_key_variable and not self._key:
            raise EngineFailedError(f"{url}: its key is missing; set the environment variable {api_key_variable}")
        try:
            self._client = httpx2.AsyncClient(
                headers={"Content-Type": "application/json"}
                | ({"Authorization": f"Bearer {self._key}"} if self._key else {}),
                # A proxy from the environment would carry local requests off this machine.
                mounts={"http://": None, "https://": None} if is_on_this_machine(self.url) else None,
                timeout=httpx2.Timeout(stall_s, connect=min(stall_s, _CONNECT_S)),
            )
            self._endpoint = httpx2.URL(f"{self.url}/chat/completions")
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise EngineFailedError(f"{url} or its key cannot be used: {type(error).__name__}") from None
        self._loop = asyncio.new_event_loop()

    def complete(self, body: dict[str, Any], call: RequestContext) -> bytes:
        """Return the server's answer to a chat completion request."""
        return self._loop.run_until_complete(self._persist(json.dumps(body).encode(), call))

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        if not self._loop.is_closed():
            self._loop.run_until_complete(self._client.aclose())
            self._loop.close()

    async def _persist(self, content: bytes, call: RequestContext) -> bytes:
        for nth in range(self._tries):
            call.check()
            try:
                return await self._while_wanted(content, call)
            except _BusyError as busy:
                if nth + 1 == self._tries:
                    raise EngineFailedError(f"{self.url}: {busy} ({self._tries} tries)") from None
                # Spread the retries of many robots that share a server.
                pause_s = busy.pause_s or self._backoff_s * 2**nth * random.uniform(0.5, 1.0)
                await self._pause(min(pause_s, _LONGEST_PAUSE_S), str(busy), call)
                call.add_usage(retries=1)
        raise EngineFailedError(f"{self.url} was to be tried {self._tries} times")

    async def _pause(self, pause_s: float, reason: str, call: RequestContext) -> None:
        left_s = call.remaining_s()
        if left_s is not None and left_s <= pause_s:
            raise PastDeadlineError(f"no time is left for another try at {self.url}: {reason}")
        until_s = self._loop.time() + pause_s
        while (still_s := until_s - self._loop.time()) > 0:
            call.check()
            await asyncio.sleep(min(_POLL_S, still_s))

    async def _while_wanted(self, content: bytes, call: RequestContext) -> bytes:
        """Send one request; hang up on cancellation, so that the server stops too."""
        posted = asyncio.ensure_future(self._post(content))
        try:
            while not posted.done():
                call.check()
                await asyncio.wait({posted}, timeout=_POLL_S)
            return posted.result()
        finally:
            if not posted.done():
                posted.cancel()
                await asyncio.wait({posted}, timeout=_CONNECT_S)

    async def _post(self, content: bytes) -> bytes:
        received = bytearray()
        try:
            async with self._client.stream("POST", self._endpoint, content=content) as response:
                async for piece in response.aiter_bytes():
                    received += piece
                    if len(received) > _MOST_BYTES:
                        raise EngineFailedError(
                            f"{self.url}: the answer is larger than {_MOST_BYTES >> 20} "
                            "MB; check that the URL is that of a chat API"
                        )
        except httpx2.ConnectTimeout:
            raise _BusyError("no connection") from None
        except httpx2.TimeoutException:
            raise EngineFailedError(
                f"{self.url}: no data for {self._stall_s:g} s; check that the server is not overloaded"
            ) from None
        except (httpx2.UnsupportedProtocol, httpx2.DecodingError) as error:
            raise EngineFailedError(f"{self.url}: {error}") from None
        except httpx2.TransportError as error:
            raise _BusyError(f"the connection failed: {error or type(error).__name__}") from None
        if response.status_code == httpx2.codes.OK:
            return bytes(received)
        raise self._fault(response, bytes(received))

    def _fault(self, response: httpx2.Response, content: bytes) -> EngineError | _BusyError:
        """Return the error for an answer other than 200."""
        status, message = response.status_code, self._without_key(_message(content))
        if _TOO_LONG.search(message):
            return InvalidRequestError(f"the prompt is over the context: {message}")
        if _NO_IMAGES.search(message):
            return InvalidRequestError(f"the model does not take these pictures: {message}")
        if status in (401, 403):
            return EngineFailedError(f"{self.url} refuses the key (status {status}): {message}")
        if status == httpx2.codes.TOO_MANY_REQUESTS or status >= 500:
            return _BusyError(f"status {status}: {message}", _retry_after_s(response))
        return EngineFailedError(f"{self.url} does not take the request (status {status}): {message}")

    def _without_key(self, message: str) -> str:
        return message.replace(self._key, "(the key)") if self._key else message


def _message(content: bytes) -> str:
    """Return the error's kind and message if the answer has the usual form, or else its beginning."""
    try:
        body = json.loads(content)
        error = body.get("error") or body
        return f"{error.get('type') or ''} {error.get('message') or error}".strip()[:400]
    except (ValueError, AttributeError):
        return content[:200].decode(errors="replace")


def _retry_after_s(response: httpx2.Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    return float(text) if re.fullmatch(r"\d{1,4}(\.\d+)?", text) else None
