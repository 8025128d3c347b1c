"""Files of requests that a service answers later, and of its answers: JSON Lines in the format of OpenAI's batches."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from norm_core.engines.errors import EngineError
from norm_core.engines.openai.messages import answer_format, user_message
from norm_core.engines.openai.reply import parse_reply
from norm_core.engines.prompt import Prompt
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.models.manifest import Prices
from norm_core.records.json_codec import sha256_of, to_plain
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock
from norm_core.runtime.wording import count_of

ENDPOINT = "/v1/chat/completions"
REQUESTS, ANSWERS = "requests-", "answers"
MODE, FOLDER_MODE = 0o600, 0o700
# What every service takes in one file; OpenAI takes 200 MB.
MAX_FILE_BYTES, MAX_FILE_REQUESTS = 90_000_000, 50_000
# A picture of 448 pixels a side costs 250 to 270 tokens with the common models.
PICTURE_TOKENS = 270
_ASCII_PER_TOKEN = 4


class BatchError(TactfulError):
    """A folder cannot take requests, or holds no answers."""


@record
class BatchRequest:
    """One chat completion; `answer_tokens` is what its answer takes as a rule, `max_tokens` its limit."""

    custom_id: str
    prompt: Prompt
    schema: Mapping[str, Any]
    answer_tokens: int
    max_tokens: int

    def line(self, model: str) -> bytes:
        """Return the request as a line of a batch file, with pictures as data URLs."""
        body = {
            "model": model,
            "messages": [user_message(self.prompt.parts)],
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "response_format": answer_format({"title": self.prompt.version, **self.schema}),
        }
        line = {"custom_id": self.custom_id, "method": "POST", "url": ENDPOINT, "body": body}
        return json.dumps(line).encode() + b"\n"  # keys in their order, which is that of a constrained answer


@record
class BatchSize:
    """What a batch holds; tokens are estimates."""

    requests: int = 0
    pictures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    size_bytes: int = 0
    files: int = 0

    def told(self, prices: Prices | None) -> str:
        """Return the size in words, with the price where prices are known."""
        parts = [
            f"{count_of(self.requests, 'request')} in {count_of(self.files, 'file')} ({self.size_bytes / 1e6:.1f} MB)",
            f"with {count_of(self.pictures, 'picture')}" if self.pictures else "without pictures",
            f"about {self.prompt_tokens} tokens to read and {self.completion_tokens} to write",
        ]
        if prices:
            cost = (self.prompt_tokens * prices.prompt + self.completion_tokens * prices.completion) / 1e6
            parts.append(f"about {cost:.2f} {prices.currency}")
        return ", ".join(parts)


class BatchWriter:
    """Write requests to files of a folder, split by size; only their owner can read them."""

    def __init__(self, folder: Path, model: str, *, max_file_bytes: int = MAX_FILE_BYTES) -> None:
        """Create the folder. Raises BatchError if that fails, or if it holds requests already."""
        self._folder, self._model, self._max_file_bytes = folder.expanduser(), model, max_file_bytes
        self._lines: list[bytes] = []
        self._counts = dict.fromkeys(BatchSize.__dataclass_fields__, 0)
        try:
            self._folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            earlier = next(self._folder.glob(f"{REQUESTS}*"), None)
        except OSError as error:
            raise BatchError(f"{folder}: cannot be made: {error.strerror}; name another folder") from error
        if earlier:
            raise BatchError(f"{earlier}: holds requests already; name another folder, or remove the file")

    @property
    def size(self) -> BatchSize:
        """What was written so far."""
        return BatchSize(**self._counts)

    def add(self, request: BatchRequest) -> None:
        """Add a request, and write a file once it is full."""
        line = request.line(self._model)
        if self._lines and (
            sum(map(len, self._lines)) + len(line) > self._max_file_bytes or len(self._lines) == MAX_FILE_REQUESTS
        ):
            self.flush()
        self._lines.append(line)
        texts = request.prompt.as_text() + json.dumps(request.schema)
        pictures, others = len(request.prompt.images), sum(not char.isascii() for char in texts)
        self._counts["requests"] += 1
        self._counts["pictures"] += pictures
        self._counts["prompt_tokens"] += (len(texts) - others) // _ASCII_PER_TOKEN + others + pictures * PICTURE_TOKENS
        self._counts["completion_tokens"] += request.answer_tokens
        self._counts["size_bytes"] += len(line)

    def flush(self) -> None:
        """Write what is left to a file. Raises BatchError."""
        if not self._lines:
            return
        self._counts["files"] += 1
        path = self._folder / f"{REQUESTS}{self._counts['files']:04}.jsonl"
        try:
            write_atomic(path, b"".join(self._lines), mode=MODE)
        except OSError as error:
            raise BatchError(f"{path}: cannot be written: {error.strerror}; free some room there") from error
        self._lines.clear()


class _Logprob(BaseModel):
    token: str
    logprob: float


class TokenLogprob(_Logprob):
    """One token of an answer, with the likeliest tokens in its place."""

    top_logprobs: list[_Logprob] = []


@record
class BatchAnswer:
    """What a service answered to one request; without a text, the outcome says why."""

    outcome: Outcome
    text: str = ""
    reason: str = ""
    model: str = ""
    tokens: tuple[TokenLogprob, ...] = ()  # empty where the service gave no log-probabilities
    prompt_version: str = ""  # of the request, if its file is in the folder
    request_sha256: str = ""


@record
class BatchAnswers:
    """The answers of a folder by custom_id, and how many lines could not be read."""

    by_id: Mapping[str, BatchAnswer]
    unreadable: int = 0

    @property
    def sha256(self) -> str:
        """The hash of what was answered, in any order of the lines."""
        return sha256_of({key: to_plain(answer) for key, answer in self.by_id.items()})


def read_answers(folder: Path) -> BatchAnswers:
    """Read all answers below a folder, or in one file, in any order; raise BatchError where there are none.

    The requests may lie beside them. Of several answers to one request, one that is answered counts.
    """
    by_id: dict[str, BatchAnswer] = {}
    asked: dict[str, dict[str, str]] = {}
    unreadable = 0
    for line in _lines(folder):
        fields = _fields(line)
        custom_id = fields.get("custom_id")
        if not isinstance(custom_id, str) or not custom_id:
            unreadable += 1
        elif "method" in fields:
            asked[custom_id] = {"prompt_version": _version_of(fields), "request_sha256": sha256(line).hexdigest()}
        elif custom_id not in by_id or by_id[custom_id].outcome is not Outcome.ANSWERED:
            by_id[custom_id] = _answer(fields)
    if not by_id:
        raise BatchError(f"{folder}: holds no answers; put the service's output files there, as *.jsonl")
    return BatchAnswers(
        by_id={key: replace(answer, **asked.get(key, {})) for key, answer in by_id.items()}, unreadable=unreadable
    )


def _lines(folder: Path) -> Iterator[bytes]:
    folder = folder.expanduser()
    for path in [folder] if folder.is_file() else sorted(folder.rglob("*.jsonl")):
        try:
            with path.open("rb") as file:
                yield from (line.rstrip(b"\r\n") for line in file if line.strip())
        except OSError as error:
            raise BatchError(f"{path}: cannot be read: {error.strerror}; check its owner") from error


def _fields(line: bytes) -> dict[str, Any]:
    """Return the fields of a line, none where it is no JSON object."""
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
    """Return what a line answers, or why it does not."""
    response = fields.get("response")
    response = response if isinstance(response, dict) else {}
    body, status = response.get("body"), response.get("status_code", 200)
    error = fields.get("error") or (body.get("error") if isinstance(body, dict) else None)
    if error or status != 200 or not isinstance(body, dict):
        return BatchAnswer(outcome=_outcome_of(error, status), reason=_reason_of(error or body, status))
    return _answer_in(body)


def _answer_in(body: dict[str, Any]) -> BatchAnswer:
    model = body.get("model")
    model = model if isinstance(model, str) else ""
    try:
        reply = parse_reply(json.dumps(body).encode(), RequestContext(Deadline(ReplayClock())))
    except EngineError as error:
        return BatchAnswer(outcome=error.outcome, reason=str(error), model=model)
    if reply.is_cut:
        return BatchAnswer(outcome=Outcome.UNPARSED, reason="the answer is cut at its limit of tokens", model=model)
    try:
        logprobs = body["choices"][0].get("logprobs") or {}
        tokens = tuple(TokenLogprob.model_validate(token) for token in logprobs.get("content") or ())
    except (ValidationError, AttributeError, TypeError):
        tokens = ()
    return BatchAnswer(outcome=Outcome.ANSWERED, text=reply.text, model=model, tokens=tokens)


def _outcome_of(error: Any, status: Any) -> Outcome:
    if isinstance(error, dict) and error.get("code") == "batch_expired":
        return Outcome.TIMED_OUT
    return Outcome.INVALID if status in {400, 404, 413, 422} else Outcome.FAILED


def _reason_of(error: Any, status: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return f"the service gave no answer (status {status}): {message or error!s:.200}"
