"""The view's server: one page over a timeline, to the holder of one token."""

import json
import re
from http import HTTPStatus
from typing import Any, Protocol

from norm_core.records.flag import Attribute
from norm_core.records.json_codec import RecordError, from_plain, to_plain
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_MS
from norm_monitor.assessment.unit_model import Sensitivity
from norm_monitor.session_log.schema import Review
from norm_monitor.view.page_server import (
    NOT_FOUND,
    PageReply,
    PageRequest,
    PageServer,
    StillAt,
    fill_page,
    make_still_reply,
    make_text_reply,
    make_token,
    parse_number,
)
from norm_monitor.view.timeline import SessionTimeline

SHARED_SCRIPTS = ("dom", "model", "timeline", "list", "weights", "details", "filters", "display", "labels")
SCRIPTS = (*SHARED_SCRIPTS, "replay", "transcript", "moment", "live", "act", "view")
# The wait for news, after which the page asks again.
MAX_WAIT_S = 20.0


class Controls(Protocol):
    """The monitor. Each method that changes something returns why it was not done, or nothing."""

    def set_sensitivity(self, name: str) -> str:
        """Set the sensitivity."""

    def set_muted(self, name: str, *, is_muted: bool) -> str:
        """Mute a cue or an attribute, or raise its flags again."""

    def review(self, review: Review) -> str:
        """Record a verdict in the study log."""


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        plain = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return plain if isinstance(plain, dict) else {}


def _make_reply(problem: str | None) -> PageReply:
    if problem is None:
        return make_text_reply(HTTPStatus.BAD_REQUEST, "there is no such setting; load the page again")
    return make_text_reply(HTTPStatus.CONFLICT, problem) if problem else make_text_reply(HTTPStatus.OK, "done")


class ViewServer:
    """Serve the view of one timeline until it is closed."""

    def __init__(
        self,
        timeline: SessionTimeline,
        still_at: StillAt | None,
        *,
        controls: Controls | None = None,
        is_live: bool = False,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        """Listen with a new token. Without controls, nothing can be changed. Raises TactfulError for a port in use."""
        self._timeline = timeline
        self._still_at = still_at
        self._is_live = is_live
        self._controls = controls
        self._token = make_token()
        self._server = PageServer(self._token, self._answer, link_from="tactful view", host=host, port=port)
        self.url, self.port, self.serve = self._server.url, self._server.port, self._server.serve

    def close(self) -> None:
        """Stop serving."""
        self._timeline.close()
        self._server.close()

    def _answer(self, request: PageRequest) -> PageReply:
        match request.method, request.path:
            case "GET", "/":
                return PageReply(self._render_page().encode(), "text/html; charset=utf-8")
            case "GET", "/changes":
                since = parse_number(request.query.get("since", ""))
                if since is None:
                    return make_text_reply(HTTPStatus.BAD_REQUEST, "since: is not a version; load the page again")
                changes = self._timeline.changes(since, MAX_WAIT_S)
                return PageReply(json.dumps(changes).encode(), "application/json")
            case "GET", "/still":
                return make_still_reply(self._still_at, self._timeline.start_ns, request.query.get("at", ""))
        return self._act(self._controls, request) if self._controls else NOT_FOUND

    def _act(self, controls: Controls, request: PageRequest) -> PageReply:
        match request.method, request.path:
            case "POST", "/settings":
                return _make_reply(self._change(controls, _parse_object(request.body)))
            case "POST", "/reviews":
                return self._give_verdict(controls, _parse_object(request.body))
        return NOT_FOUND

    def _change(self, controls: Controls, plain: dict[str, Any]) -> str | None:
        """Set `sensitivity`, or `mute` or `unmute` a cue or an attribute.

        Return why that was not done, or None for what is not a setting.
        """
        match plain:
            case {"sensitivity": str(name)} if name in list(Sensitivity):
                return controls.set_sensitivity(name)
            case {"mute": str(name)} | {"unmute": str(name)} if re.fullmatch(r"[a-z_]{1,60}", name):
                return controls.set_muted(name, is_muted="mute" in plain)
        return None

    def _give_verdict(self, controls: Controls, plain: dict[str, Any]) -> PageReply:
        try:
            review = from_plain(Review, plain)
        except (RecordError, ValueError) as error:
            return make_text_reply(HTTPStatus.BAD_REQUEST, str(error))
        answer = _make_reply(controls.review(review))
        if answer.status is HTTPStatus.OK:
            self._timeline.add_review(to_plain(review))
        return answer

    def _render_page(self) -> str:
        title = self._timeline.title
        data = {"title": title, "token": self._token, "stills": self._still_at is not None}
        data |= {
            "program": PROGRAM,
            "acts": self._controls is not None,
            "all_attributes": [attribute.value for attribute in Attribute],
        }
        data |= {"live": True, "epoch": self._timeline.start_ns / NS_PER_MS} if self._is_live else {}
        data |= self._timeline.changes()
        return fill_page("view", ("page", "view"), SCRIPTS, title, data)
