"""A server on this machine that speaks as a hub of models does, and misbehaves as a test tells it to."""

import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

REPOSITORY = "team/tiny-vl"
COMMIT = "c0ffee" + "0" * 34


class HubServer:
    """Serves one repository; what was asked for, with the Range header, stands in requests."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.commit = COMMIT
        self.cut_after: dict[str, int] = {}  # ends the line after so many bytes, once
        self.ignores_range = False
        self.hashes = True
        self.listing: dict[str, Any] | None = None  # given instead of what the files are
        self.moved_to = ""  # another server, to which requests for large files are sent on
        self.is_gated = False  # gives its list to all, and files only to who has a token
        self.requests: list[tuple[str, str, str]] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "HubServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def asked(self, path: str) -> list[str]:
        """The Range header of each request for a file, empty where there was none."""
        return [sent_range for asked, sent_range, _ in self.requests if asked.endswith(path)]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        sent_range = handler.headers.get("Range", "")
        self.requests.append((handler.path, sent_range, handler.headers.get("Authorization", "")))
        if handler.path.startswith(f"/api/models/{REPOSITORY}/revision/"):
            self._send(handler, 200, json.dumps(self.listing or self._live_listing()).encode())
            return
        file = re.fullmatch(rf"/{REPOSITORY}/resolve/{self.commit}/(.+)", handler.path)
        if self.is_gated and not handler.headers.get("Authorization"):
            self._send(handler, 401, b"Access to this model is restricted.")
            return
        if file is None or file[1] not in self.files:
            self._send(handler, 404, b"no such file")
            return
        if self.moved_to and file[1].endswith(".safetensors"):
            handler.send_response(302)
            handler.send_header("Location", f"{self.moved_to}{handler.path}")
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        content, start = self.files[file[1]], 0
        if sent_range and not self.ignores_range:
            start = int(sent_range.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self._send(handler, 416, b"")
                return
        self._send(handler, 206 if start else 200, content[start:], self.cut_after.pop(file[1], None))

    def freeze_listing(self) -> None:
        """Keep telling of the files as they are now, whatever becomes of them."""
        self.listing = self._live_listing()

    def _live_listing(self) -> dict[str, Any]:
        def sibling(path: str, content: bytes) -> dict[str, Any]:
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            plain: dict[str, Any] = {"rfilename": path, "size": len(content), "blobId": blob}
            if path.endswith(".safetensors") and self.hashes:
                plain["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 1}
            return plain if self.hashes else {"rfilename": path}

        return {"sha": self.commit, "siblings": [sibling(*item) for item in self.files.items()], "tags": []}

    def _send(self, handler: BaseHTTPRequestHandler, status: int, body: bytes, cut_after: int | None = None) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:cut_after])
        handler.close_connection = True
