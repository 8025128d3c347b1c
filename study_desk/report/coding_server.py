"""Answer a coder's page: its events, its done mark, the consensus, and what its player shows."""

import json
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path

from norm_core.records.json_codec import RecordError, from_json
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_MS
from study_desk.log.writer import LogWriteError
from study_desk.report.coding_desk import CodingDesk, CodingError, ConsensusForm, EventForm
from study_desk.report.coding_page import CodingMedia, coding_page, compared_item, label_item
from study_desk.report.page_server import NOT_FOUND, PageReply, PageRequest, page_reply, text_reply
from study_desk.report.session_media import video_reply

PIECE_MS = 30_000  # of sound
VIDEO = "/video"


@record
class PlayerMedia:
    """Where the pictures and the sound of a session come from; None: it has none. Times are the session's."""

    still_at: Callable[[int], bytes | None] | None = None  # JPEG
    sound_of: Callable[[int, int], bytes | None] | None = None  # WAV from one time to another
    video: Path | None = None
    video_offset_ms: float = 0.0
    why: str = ""  # there is no picture


@record
class RemovalForm:
    """Which event a coder takes back."""

    label_id: str


class CodingServer:
    """The requests of coders, who see nothing of the monitor or of others until their coding is done."""

    def __init__(self, desk: CodingDesk, media: PlayerMedia, coders: Sequence[str]) -> None:
        self._desk, self._media, self._coders = desk, media, coders
        self._start_ns = desk.recording.start_ns

    def answer(self, coder: str, request: PageRequest) -> PageReply:
        """Do what a coder asks for."""
        try:
            return self._shown(coder, request) if request.method == "GET" else self._taken(coder, request)
        except LogWriteError as error:
            return text_reply(HTTPStatus.INSUFFICIENT_STORAGE, str(error))
        except CodingError as error:
            return text_reply(HTTPStatus.CONFLICT, str(error))
        except (RecordError, ValueError) as error:
            return text_reply(HTTPStatus.BAD_REQUEST, str(error))

    def _shown(self, coder: str, request: PageRequest) -> PageReply:
        match request.path:
            case "/":
                return page_reply(self._page(coder, request.token))
            case "/still":
                return self._still(request.query.get("at", ""))
            case "/sound":
                return self._sound(request.query.get("piece", ""))
            case path if path == VIDEO and self._media.video:
                return video_reply(self._media.video, request.byte_range)
        return NOT_FOUND

    def _taken(self, coder: str, request: PageRequest) -> PageReply:
        answer: object = {}
        match request.path:
            case "/events":
                label = self._desk.save(coder, from_json(EventForm, request.body))
                answer = label_item(label, self._desk.recording, coder)
            case "/events/remove":
                self._desk.remove(coder, from_json(RemovalForm, request.body).label_id)
            case "/done":
                self._desk.finish(coder)
            case "/consensus":
                event = self._desk.agree(coder, from_json(ConsensusForm, request.body))
                answer = compared_item(event, self._desk.settled(event.label_id), self._desk.recording)
            case "/consensus/agreed":
                answer = {"adopted": self._desk.adopt_agreed(coder)}
            case _:
                return NOT_FOUND
        return PageReply(json.dumps(answer).encode(), "application/json")

    def _page(self, coder: str, token: str) -> str:
        media = CodingMedia(
            stills=self._media.still_at is not None,
            sound=self._media.sound_of is not None,
            video=self._media.video is not None,
            offset_ms=self._media.video_offset_ms,
            why=self._media.why,
        )
        return coding_page(self._desk, coder, token, media, self._coders)

    def _still(self, at: str) -> PageReply:
        at_ms = _number(at)
        if at_ms is None or self._media.still_at is None:
            return NOT_FOUND
        picture = self._media.still_at(self._start_ns + at_ms * NS_PER_MS)
        if picture is None:
            return PageReply(b"", "image/jpeg", HTTPStatus.NO_CONTENT)
        return PageReply(picture, "image/jpeg")

    def _sound(self, piece: str) -> PageReply:
        number = _number(piece)
        if number is None or self._media.sound_of is None:
            return NOT_FOUND
        from_ns = self._start_ns + number * PIECE_MS * NS_PER_MS
        if from_ns > self._desk.recording.end_ns:
            return NOT_FOUND
        sound = self._media.sound_of(from_ns, from_ns + PIECE_MS * NS_PER_MS)
        return PageReply(b"", "audio/wav", HTTPStatus.NO_CONTENT) if sound is None else PageReply(sound, "audio/wav")


def _number(text: str) -> int | None:
    """Return a number of at most 12 digits, or None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None
