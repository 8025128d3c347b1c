"""Serve the coding page, and keep each coder blind until their own coding is done."""

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from norm_core.files.data_files import shipped_file
from norm_core.records.flag import Attribute
from norm_core.records.json_codec import RecordError, from_json
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_MS, Clock
from norm_monitor.session_log.labels import make_monitor_labels
from norm_monitor.session_log.recording import Recording, load_log
from norm_monitor.session_log.redact import Redactor
from norm_monitor.session_log.schema import CONSENSUS, MONITOR, Label, LabelRemoval, Opinion
from norm_monitor.session_log.study_file import Code, StudyFile
from norm_monitor.session_log.writer import LogWriteError, StudyLog
from norm_monitor.view.page_items import Item, VoiceNumbers, make_speech_item, ms_since
from norm_monitor.view.page_server import (
    NOT_FOUND,
    PageReply,
    PageRequest,
    PageServer,
    StillAt,
    fill_page,
    make_page_reply,
    make_still_reply,
    make_text_reply,
    parse_number,
)
from norm_monitor.view.pictures import make_video_reply
from study_desk.coding.coding_desk import CodingDesk, CodingError, ConsensusForm, EventForm, is_hsri
from study_desk.coding.labels import ComparedEvent

_PAGE = shipped_file("study_desk.coding", "page")
_SCRIPTS = ("dom", "model", "timeline", "list", "details", "display", "player", "coding", "compare", "coding_keys")
_PIECE_MS = 30_000  # of sound, as the page asks for it
_VIDEO_PATH = "/video"
# Keys of the player and of in and out. A code with one of these has none.
_PAGE_KEYS = frozenset("io,.?")
# Keys for severities, of which those of codes are left out.
_SEVERITY_KEYS = "asdfghjkl;zxcvbnmp"


@record
class PlayerMedia:
    """The sources of a session's pictures and sound; None where there is none. Times count from its start."""

    still_at: StillAt | None = None
    sound_of: Callable[[int, int], bytes | None] | None = None  # WAV from one time to another
    video: Path | None = None
    video_offset_ms: float = 0.0
    why: str = ""  # the reason why there is no picture


def _render_page(desk: CodingDesk, coder: str, token: str, media: PlayerMedia, coders: Sequence[str]) -> str:
    """Render the page of a coder. Until their coding is done, it holds nothing of the monitor or of others."""
    recording = desk.recording
    start_ns = recording.start_ns
    voices = VoiceNumbers()
    keys = _list_free_keys(desk.codes.values())
    data: dict[str, Any] = {
        "token": token,
        "coder": coder,
        "done": desk.is_done(coder),
        "info": {"study": recording.info.study, "session": recording.info.session},
        "end": ms_since(start_ns, recording.end_ns),
        "notes": [],
        "at_most": {},
        "attributes": [attribute.value for attribute in Attribute],
        "speech": [make_speech_item(utterance, start_ns, voices) for utterance in recording.speech],
        "presence": [],
        "decisions": [],
        "codes": [_make_code_item(code) for code in desk.codes.values() if code.attribute],
        "without_attribute": [code.name for code in desk.codes.values() if not code.attribute],
        "severities": {severity.value: meaning for severity, meaning in desk.severities.items()},
        "severity_keys": dict(zip((severity.value for severity in desk.severities), keys, strict=False)),
        "media": {
            "stills": media.still_at is not None,
            "sound": media.sound_of is not None,
            "video": media.video is not None,
            "offset": media.video_offset_ms,
            "why": media.why,
        },
    }
    if desk.is_done(coder):
        data |= _collect_unblinded_data(desk, coder, coders)
    else:
        own = [_make_label_item(label, recording, coder) for label in desk.list_labels(coder)]
        data |= {"flags": own, "rows": None}
    title = f"Coding of session {recording.info.session}"
    return fill_page("coding", ("page", "coding"), _SCRIPTS, title, data, _PAGE)


def _make_label_item(label: Label, recording: Recording, lane: str, index: int = 0) -> Item:
    """Make a label for the timeline and the list. `lane` is its coder; `index` replaces a missing id."""
    return {
        "id": f"{lane}/{label.label_id or index}",
        "label_id": label.label_id,
        "coder": lane,
        "polarity": label.polarity.value,
        "attributes": [label.attribute.value],
        "severity": label.severity.value if label.severity else None,
        "start": ms_since(recording.start_ns, label.start_ns),
        "end": ms_since(recording.start_ns, label.end_ns),
        "code": _name_code(label),
        "cue": label.code,
        "why": label.comment,
        "evidence": [],
    }


def _collect_unblinded_data(desk: CodingDesk, coder: str, coders: Sequence[str]) -> Item:
    """Collect what a coder may see once their coding is done."""
    recording = desk.recording
    codings = desk.show_codings(coder)
    compared = desk.compare(coder)
    decisions = {event.label_id: desk.find_decision(event.label_id) for event in compared}
    rows: Mapping[str, Iterable[Label]] = {
        MONITOR: {label.event_id: label for label in make_monitor_labels(recording)}.values(),
        **codings,
        CONSENSUS: [decision for decision in decisions.values() if isinstance(decision, Label)],
    }
    return {
        "flags": [
            _make_label_item(label, recording, row, index)
            for row, labels in rows.items()
            for index, label in enumerate(labels)
        ],
        "rows": list(rows),
        "coders": list(codings),
        "waiting": [name for name in coders if name not in codings],
        "compared": [_make_compared_item(event, decisions[event.label_id], recording) for event in compared],
        "info": {
            "study": recording.info.study,
            "session": recording.info.session,
            "condition": recording.info.condition,
        },
        "notes": list(recording.notes),
    }


