"""A small OpenAI-compatible server that answers by its prompt alone, and misbehaves on demand."""

import hashlib
import json
import math
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

from tests.patience import PATIENCE_S

CONTEXT_TOKENS = 4000
MAX_IMAGES = 2

# Where nobody listens.
DEAD_URL = "http://127.0.0.1:9/v1"

Answer = dict[str, Any]


class FakeServer(ThreadingHTTPServer):
    """`faults` are used up first, one a request: each is handed the handler and answers in place of the model."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.faults: deque[Callable[[_Handler], None]] = deque()
        self.bodies: list[Answer] = []
        self.headers: list[dict[str, str]] = []
        self.clients: set[tuple[str, int]] = set()  # a client that is well keeps one connection
        self.letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        self.served: list[Answer] = []
        self.released, self.reached = Event(), Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def complete(self, body: Answer) -> tuple[int, Answer]:
        content = body["messages"][0]["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        images = [part for part in parts if part["type"] == "image_url"]
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        if len(images) > MAX_IMAGES:
            return error(400, f"At most {MAX_IMAGES} image(s) may be provided in one prompt.", "BadRequestError")
        count = len(text.split())
        if count > CONTEXT_TOKENS:
            return error(400, f"This model's maximum context length is {CONTEXT_TOKENS} tokens.", "BadRequestError")
        said = '{"action": "greet"}' if "response_format" in body else "A robot would bow."
        choice: Answer = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        if body.get("logprobs"):
            top = list(likely(text, self.letters).items())[: body["top_logprobs"]]
            told = [{"token": token, "logprob": logprob} for token, logprob in top]
            choice |= {"logprobs": {"content": [told[0] | {"top_logprobs": told}]}, "finish_reason": "length"}
        usage = {"prompt_tokens": count, "completion_tokens": min(body["max_tokens"], 4)}
        return 200, {"choices": [choice], "usage": usage}


def likely(text: str, letters: str) -> dict[str, float]:
    """Next tokens with log-probabilities, which a text alone decides; the likeliest first."""
    digests = [hashlib.sha256(f"{letter} {text}".encode()).digest() for letter in letters]
    weights = [struct.unpack("<H", digest[:2])[0] / 65535 + 0.01 for digest in digests]
    total = sum(weights) * 1.25
    logprobs = {letter: math.log(weight / total) for letter, weight in zip(letters, weights, strict=True)}
    return dict(sorted(logprobs.items(), key=lambda item: -item[1]))


def error(status: int, message: str, kind: str = "error") -> tuple[int, Answer]:
    return status, {"error": {"message": message, "type": kind, "code": status}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeServer

    def do_GET(self) -> None:
        """Lists the models, as GET /v1/models does."""
        self.answer(200, {"data": self.server.served})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        self.server.headers.append(dict(self.headers))
        self.server.clients.add(self.client_address)
        self.server.reached.set()
        if self.server.faults:
            self.server.faults.popleft()(self)
        else:
            self.answer(*self.server.complete(body))

    def answer(self, status: int, body: Answer | bytes, headers: dict[str, str] | None = None) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing: a test says itself what went wrong."""


def answering(status: int, body: Answer | bytes, **headers: str) -> Callable[[_Handler], None]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.answer(status, body, named)


def stalling(handler: _Handler) -> None:
    """Never answers while the test goes on."""
    handler.server.released.wait(PATIENCE_S)
    handler.close_connection = True


def dribbling(handler: _Handler) -> None:
    """Sends a byte now and then, so that no single read takes long."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.close_connection = True
    try:
        while not handler.server.released.wait(0.02):
            handler.wfile.write(b" ")
            handler.wfile.flush()
    except OSError:
        handler.server.released.set()


def dropping(handler: _Handler) -> None:
    """Promises more than it sends, and hangs up."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True


def free_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serving(port: int = 0) -> Iterator[FakeServer]:
    """A server of one's own, gone afterwards."""
    with FakeServer(port) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join(PATIENCE_S)


def describe_model(folder: Path, name: str, url: str) -> None:
    """Puts the description of a model behind a server into a folder of models."""
    (folder / f"{name}.yaml").write_text(
        f"name: {name}\ntask: vision-language\nengine: openai\nquantization: none\n"
        f"source: {{url: '{url}'}}\nlicence: none\nsettings: {{model: {name}, tries: 1}}\n"
    )
