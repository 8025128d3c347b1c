"""Files of requests that a service answers later, and of its answers: JSON Lines in the batch format of OpenAI."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from norm_core.engines.errors import EngineError
from norm_core.engines.openai.reply import make_answer_format, make_user_message, parse_completion
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
# The name of a file of requests begins so.
REQUESTS_PREFIX = "requests-"
# Only the owner reads files and folder, because they contain talk and pictures.
FILE_MODE = 0o600
FOLDER_MODE = 0o700
# The limits of one file that every service accepts; OpenAI accepts 200 MB.
MAX_FILE_BYTES = 90_000_000
MAX_FILE_REQUESTS = 50_000
# A picture of 448 pixels a side takes 250 to 270 tokens with the common models.
PICTURE_TOKENS = 270
_ASCII_PER_TOKEN = 4
# The usual length of an answer as a share of its limit.
ANSWER_SHARE = 0.3
# The outcome of each error code of a service.
_OUTCOMES = {"batch_expired": Outcome.TIMED_OUT} | {outcome.value: outcome for outcome in Outcome}


class BatchError(TactfulError):
    """A folder of requests or answers cannot be used."""


@record
class BatchRequest:
    """A request for one chat completion."""

    custom_id: str
    prompt: Prompt
    schema: Mapping[str, Any]
    max_tokens: int

    def make_line(self, model: str) -> dict[str, Any]:
        """Return the request as a line of a batch file, with pictures as data URLs."""
        body = {
            "model": model,
            "messages": [make_user_message(self.prompt.parts)],
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "response_format": make_answer_format({"title": self.prompt.version, **self.schema}),
        }
        return {"custom_id": self.custom_id, "method": "POST", "url": ENDPOINT, "body": body}


@dataclass
class BatchSize:
    """The numbers of requests and pictures, and estimates of the tokens."""

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
        self.completion_tokens += round(body["max_tokens"] * ANSWER_SHARE)

    def __str__(self) -> str:
        """Return the size in words."""
        pictures = f"with {count_of(self.pictures, 'picture')}" if self.pictures else "without pictures"
        tokens = f"about {self.prompt_tokens} tokens to read and {self.completion_tokens} to write"
        return f"{count_of(self.requests, 'request')} {pictures}, {tokens}"


class BatchWriter:
    """Write requests to files of a folder, split by size."""

    def __init__(self, folder: Path, model: str, *, max_file_bytes: int = MAX_FILE_BYTES) -> None:
        """Create the folder. Raises BatchError if that fails, or if it has requests already."""
        self.folder = folder.expanduser()
        self._model = model
        self._max_file_bytes = max_file_bytes
        self._lines: list[bytes] = []
        self.size = BatchSize()
        try:
            self.folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            earlier_files = sorted(self.folder.glob(f"{REQUESTS_PREFIX}*"))
        except OSError as error:
            raise BatchError(f"{folder}: cannot be created: {error.strerror}; name another folder") from error
        if earlier_files:
            raise BatchError(f"{earlier_files[0]}: has requests already; name another folder, or remove the file")
        self._file_count = 0

    def add(self, request: BatchRequest | Mapping[str, Any]) -> None:
        """Add a request or a line, and write a file once it is full."""
        fields = request.make_line(self._model) if isinstance(request, BatchRequest) else request
        self.size.add(fields)
        # Keys stay unsorted, because a constrained answer has its keys in the order of the schema.
        line = json.dumps(fields).encode() + b"\n"
        if sum(map(len, self._lines)) + len(line) > self._max_file_bytes or len(self._lines) == MAX_FILE_REQUESTS:
            self.flush()
        self._lines.append(line)

    def flush(self) -> None:
        """Write the remaining requests to a file. Raises BatchError if that fails."""
        if not self._lines:
            return
        self._file_count += 1
        path = self.folder / f"{REQUESTS_PREFIX}{self._file_count:04}.jsonl"
        try:
            write_atomic(path, b"".join(self._lines), mode=FILE_MODE)
        except OSError as error:
            raise BatchError(f"{path}: cannot be written: {error.strerror}; free some room there") from error
        self._lines.clear()


@record
class BatchAnswer:
    """The answer of a service to one request; without a text, the outcome says why."""

    outcome: Outcome
    text: str = ""
    reason: str = ""
    model: str = ""
    # Of the request, if its file is in the folder.
    prompt_version: str = ""
    request_sha256: str = ""
    completion: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)


@record
class BatchAnswers:
    """The answers of a folder by custom_id, and the number of lines that cannot be read."""

    by_id: Mapping[str, BatchAnswer]
    unreadable_count: int = 0

    @property
    def sha256(self) -> str:
        """The hash of the answers, which does not depend on the order of the lines."""
        answers = {key: to_plain(answer) for key, answer in self.by_id.items()}
        return sha256_of(
            {
                key: {name: value for name, value in fields.items() if name != "completion"}
                for key, fields in answers.items()
            }
        )


def read_answers(folder: Path) -> BatchAnswers:
    """Read all answers below a folder, or in one file.

    The folder may contain the requests too. Of several lines about one request, one with an answer counts.
    """
    by_id: dict[str, BatchAnswer] = {}
    requests: dict[str, tuple[str, str]] = {}
    conflicting_ids: set[str] = set()
    unreadable_count = 0
    for line in _read_lines(folder):
        fields = _parse_fields(line)
        custom_id = fields.get("custom_id")
        if not isinstance(custom_id, str) or not custom_id:
            unreadable_count += 1
        elif "method" in fields:
            requests[custom_id] = _find_prompt_version(fields), sha256(line).hexdigest()
        else:
            answer = _parse_answer(fields)
            earlier = by_id.setdefault(custom_id, answer)
            if earlier.outcome is not Outcome.ANSWERED:
                by_id[custom_id] = answer
            elif answer.outcome is Outcome.ANSWERED and answer != earlier:
                conflicting_ids.add(custom_id)
    if conflicting_ids:
        count = count_of(len(conflicting_ids), "request has", "requests have")
        raise BatchError(
            f"{folder}: {count} different answers, such as {min(conflicting_ids)}; keep one file of answers"
        )
    if not by_id:
        raise BatchError(f"{folder}: there are no answers; put the output files of the service there, as *.jsonl")
    for key in by_id.keys() & requests.keys():
        version, digest = requests[key]
        by_id[key] = replace(by_id[key], prompt_version=version, request_sha256=digest)
    return BatchAnswers(by_id=by_id, unreadable_count=unreadable_count)


def _read_lines(folder: Path) -> Iterator[bytes]:
    folder = folder.expanduser()
    for path in [folder] if folder.is_file() else sorted(folder.rglob("*.jsonl")):
        try:
            with path.open("rb") as file:
                yield from (line.rstrip(b"\r\n") for line in file if line.strip())
        except OSError as error:
            raise BatchError(f"{path}: cannot be read: {error.strerror}; check its owner") from error


def _parse_fields(line: bytes) -> dict[str, Any]:
    """Return the fields of a line; none if it is not a JSON object."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _find_prompt_version(request: dict[str, Any]) -> str:
    try:
        return str(request["body"]["response_format"]["json_schema"]["name"])
    except (KeyError, TypeError):
        return ""