def _make_compared_item(event: ComparedEvent, decision: Label | LabelRemoval | None, recording: Recording) -> Item:
    """Collect the opinions of all coders on an event, and their decision."""
    settled: Item | None = None
    if decision is not None:
        label = _make_label_item(decision, recording, CONSENSUS) if isinstance(decision, Label) else None
        settled = {"label": label, "editor": decision.editor}
    return {
        "id": event.label_id,
        "agreed": event.is_agreed,
        "missing": list(event.missing),
        "opinions": {opinion.coder: _make_opinion_item(opinion, recording) for opinion in event.opinions},
        "settled": settled,
    }


def _make_opinion_item(opinion: Opinion, recording: Recording) -> Item:
    return {
        "code": _name_code(opinion),
        "polarity": opinion.polarity.value,
        "attribute": opinion.attribute.value,
        "severity": opinion.severity.value if opinion.severity else None,
        "start": ms_since(recording.start_ns, opinion.start_ns),
        "end": ms_since(recording.start_ns, opinion.end_ns),
    }


def _name_code(label: Label | Opinion) -> str:
    return label.code or f"{label.polarity.value}_{label.attribute.value}"


def _make_code_item(code: Code) -> Item:
    return {
        "id": code.id,
        "name": code.name,
        "definition": code.description,
        "polarity": code.polarity.value,
        "attribute": code.attribute.value if code.attribute else "",
        "key": "" if code.key.lower() in _PAGE_KEYS else code.key,
        "own": not is_hsri(code),
    }


def _list_free_keys(codes: Iterable[Code]) -> list[str]:
    """List the keys for severities that no code has."""
    used = {code.key.lower() for code in codes}
    return [key for key in _SEVERITY_KEYS if key not in used]


@record
class RemovalForm:
    """A request to remove an event."""

    label_id: str


class CodingServer:
    """Serve one log to coders, each with a token, who see nothing of the monitor or of others until they are done.

    Closing it releases the log.
    """

    def __init__(
        self,
        folder: Path,
        coders: Mapping[str, str],  # by token
        clock: Clock,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        redactor: Redactor | None = None,
        study: StudyFile | None = None,
        media: PlayerMedia | None = None,
    ) -> None:
        recording = load_log(folder)
        self._desk = CodingDesk(recording, study or StudyFile(study="one session"), self._append)
        self._coders = dict(coders)
        self._media = media or PlayerMedia()
        self._start_ns = recording.start_ns
        self._log = StudyLog.resume(folder, clock, redactor=redactor)
        self._log_lock = threading.Lock()
        try:
            self._server = PageServer(
                [*self._coders], self._answer, link_from="study code", host=host, port=port, media=[_VIDEO_PATH]
            )
        except TactfulError:
            self._log.close()
            raise
        self.port = self._server.port
        self.url = self._server.url
        self.serve = self._server.serve

    def close(self) -> None:
        """Stop serving and release the log."""
        self._server.close()
        self._log.close()

    def _append(self, record: Any, ros_ns: int) -> None:
        with self._log_lock:
            self._log.append(record, ros_ns)

    def _answer(self, request: PageRequest) -> PageReply:
        coder = self._coders[request.token]
        try:
            return self._show(coder, request) if request.method == "GET" else self._change(coder, request)
        except LogWriteError as error:
            return make_text_reply(HTTPStatus.INSUFFICIENT_STORAGE, str(error))
        except CodingError as error:
            return make_text_reply(HTTPStatus.CONFLICT, str(error))
        except (RecordError, ValueError) as error:
            return make_text_reply(HTTPStatus.BAD_REQUEST, str(error))

    def _show(self, coder: str, request: PageRequest) -> PageReply:
        """Answer a request for the page or its media."""
        match request.path:
            case "/":
                coders = [*self._coders.values()]
                return make_page_reply(_render_page(self._desk, coder, request.token, self._media, coders))
            case "/still":
                return make_still_reply(self._media.still_at, self._start_ns, request.query.get("at", ""))
            case "/sound":
                return self._reply_with_sound(request.query.get("piece", ""))
            case path if path == _VIDEO_PATH and self._media.video:
                return make_video_reply(self._media.video, request.byte_range)
        return NOT_FOUND

    def _change(self, coder: str, request: PageRequest) -> PageReply:
        """Carry out what a coder does in the page, and answer with the result."""
        answer: object = {}
        match request.path:
            case "/events":
                label = self._desk.save(coder, from_json(EventForm, request.body))
                answer = _make_label_item(label, self._desk.recording, coder)
            case "/events/remove":
                self._desk.remove(coder, from_json(RemovalForm, request.body).label_id)
            case "/done":
                self._desk.finish(coder)
            case "/consensus":
                event = self._desk.agree(coder, from_json(ConsensusForm, request.body))
                decision = self._desk.find_decision(event.label_id)
                answer = _make_compared_item(event, decision, self._desk.recording)
            case "/consensus/agreed":
                answer = {"adopted": self._desk.adopt_agreed(coder)}
            case _:
                return NOT_FOUND
        return PageReply(json.dumps(answer).encode(), "application/json")

    def _reply_with_sound(self, piece: str) -> PageReply:
        index = parse_number(piece)
        if index is None or self._media.sound_of is None:
            return NOT_FOUND
        start_ns = self._start_ns + index * _PIECE_MS * NS_PER_MS
        if start_ns > self._desk.recording.end_ns:
            return NOT_FOUND
        sound = self._media.sound_of(start_ns, start_ns + _PIECE_MS * NS_PER_MS)
        return PageReply(b"", "audio/wav", HTTPStatus.NO_CONTENT) if sound is None else PageReply(sound, "audio/wav")
