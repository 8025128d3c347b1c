"""Files of requests that a service answers later, and of its answers: JSON Lines in OpenAI's batch format."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from norm_core.engines.errors import EngineError
from norm_core.engines.openai.reply import answer_format, parse_completion, user_message
from norm_core.engines.prompt import Prompt
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.files.atomic_file import write_atomic
from norm_core.records.json_codec import sha256_of, to_plain
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock
from norm_core.runtime.wording import count_of

ENDPOINT = "/v1/chat/completions"
REQUESTS = "requests-"
MODE, FOLDER_MODE = 0o600, 0o700
# The limits of one file that every service accepts; OpenAI accepts 200 MB.
MAX_FILE_BYTES, MAX_FILE_REQUESTS = 90_000_000, 50_000
# A picture of 448 pixels a side costs 250 to 270 tokens with the common models.
PICTURE_TOKENS = 270
_ASCII_PER_TOKEN = 4
ANSWER_SHARE = 0.3  # the usual length of an answer as a share of its limit
_OUTCOMES = {"batch_expired": Outcome.TIMED_OUT} | {outcome.value: outcome for outcome in Outcome}


class BatchError(TactfulError):
    """A folder cannot store requests, or holds no answers."""


@record
class BatchRequest:
    """A request of one chat completion."""

    custom_id: str
    prompt: Prompt
    schema: Mapping[str, Any]
    max_tokens: int

    def line(self, model: str) -> dict[str, Any]:
        """Return the request as a line of a batch file, with pictures as data URLs."""
        body = {
            "model": model,
            "messages": [user_message(self.prompt.parts)],
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "response_format": answer_format({"title": self.prompt.version, **self.schema}),
        }
        return {"custom_id": self.custom_id, "method": "POST", "url": ENDPOINT, "body": body}


@dataclass
class BatchSize:
    """What requests hold, with estimates of their tokens."""

    requests: int = 0
    pictures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, request: Mapping[str, Any]) -> None:
        """Add a request in the form of a line."""
        body = request["body"]
        content = body["messages"][0]["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = json.dumps(body.get("response_format")) + "".join(part.get("text", "") for part in parts)
        pictures = sum(part["type"] == "image_url" for part in parts)
        ascii_chars = sum(map(str.isascii, text))
        self.requests += 1
        self.pictures += pictures
        self.prompt_tokens += ascii_chars // _ASCII_PER_TOKEN + len(text) - ascii_chars + pictures * PICTURE_TOKENS
        limit = body.get("max_tokens") or body["max_completion_tokens"]
        self.completion_tokens += round(limit * ANSWER_SHARE)

    def __str__(self) -> str:
        """Return the size in words."""
        pictures = f"with {count_of(self.pictures, 'picture')}" if self.pictures else "without pictures"
        tokens = f"about {self.prompt_tokens} tokens to read and {self.completion_tokens} to write"
        return f"{count_of(self.requests, 'request')} {pictures}, {tokens}"


class BatchWriter:
    """Write requests to files of a folder, split by size; only their owner can read them."""

    def __init__(self, folder: Path, model: str, *, max_file_bytes: int = MAX_FILE_BYTES) -> None:
        """Create the folder. Raises BatchError if that fails, or if it holds requests already."""
        self.folder, self._model, self._max_file_bytes = folder.expanduser(), model, max_file_bytes
        self._lines: list[bytes] = []
        self.size = BatchSize()
        try:
            self.folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            earlier = sorted(self.folder.glob(f"{REQUESTS}*"))
        except OSError as error:
            raise BatchError(f"{folder}: cannot be made: {error.strerror}; name another folder") from error
        if earlier:
            raise BatchError(f"{earlier[0]}: holds requests already; name another folder, or remove the file")
        self._files = 0

    def add(self, request: BatchRequest | Mapping[str, Any]) -> None:
        """Add a request or a line, and write a file once it is full."""
        fields = request.line(self._model) if isinstance(request, BatchRequest) else request
        self.size.add(fields)
        line = (
            json.dumps(fields).encode() + b"\n"
        )  # unsorted, because a constrained answer has its keys in the order of the schema
        if sum(map(len, self._lines)) + len(line) > self._max_file_bytes or len(self._lines) == MAX_FILE_REQUESTS:
            self.flush()
        self._lines.append(line)

    def flush(self) -> None:
        """Write the remaining requests to a file. Raises BatchError."""
        if not self._lines:
            return
        self._files += 1
        path = self.folder / f"{REQUESTS}{self._files:04}.jsonl"
        try:
            write_atomic(path, b"".join(self._lines), mode=MODE)
        except OSError as error:
            raise BatchError(f"{path}: cannot be written: {error.strerror}; free some room there") from error
        self._lines.clear()


@record
class BatchAnswer:
    """A service's answer to one request; without a text, the outcome says why."""

    outcome: Outcome
    text: str = ""
    reason: str = ""
    model: str = ""
    prompt_version: str = ""  # of the request, if its file is in the folder
    request_sha256: str = ""
    completion: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)  # as it came


