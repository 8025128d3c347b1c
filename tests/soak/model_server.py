"""A server of a model for `soak`: it answers every question alike, hangs on command, and goes and comes back."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

MODEL, HOST = "soak-model", "127.0.0.1"
OUT_OF_MEMORY = {"error": {"message": "CUDA out of memory. Tried to allocate 2.00 GiB", "type": "server_error"}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    may_answer: Event
    has_memory: Event

    def do_POST(self) -> None:
        """Answer a question, once the server may and if it can."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.may_answer.wait()
        top = [{"token": letter, "logprob": -1.0 - place / 10} for place, letter in enumerate("ABCDEFGH")]
        message, tokens = {"role": "assistant", "content": "A"}, [{**top[0], "top_logprobs": top}]
        choice = {"message": message, "logprobs": {"content": tokens}, "finish_reason": "length"}
        is_able = self.has_memory.is_set()
        content = json.dumps({"choices": [choice]} if is_able else OUT_OF_MEMORY).encode()
        self.send_response(200 if is_able else 500)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 - the base class's name
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing where a client gave up."""


class ModelServer:
    """A server that can hang, go and come back at its address."""

    def __init__(self, models: Path) -> None:
        """Write the model's manifest into a folder of models, and serve it."""
        self._may_answer, self._has_memory, self._port = Event(), Event(), 0
        self.answer()
        self.come()
        models.mkdir()
        (models / f"{MODEL}.yaml").write_text(
            f"name: {MODEL}\ntask: vision-language\nengine: openai\nquantization: none\n"
            f"source: {{url: 'http://{HOST}:{self._port}/v1'}}\nlicence: none\n"
            f"settings: {{model: {MODEL}, tries: 1}}\n",
            encoding="utf-8",
        )

    def hang(self) -> None:
        """Answer nothing more."""
        self._may_answer.clear()

    def exhaust(self) -> None:
        """Have no memory left for an answer."""
        self._has_memory.clear()

    def answer(self) -> None:
        """Answer again."""
        self._may_answer.set()
        self._has_memory.set()

    def come(self) -> None:
        """Serve at the same address as before."""
        handler = type("Handler", (_Handler,), {"may_answer": self._may_answer, "has_memory": self._has_memory})
        self._server = _Server((HOST, self._port), handler)
        self._port = self._server.server_address[1]
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def go(self) -> None:
        """Close the address."""
        self._server.shutdown()
        self._server.server_close()
