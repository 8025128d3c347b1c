"""The review server: serve the report on this machine, log verdicts and make clips on demand."""

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from norm_core.records.json_codec import RecordError, from_json, to_plain
from norm_core.runtime.time import Clock
from study_desk.log.recording import Recording, from_log
from study_desk.log.schema import Review
from study_desk.log.writer import LogWriteError, StudyLog
from study_desk.privacy.redact import Redactor
from study_desk.report.report import page

LOOPBACK = ("127.0.0.1", "::1", "localhost")
MOST_BYTES = 100_000
TOKEN = "X-Token"

Clip = Callable[[Recording, str], tuple[bytes, str]]


class ReviewServer:
    """Serve one log to reviewers, each with a token. Closing it releases the log."""

    def __init__(
        self,
        folder: Path,
        reviewers: Mapping[str, str],
        clock: Clock,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        clip: Clip | None = None,
        no_clip: str = "",
        redactor: Redactor | None = None,
    ) -> None:
        self.reviewers = dict(reviewers)  # by token
        self._recording = from_log(folder)
        self._events = {flag.event_id for flag in self._recording.flags}
        self._clip, self._no_clip = clip, no_clip or "No clip: name the bag with --bag."
        self._log = StudyLog.resume(folder, clock, redactor=redactor)
        self._writing = threading.Lock()
        self._reviews = {(r.event_id, r.reviewer): r for r in self._recording.reviews}
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(self))
        except OSError:
            self._log.close()
            raise
        self._server.daemon_threads = True
        self.host, self.port = host, self._server.server_address[1]

    def url(self, token: str) -> str:
        """Return the address of the review page for the holder of a token."""
        return f"http://{self.host}:{self.port}/?token={token}"

    def serve(self) -> None:
        """Serve until another thread calls close, or the process is interrupted."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stop serving and release the log."""
        self._server.shutdown()
        self._server.server_close()
        self._log.close()

    def page_for(self, token: str) -> str:
        """Render the page with this reviewer's verdicts. Others' verdicts stay hidden until they give theirs."""
        reviewer = self.reviewers[token]
        mine = [to_plain(review) for (_, who), review in self._reviews.items() if who == reviewer]
        server = {
            "token": token,
            "reviewer": reviewer,
            "reviews": mine,
            "clips": self._clip is not None,
            "why": self._no_clip,
        }
        return page(self._recording, server=server)

    def add_verdict(self, token: str, body: bytes) -> Review:
        """Log a verdict under the token's reviewer. Raises RecordError or LogWriteError."""
        plain = json.loads(body)
        if not isinstance(plain, dict) or plain.get("event_id") not in self._events:
            raise RecordError("there is no such event in this log; load the page again")
        review = from_json(Review, json.dumps({**plain, "reviewer": self.reviewers[token]}))
        with self._writing:
            self._log.append(review, self._recording.end_ns)
            self._reviews[review.event_id, review.reviewer] = review
        return review

    def clip_of(self, event_id: str) -> tuple[bytes, str]:
        """Return an event's clip and its media type. Raises ValueError if clips are not available."""
        if self._clip is None:
            raise ValueError(self._no_clip)
        return self._clip(self._recording, event_id)

    def is_own_host(self, host: str) -> bool:
        """Whether a Host header is ours. This blocks DNS rebinding by other pages."""
        name = host.rsplit(":", 1)[0].strip("[]")
        return self.host not in LOOPBACK or name in LOOPBACK


def new_token() -> str:
    """Return a random token that is safe in an address."""
    return secrets.token_urlsafe(18)


def _handler(server: ReviewServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 30  # for a silent client

        def do_GET(self) -> None:
            path = urlsplit(self.path)
            if path.path == "/":
                token = parse_qs(path.query).get("token", [""])[0]
                if self._known(token):
                    self._answer(HTTPStatus.OK, server.page_for(token).encode(), "text/html; charset=utf-8")
            elif path.path.startswith("/clip/"):
                if self._known(self.headers.get(TOKEN, "")):
                    self._send_clip(unquote(path.path.removeprefix("/clip/")))
            else:
                self._say(HTTPStatus.NOT_FOUND, "there is nothing here")

        def do_POST(self) -> None:
            if self.path != "/reviews":
                self._say(HTTPStatus.NOT_FOUND, "there is nothing here")
                return
            token = self.headers.get(TOKEN, "")
            if not self._known(token):
                return
            size = self.headers.get("Content-Length", "")
            if not size.isdigit() or int(size) > MOST_BYTES:
                self._say(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a verdict has at most {MOST_BYTES} bytes")
                return
            try:
                review = server.add_verdict(token, self.rfile.read(int(size)))
            except (RecordError, ValueError) as error:
                self._say(HTTPStatus.BAD_REQUEST, str(error))
            except LogWriteError as error:
                self._say(HTTPStatus.INSUFFICIENT_STORAGE, str(error))
            else:
                self._answer(HTTPStatus.OK, json.dumps(to_plain(review)).encode(), "application/json")

        def _send_clip(self, event_id: str) -> None:
            try:
                data, kind = server.clip_of(event_id)
            except ValueError as error:
                self._say(HTTPStatus.NOT_FOUND, str(error))
            else:
                self._answer(HTTPStatus.OK, data, kind)

        def _known(self, token: str) -> bool:
            if not server.is_own_host(self.headers.get("Host", "")):
                self._say(HTTPStatus.FORBIDDEN, "this server answers only under its own name")
                return False
            if not any(secrets.compare_digest(token.encode(), known.encode()) for known in server.reviewers):
                self._say(HTTPStatus.FORBIDDEN, "this token is no reviewer's: use the link that study review printed")
                return False
            return True

        def _say(self, status: HTTPStatus, text: str) -> None:
            self._answer(status, text.encode("utf-8", "replace"), "text/plain; charset=utf-8")

        def _answer(self, status: HTTPStatus, data: bytes, kind: str) -> None:
            self.send_response(status)
            for name, value in {
                "Content-Type": kind,
                "Content-Length": str(len(data)),
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
                "Referrer-Policy": "no-referrer",
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 the base class names it so
            """Log nothing, because a line would contain the token."""

    return Handler