def _parse_answer(fields: dict[str, Any]) -> BatchAnswer:
    """Return the answer of a line, or its outcome without one."""
    response = fields.get("response")
    response = response if isinstance(response, dict) else {}
    body, status = response.get("body"), response.get("status_code", 200)
    error = fields.get("error") or (body.get("error") if isinstance(body, dict) else None)
    if error or status != 200 or not isinstance(body, dict):
        return BatchAnswer(outcome=_choose_outcome(error, status), reason=_describe_failure(error or body, status))
    return replace(_parse_completion_body(body), completion=body)


def _parse_completion_body(body: dict[str, Any]) -> BatchAnswer:
    try:
        reply = parse_completion(json.dumps(body).encode(), RequestContext(Deadline(ReplayClock())))
    except EngineError as error:
        return BatchAnswer(outcome=error.outcome, reason=str(error))
    if reply.is_cut:
        return BatchAnswer(outcome=Outcome.UNPARSED, reason="the answer is cut at its limit of tokens")
    return BatchAnswer(outcome=Outcome.ANSWERED, text=reply.text, model=reply.model)


def _choose_outcome(error: Any, status: Any) -> Outcome:
    code = error.get("code") if isinstance(error, dict) else None
    if code in _OUTCOMES:
        return _OUTCOMES[code]
    return Outcome.INVALID if status in {400, 404, 413, 422} else Outcome.FAILED


def _describe_failure(error: Any, status: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    status_text = "" if status == 200 else f" (status {status})"
    return f"the service gave no answer{status_text}: {message or error!s:.200}"
