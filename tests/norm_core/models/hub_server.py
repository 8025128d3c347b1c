"""A server on this machine that speaks as the Hugging Face Hub does to its client."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from huggingface_hub import constants

REPOSITORY = "team/tiny-vl"
COMMIT = "c0ffee" + "0" * 34


class HubServer:
    """Serves one repository; `stated` are the files that its list tells of, if they are not those that it sends."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.stated = files, dict[str, bytes]()
        self.is_gated = False
        self.sent: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                hub.answer(self)

            def do_HEAD(self) -> None:
                hub.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        listed = [self._sibling(*file) for file in (self.files | self.stated).items()]
        file = re.fullmatch(rf"/{REPOSITORY}/resolve/{COMMIT}/(.+)", handler.path)
        if self.is_gated and "Authorization" not in handler.headers:
            _send(handler, 401, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted."})
        elif handler.path.startswith(f"/api/models/{REPOSITORY}/tree/"):
            tree = [{"type": "file", "path": file["rfilename"], "size": file["size"], "oid": "0"} for file in listed]
            _send(handler, 200, json.dumps(tree).encode(), {"Content-Type": "application/json"})
        elif handler.path.startswith(f"/api/models/{REPOSITORY}"):
            about = {"id": REPOSITORY, "sha": COMMIT, "siblings": listed, "cardData": {"license": "mit"}}
            _send(handler, 200, json.dumps(about).encode(), {"Content-Type": "application/json"})
        elif file and file[1] in self.files:
            content = self.files[file[1]]
            if handler.command == "GET":
                self.sent.append(file[1])
            etag = hashlib.sha256(content).hexdigest()
            _send(handler, 200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})
        else:
            _send(handler, 404, b"", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})

    @staticmethod
    def _sibling(path: str, content: bytes) -> dict[str, Any]:
        plain: dict[str, Any] = {"rfilename": path, "size": len(content), "blobId": "0"}
        if path.endswith(".safetensors"):
            digest = hashlib.sha256(content).hexdigest()
            plain["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 1}
        return plain


def _send(handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
    handler.send_response(status)
    for name, value in (headers | {"Content-Length": str(len(body))}).items():
        handler.send_header(name, value)
    handler.end_headers()
    if handler.command == "GET":
        handler.wfile.write(body)


@contextmanager
def serving_hub(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, cache: Path) -> Iterator[HubServer]:
    """Let the hub's client in this process ask a server of the test's own."""
    hub = HubServer(files)
    url = f"http://127.0.0.1:{hub.server.server_port}"
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    thread = Thread(target=hub.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.server.shutdown()
        hub.server.server_close()