@record
class BatchAnswers:
    """The answers of a folder by custom_id, and how many lines could not be read."""

    by_id: Mapping[str, BatchAnswer]
    unreadable: int = 0

    @property
    def sha256(self) -> str:
        """The hash of the answers, which does not depend on the order of the lines."""
        answers = {key: to_plain(answer) for key, answer in self.by_id.items()}
        return sha256_of({key: {name: of[name] for name in of if name != "completion"} for key, of in answers.items()})


def read_answers(folder: Path) -> BatchAnswers:
    """Read all answers below a folder, or in one file; raise BatchError if there are none or two differ.

    The folder may hold the requests too. Of several lines about one request, one with an answer counts.
    """
    by_id: dict[str, BatchAnswer] = {}
    requests: dict[str, tuple[str, str]] = {}
    conflicts: set[str] = set()
    unreadable = 0
    for line in _lines(folder):
        fields = _fields(line)
        custom_id = fields.get("custom_id")
        if not isinstance(custom_id, str) or not custom_id:
            unreadable += 1
        elif "method" in fields:
            requests[custom_id] = _version_of(fields), sha256(line).hexdigest()
        else:
            answer = _answer(fields)
            earlier = by_id.setdefault(custom_id, answer)
            if earlier.outcome is not Outcome.ANSWERED:
                by_id[custom_id] = answer
            elif answer.outcome is Outcome.ANSWERED and answer != earlier:
                conflicts.add(custom_id)
    if conflicts:
        count = count_of(len(conflicts), "request has", "requests have")
        raise BatchError(f"{folder}: {count} different answers, such as {min(conflicts)}; keep one file of answers")
    if not by_id:
        raise BatchError(f"{folder}: holds no answers; put the service's output files there, as *.jsonl")
    for key in by_id.keys() & requests.keys():
        version, digest = requests[key]
        by_id[key] = replace(by_id[key], prompt_version=version, request_sha256=digest)
    return BatchAnswers(by_id=by_id, unreadable=unreadable)


def answered_ids(folder: Path) -> set[str]:
    """Return the custom_id of each request that has an answer."""
    return {fields["custom_id"] for fields in answers_of(folder) if _answer(fields).outcome is Outcome.ANSWERED}


def answers_of(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a folder that hold an answer, or the reason for none."""
    every = (_fields(line) for line in _lines(folder))
    return (fields for fields in every if isinstance(fields.get("custom_id"), str) and "method" not in fields)


def requests_of(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the requests of a folder; raise BatchError if there are none."""
    paths = sorted(folder.expanduser().glob(f"{REQUESTS}*.jsonl"))
    if not paths:
        raise BatchError(f"{folder}: holds no requests; write them with --ask-later")
    for path in paths:
        for fields in map(_fields, _lines(path)):
            if not (isinstance(fields.get("custom_id"), str) and isinstance(fields.get("body"), dict)):
                raise BatchError(f"{path}: a line is no request; write the requests again")
            yield fields


def _lines(folder: Path) -> Iterator[bytes]:
    folder = folder.expanduser()
    for path in [folder] if folder.is_file() else sorted(folder.rglob("*.jsonl")):
        try:
            with path.open("rb") as file:
                yield from (line.rstrip(b"\r\n") for line in file if line.strip())
        except OSError as error:
            raise BatchError(f"{path}: cannot be read: {error.strerror}; check its owner") from error


def _fields(line: bytes) -> dict[str, Any]:
    """Return the fields of a line; none if it is not a JSON object."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _version_of(request: dict[str, Any]) -> str:
    try:
        return str(request["body"]["response_format"]["json_schema"]["name"])
    except (KeyError, TypeError):
        return ""


def _answer(fields: dict[str, Any]) -> BatchAnswer:
    """Return the answer of a line, or its outcome without one."""
    response = fields.get("response")
    response = response if isinstance(response, dict) else {}
    body, status = response.get("body"), response.get("status_code", 200)
    error = fields.get("error") or (body.get("error") if isinstance(body, dict) else None)
    if error or status != 200 or not isinstance(body, dict):
        return BatchAnswer(outcome=_outcome_of(error, status), reason=_reason_of(error or body, status))
    return replace(_answer_in(body), completion=body)


def _answer_in(body: dict[str, Any]) -> BatchAnswer:
    try:
        reply = parse_completion(json.dumps(body).encode(), RequestContext(Deadline(ReplayClock())))
    except EngineError as error:
        return BatchAnswer(outcome=error.outcome, reason=str(error))
    if reply.is_cut:
        return BatchAnswer(outcome=Outcome.UNPARSED, reason="the answer is cut at its limit of tokens")
    return BatchAnswer(outcome=Outcome.ANSWERED, text=reply.text, model=reply.model)


def _outcome_of(error: Any, status: Any) -> Outcome:
    code = error.get("code") if isinstance(error, dict) else None
    if code in _OUTCOMES:
        return _OUTCOMES[code]
    return Outcome.INVALID if status in {400, 404, 413, 422} else Outcome.FAILED


def _reason_of(error: Any, status: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    of_status = "" if status == 200 else f" (status {status})"
    return f"the service gave no answer{of_status}: {message or error!s:.200}"
