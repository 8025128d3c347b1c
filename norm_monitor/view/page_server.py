"""Fill a page's template, and serve it on this machine to the holders of a token alone."""

import base64
import hashlib
import html
import json
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Timer
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from norm_core.files.data_files import shipped_file
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_MS

LOOPBACK = ("127.0.0.1", "::1", "localhost")
MAX_BODY_BYTES = 100_000
TOKEN_HEADER = "X-Token"
# The time for a whole request, however slowly its bytes come.
MAX_REQUEST_S = 10.0

_FOLDER = shipped_file("norm_monitor.view", "page")


class PageRequest(NamedTuple):
    """One request by the holder of a token."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes = b""


class PageReply(NamedTuple):
    """The answer to a request."""

    data: bytes
    kind: str
    status: HTTPStatus = HTTPStatus.OK


def make_text_reply(status: HTTPStatus, text: str) -> PageReply:
    """Return a reply of plain text, such as the reason for a refusal."""
    return PageReply(text.encode("utf-8", "replace"), "text/plain; charset=utf-8", status)


NOT_FOUND = make_text_reply(HTTPStatus.NOT_FOUND, "there is nothing here")

# Returns the picture of a time as JPEG, or None without one.
StillAt = Callable[[int], bytes | None]


def make_still_reply(still_at: StillAt | None, start_ns: int, at_text: str) -> PageReply:
    """Return the picture of a time, which a page states in milliseconds from the session's start."""
    at_ms = parse_number(at_text)
    if at_ms is None or still_at is None:
        return NOT_FOUND
    picture = still_at(start_ns + at_ms * NS_PER_MS)
    return PageReply(picture or b"", "image/jpeg", HTTPStatus.NO_CONTENT if picture is None else HTTPStatus.OK)


def parse_number(text: str) -> int | None:
    """Parse a number of at most 12 digits. None for other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None


class PageServer:
    """An HTTP server with a token. The page takes it from its address, everything else from a header."""

    def __init__(
        self,
        token: str,
        answer: Callable[[PageRequest], PageReply],
        *,
        link_from: str,
        host: str = "127.0.0.1",
        port: int = 0,
        request_s: float = MAX_REQUEST_S,
    ) -> None:
        """Listen. `link_from` names the command that prints the link. Raises TactfulError for an address in use."""
        self.host = host
        self.request_s = request_s
        self.answer = answer
        self.refusal = f"this token is not valid: use the link that {link_from} printed"
        self._token = token
        try:
            self._server = ThreadingHTTPServer((host, port), type("Handler", (_Handler,), {"page_server": self}))
        except OSError as error:
            raise TactfulError(
                f"{host}:{port}: cannot be listened on: {error.strerror}; give another --port"
            ) from error
        self.port = self._server.server_address[1]

    @property
    def url(self) -> str:
        """The address of the page for the holder of the token."""
        return f"http://{self.host}:{self.port}/?token={self._token}"

    def serve(self) -> None:
        """Serve until another thread calls close, or the process is interrupted."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def is_token(self, token: str) -> bool:
        """Whether this is the token of the server."""
        return secrets.compare_digest(token.encode("utf-8", "replace"), self._token.encode())

    def is_own_host(self, host: str) -> bool:
        """Whether a Host header is ours. This blocks DNS rebinding by other pages."""
        name = host.rsplit(":", 1)[0].strip("[]")
        return self.host not in LOOPBACK or name in LOOPBACK


def make_token() -> str:
    """Return a random token that is safe in an address."""
    return secrets.token_urlsafe(18)


