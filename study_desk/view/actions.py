"""What a viewer may change in a running graph: the monitor's sensitivity, what it mutes, and verdicts."""

import json
import re
from http import HTTPStatus
from typing import Any, Protocol

from norm_core.records.json_codec import RecordError, from_json, to_plain
from norm_monitor.fusion.unit_model import Sensitivity
from study_desk.log.schema import Review
from study_desk.report.page_server import NOT_FOUND, PageReply, PageRequest, text_reply
from study_desk.view.timeline import SessionTimeline


class Controls(Protocol):
    """The monitor. Each method that changes something returns why it was not done, or nothing."""

    def set_sensitivity(self, name: str) -> str:
        """Set the sensitivity."""

    def set_muted(self, name: str, *, is_muted: bool) -> str:
        """Mute a cue or an attribute, or raise its flags again."""

    def restore(self, *, is_wanted: bool) -> str:
        """Set again what a restart of the monitor lost, or let it go."""

    def prompt(self, digest: str) -> str:
        """Return what the judge was asked; empty where nothing keeps it."""

    def review(self, review: Review) -> str:
        """Record a verdict in the study log."""


class ViewActions:
    """Check what a viewer asks for, and do it."""

    def __init__(self, controls: Controls, timeline: SessionTimeline) -> None:
        self._controls, self._timeline = controls, timeline

    def answer(self, request: PageRequest) -> PageReply:
        """Do what a viewer asks for."""
        match request.method, request.path:
            case "POST", "/settings":
                return self.change_settings(request.body)
            case "POST", "/reviews":
                return self.give_verdict(request.body)
            case "GET", "/prompt":
                return self.show_prompt(request.query.get("digest", ""))
        return NOT_FOUND

    def show_prompt(self, digest: str) -> PageReply:
        """Return the prompt of a digest."""
        prompt = self._controls.prompt(digest) if re.fullmatch(r"[0-9a-f]{64}", digest) else ""
        missing = "no file among the newest of judge.prompts_folder holds this prompt"
        return text_reply(HTTPStatus.OK, prompt) if prompt else text_reply(HTTPStatus.NOT_FOUND, missing)

    def change_settings(self, body: bytes) -> PageReply:
        """Set `sensitivity`, `mute` or `unmute` a cue or an attribute, or `restore` what a restart lost."""
        plain = _object(body)
        match plain:
            case {"sensitivity": str(name)} if name in list(Sensitivity):
                return _answer(self._controls.set_sensitivity(name))
            case {"mute": str(name)} if re.fullmatch(r"[a-z_]{1,60}", name):
                return _answer(self._controls.set_muted(name, is_muted=True))
            case {"unmute": str(name)} if re.fullmatch(r"[a-z_]{1,60}", name):
                return _answer(self._controls.set_muted(name, is_muted=False))
            case {"restore": bool(is_wanted)}:
                return _answer(self._controls.restore(is_wanted=is_wanted))
        return text_reply(HTTPStatus.BAD_REQUEST, "there is no such setting; load the page again")

    def give_verdict(self, body: bytes) -> PageReply:
        """Give the monitor a verdict on a flag that is shown."""
        plain = _object(body)
        try:
            review = from_json(Review, json.dumps(plain))
        except (RecordError, ValueError) as error:
            return text_reply(HTTPStatus.BAD_REQUEST, str(error))
        answer = _answer(self._controls.review(review))
        if answer.status is HTTPStatus.OK:
            self._timeline.add_review(to_plain(review))
        return answer


def _object(body: bytes) -> dict[str, Any]:
    try:
        plain = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return plain if isinstance(plain, dict) else {}


def _answer(problem: str) -> PageReply:
    return text_reply(HTTPStatus.CONFLICT, problem) if problem else text_reply(HTTPStatus.OK, "done")
