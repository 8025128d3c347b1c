"""A batch in the place of a server: requests are answered from its folder, or written to it."""

import json
from pathlib import Path
from typing import Any

from norm_core.engines.backend import ServerStatus
from norm_core.engines.errors import EngineError, EngineFailedError
from norm_core.engines.openai.batch import ENDPOINT, BatchAnswers, BatchWriter, answers_of, read_answers, requests_of
from norm_core.engines.request_context import RequestContext
from norm_core.records.json_codec import sha256_of
from norm_core.records.outcome import Outcome

NOT_ASKED, NO_ANSWER = "the batch does not hold this request", "the batch holds no answer to this request"


class BatchServer:
    """Complete chats from a batch. With a writer, the batch may be new, and requests that it lacks are added.

    A request is known by the digest of its body, so the same run with the same settings finds its answers.
    """

    url = "batch:"  # not on this machine, so that no picture leaves unless somebody allows it
    status = ServerStatus()

    def __init__(self, folder: Path, writer: BatchWriter | None = None) -> None:
        """Read the folder. Raises BatchError where it lacks what is needed."""
        self._writer = writer
        is_new = writer is not None and not any(folder.expanduser().glob("*.jsonl"))
        self._requests = set() if is_new else {request["custom_id"] for request in requests_of(folder)}
        has_answers = writer is None or next(answers_of(folder), None) is not None
        self.answers = read_answers(folder) if has_answers else BatchAnswers(by_id={})

    def complete(self, body: dict[str, Any], call: RequestContext) -> bytes:
        """Return the batch's answer. Raises EngineError where there is none."""
        key = f"ask_{sha256_of(body)[:40]}"
        if answer := self.answers.by_id.get(key):
            if answer.completion:
                return json.dumps(answer.completion).encode()
            raise _ERRORS[answer.outcome](answer.reason)
        if key in self._requests:
            raise EngineFailedError(NO_ANSWER)
        if self._writer:
            self._writer.add({"custom_id": key, "method": "POST", "url": ENDPOINT, "body": body})
            self._requests.add(key)
        raise EngineFailedError(NOT_ASKED)

    def close(self) -> None:
        """Do nothing: the folder is read."""


_ERRORS: dict[Outcome, type[EngineError]] = {kind.outcome: kind for kind in EngineError.__subclasses__()}