class _Handler(BaseHTTPRequestHandler):
    """Check, read and answer one request."""

    page_server: PageServer
    timeout = 30  # for a client that takes no answer
    address: SplitResult

    def handle(self) -> None:
        """Answer the request of a connection, whose reading ends at the deadline."""
        self.deadline = Timer(self.page_server.request_s, self._stop_reading)
        self.deadline.daemon = True
        self.deadline.start()
        try:
            super().handle()
        finally:
            self.deadline.cancel()

    def _stop_reading(self) -> None:
        with suppress(OSError):  # the client has gone
            self.connection.shutdown(socket.SHUT_RD)

    def parse_request(self) -> bool:
        """Parse the address too, which the base class leaves as it is."""
        if not super().parse_request():
            return False
        try:
            self.address = urlsplit(self.path)
        except ValueError:
            self.close_connection = True
            self._send(make_text_reply(HTTPStatus.BAD_REQUEST, "this is not an address"))
            return False
        return True

    def do_GET(self) -> None:
        self._send(self._make_reply(b""))

    def do_POST(self) -> None:
        size = self.headers.get("Content-Length", "")
        if not (size.isascii() and size.isdigit()):
            self.close_connection = True  # where the body ends is unknown
            self._send(make_text_reply(HTTPStatus.BAD_REQUEST, "Content-Length: is not a number of bytes"))
        elif len(size) > len(str(MAX_BODY_BYTES)) or int(size) > MAX_BODY_BYTES:
            self._send(
                make_text_reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {MAX_BODY_BYTES} bytes")
            )
        elif refused := self._find_refusal():
            self._send(refused)
        elif len(body := self.rfile.read(int(size))) < int(size):
            self.close_connection = True
            self._send(make_text_reply(HTTPStatus.REQUEST_TIMEOUT, "the body did not end in time; send it again"))
        else:
            self._send(self._make_reply(body))

    def _find_refusal(self) -> PageReply | None:
        """Return the reply that refuses the request; None if it is allowed."""
        if not self.page_server.is_own_host(self.headers.get("Host", "")):
            return make_text_reply(HTTPStatus.FORBIDDEN, "this server answers only under its own name")
        # A link may lead here from anywhere; a script of another site may not ask.
        if self.address.path != "/" and self.headers.get("Sec-Fetch-Site", "none") == "cross-site":
            return make_text_reply(HTTPStatus.FORBIDDEN, "this server answers no page of another site")
        return (
            None
            if self.page_server.is_token(self._token)
            else make_text_reply(HTTPStatus.FORBIDDEN, self.page_server.refusal)
        )

    @property
    def _token(self) -> str:
        if self.address.path == "/":
            return self._query.get("token", "")
        return self.headers.get(TOKEN_HEADER, "")

    @property
    def _query(self) -> dict[str, str]:
        return dict(parse_qsl(self.address.query))

    def _make_reply(self, body: bytes) -> PageReply:
        if refused := self._find_refusal():
            return refused
        path = unquote(self.address.path)
        try:
            return self.page_server.answer(PageRequest(self.command, path, self._query, body))
        except RecursionError:
            return make_text_reply(HTTPStatus.BAD_REQUEST, "the request is nested too deeply")

    def _send(self, reply: PageReply) -> None:
        with suppress(ConnectionError):  # the client has gone
            self._write(reply)

    def _write(self, reply: PageReply) -> None:
        self.send_response(reply.status)
        for name, value in {
            "Content-Type": reply.kind,
            "Content-Length": str(len(reply.data)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 the base class names it so
        """Log nothing, because a line would contain the token."""


def fill_page(template: str, styles: Sequence[str], scripts: Sequence[str], title: str, data: Any) -> str:
    """Render a template with its styles, scripts and data in place of `{{name}}`."""
    parts = [_read_text(f"{name}.js") for name in scripts]
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    values = {
        "title": html.escape(title),
        "style": "\n".join(_read_text(f"{name}.css") for name in styles),
        # The policy allows only this script, whatever the transcript contains.
        "script_hash": f"'sha256-{script_hash}'",
        "script": script,
        "data": _embed(data),
    }
    pieces = _read_text(f"{template}.html").split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:  # in one pass, so that no value is read as template text
        name, _, rest = piece.partition("}}")
        filled += [values[name], rest]
    return "".join(filled)


def _read_text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _embed(value: Any) -> str:
    """Encode JSON that no text can terminate inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = text.encode("utf-8", "replace").decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
