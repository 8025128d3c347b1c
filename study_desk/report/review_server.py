"""The report of a session as one offline HTML file, and the server that logs what people say in it and while coding."""

import json
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

from norm_core.records.flag import Attribute
from norm_core.records.json_codec import RecordError, from_plain, to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, Clock
from norm_monitor.cues.finding import AT_MOST
from study_desk.log.recording import Recording, from_log
from study_desk.log.schema import Review
from study_desk.log.writer import LogWriteError, StudyLog
from study_desk.privacy.redact import Redactor
from study_desk.report.coding_server import VIDEO, CodingDesk, CodingServer, PlayerMedia
from study_desk.report.page_items import (
    VoiceNumbers,
    decision_item,
    flag_item,
    ms_since,
    presence_stretches,
    speech_item,
)
from study_desk.report.page_server import (
    NOT_FOUND,
    PageReply,
    PageRequest,
    PageServer,
    fill_page,
    page_reply,
    text_reply,
)
from study_desk.study.study_file import StudyFile

SCRIPTS = (
    "dom", "model", "timeline", "list", "weights", "details", "filters", "display",
    "media", "labels", "verdicts", "main",
)  # fmt: skip


def page(recording: Recording, server: Mapping[str, Any] | None = None) -> str:
    """Render the page; `server` is set if a review server runs."""
    data = page_data(recording, server)
    return fill_page("page", ("page",), SCRIPTS, f"Session {recording.info.session}", data)


def page_data(recording: Recording, server: Mapping[str, Any] | None) -> dict[str, Any]:
    """Collect the page's data, with times in milliseconds from the session's start."""
    info, start_ns = recording.info, recording.start_ns
    flags = [flag_item(flag, start_ns, recording.views.get(flag.event_id, ())) for flag in recording.flags]
    voices = VoiceNumbers()
    used = {attribute for flag in flags for attribute in flag["attributes"]}
    return {
        "info": {
            "study": info.study,
            "session": info.session,
            "condition": info.condition,
            "participants": [participant.pseudonym for participant in info.participants],
            "robot": info.robot,
            "date": datetime.fromtimestamp(start_ns / NS_PER_S, UTC).strftime("%Y-%m-%d") if start_ns > 0 else "",
            "software_version": info.software_version,
        },
        "source": recording.source.name,
        "head": recording.head,
        "notes": list(recording.notes),
        "end": ms_since(start_ns, recording.end_ns),
        "at_most": AT_MOST,
        "attributes": [a.value for a in Attribute if a in used] or [a.value for a in Attribute],
        "all_attributes": [a.value for a in Attribute],
        "flags": flags,
        "decisions": [decision_item(decision, start_ns) for decision in recording.decisions],
        "speech": [speech_item(said, start_ns, voices) for said in recording.speech],
        "presence": presence_stretches(recording.presences, start_ns),
        "reviews": [to_plain(review) for review in recording.reviews] if not server else server["reviews"],
        "server": {key: value for key, value in server.items() if key != "reviews"} if server else None,
    }


Clip = Callable[[Recording, str], tuple[bytes, str]]


class ReviewServer:
    """Serve one log to reviewers and coders, each with a token. Closing it releases the log."""

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
        coders: Mapping[str, str] | None = None,
        study: StudyFile | None = None,
        media: PlayerMedia | None = None,
        coder_notes: Mapping[str, str] | None = None,
    ) -> None:
        self.reviewers, self.coders = dict(reviewers), dict(coders or {})  # by token
        self._recording = from_log(folder)
        desk = CodingDesk(self._recording, study or StudyFile(study="one session"), self._append)
        self._coding = CodingServer(desk, media or PlayerMedia(), tuple(self.coders.values()), coder_notes or {})
        self._events = {flag.event_id for flag in self._recording.flags}
        self._clip, self._no_clip = clip, no_clip or "No clip: this page was served without the bag."
        self._log = StudyLog.resume(folder, clock, redactor=redactor)
        self._writing = threading.Lock()
        self._reviews = {(r.event_id, r.reviewer): r for r in self._recording.reviews}
        try:
            self._server = PageServer(
                [*self.reviewers, *self.coders],
                self._answer,
                link_from="study review",
                host=host,
                port=port,
                media=[VIDEO],
            )
        except TactfulError:
            self._log.close()
            raise
        self.host, self.port = self._server.host, self._server.port
        self.url, self.serve = self._server.url, self._server.serve

    def close(self) -> None:
        """Stop serving and release the log."""
        self._server.close()
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
        review = from_plain(Review, {**plain, "reviewer": self.reviewers[token]})
        self._append(review, self._recording.end_ns)
        self._reviews[review.event_id, review.reviewer] = review
        return review

    def _append(self, record: Any, ros_ns: int) -> None:
        with self._writing:
            self._log.append(record, ros_ns)

    def clip_of(self, event_id: str) -> tuple[bytes, str]:
        """Return an event's clip and its media type. Raises ValueError if clips are not available."""
        if self._clip is None:
            raise ValueError(self._no_clip)
        return self._clip(self._recording, event_id)

    def _answer(self, request: PageRequest) -> PageReply:
        if request.token in self.coders:  # who sees nothing of what follows
            return self._coding.answer(self.coders[request.token], request)
        match request.method, request.path:
            case "GET", "/":
                return page_reply(self.page_for(request.token))
            case "POST", "/reviews":
                return self._verdict(request)
            case "GET", path if path.startswith("/clip/"):
                try:
                    return PageReply(*self.clip_of(path.removeprefix("/clip/")))
                except ValueError as error:
                    return text_reply(HTTPStatus.NOT_FOUND, str(error))
        return NOT_FOUND

    def _verdict(self, request: PageRequest) -> PageReply:
        try:
            review = self.add_verdict(request.token, request.body)
        except LogWriteError as error:
            return text_reply(HTTPStatus.INSUFFICIENT_STORAGE, str(error))
        except (RecordError, ValueError) as error:
            return text_reply(HTTPStatus.BAD_REQUEST, str(error))
        return PageReply(json.dumps(to_plain(review)).encode(), "application/json")
