"""A model that a run asks: every request is noted, answers are cached across runs, and each question has a deadline."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from norm_core.engines.backend import AnsweringModel
from norm_core.engines.engine import parse_reply
from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.engines.errors import PastDeadlineError
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import Generation, ModelInfo, Scores
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.models.catalogue import Catalogue
from norm_core.records.json_codec import from_json, sha256_of, to_json, to_plain
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.cache_dir import make_cache_folder
from norm_core.runtime.config import Config
from norm_core.runtime.time import Clock, WallClock
from sim_replays.runs.random_model import RANDOM, open_random
from sim_replays.suites.target import SuiteError

S = TypeVar("S", bound=BaseModel)

PICTURE_MARK = "[picture]"
_CACHED = {Outcome.ANSWERED, Outcome.UNPARSED}


class ModelOptions(Config):
    """How a run asks its model."""

    seed: int = Field(default=0, description="seed of the model that answers at random")
    timeout_s: float = Field(default=600.0, gt=0, description="the time for one question with all its requests")
    cache: bool = Field(default=True, description="whether answers of earlier runs are used")


@record
class AskedRequest:
    """One request to the model: a line of asked.jsonl. A cached one cost no tokens."""

    query_id: str
    step: str
    prompt: str
    pictures: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    reply: str = ""
    probabilities: tuple[float, ...] = ()
    outcome: Outcome
    reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached: bool = False
    took_s: float = 0.0


@record
class CachedReply:
    """What a model said to one request."""

    outcome: Outcome
    probabilities: tuple[float, ...] = ()
    text: str = ""
    reason: str = ""


class AnswerCache:
    """Replies by the digest of model and request, in a file that processes share; any thread may ask."""

    def __init__(self, path: Path | None = None) -> None:
        """Open the file; without one, the replies last as long as this object."""
        if path:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = Lock()
        self._file = sqlite3.connect(path or "", timeout=60.0, check_same_thread=False, isolation_level=None)
        self._file.execute("PRAGMA journal_mode=WAL")
        self._file.execute("PRAGMA synchronous=NORMAL")
        self._file.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT) WITHOUT ROWID")
        if path:
            path.chmod(0o600)

    @classmethod
    def of_user(cls) -> "AnswerCache":
        """Open the cache that all runs of this user share. Raises SuiteError where that cannot be written."""
        path = make_cache_folder("answers") / "replies.sqlite"
        try:
            return cls(path)
        except (OSError, sqlite3.Error) as error:
            raise SuiteError(f"{path}: the cache of answers cannot be used: {error}; add --no-cache") from error

    def get(self, key: str) -> CachedReply | None:
        """Return a reply, or None."""
        with self._lock:
            row = self._file.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return from_json(CachedReply, row[0]) if row else None

    def put(self, key: str, reply: CachedReply) -> None:
        """Keep a reply, unless the model gave none."""
        if reply.outcome in _CACHED:
            with self._lock:
                self._file.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, to_json(reply)))


class TimeLimit(Deadline):
    """A caller's deadline with a limit in real time, up to which a busy server is waited for.

    Latencies stay in the time of the caller's clock, so that a replay's answers are equal each time.
    """

    is_patient = True

    def __init__(self, asked: Deadline, until_s: float, now_s: Callable[[], float]) -> None:
        super().__init__(asked.clock, asked.deadline_ns)
        self._asked, self._until_s, self._now_s = asked, until_s, now_s

    def from_now(self) -> "TimeLimit":
        """Return the same limits for a further question."""
        return TimeLimit(self._asked.from_now(), self._until_s, self._now_s)

    def cancel(self) -> None:
        """End the request at its next check."""
        self._asked.cancel()

    def remaining_s(self) -> float:
        """Return the time left by both limits."""
        left_s, asked_s = max(0.0, self._until_s - self._now_s()), self._asked.remaining_s()
        return left_s if asked_s is None else min(left_s, asked_s)

    def check(self) -> None:
        """Raise PastDeadlineError if either has passed."""
        self._asked.check()
        if self._now_s() >= self._until_s:
            raise PastDeadlineError("the question's time is over (--timeout-s)")


class AskedModel:
    """Ask a model, one question of a run at a time. `identity` is the digest of all that decides its answers."""

    def __init__(
        self,
        model: AnsweringModel,
        identity: str = "",
        *,
        cache: AnswerCache | None = None,
        timeout_s: float = ModelOptions().timeout_s,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model, self._identity = model, identity or sha256_of(to_plain(model.model_info))
        self._cache, self._timeout_s, self._now_s = cache or AnswerCache(), timeout_s, now_s
        self._requests: list[AskedRequest] = []
        self._until_s: float | None = None

    @property
    def model_info(self) -> ModelInfo:
        """The model's identity and limits."""
        return self._model.model_info

    def end_question(self, query_id: str) -> tuple[AskedRequest, ...]:
        """Return the requests since the last question ended; the next request starts the time of another."""
        requests, self._requests, self._until_s = self._requests, [], None
        return tuple(replace(request, query_id=query_id) for request in requests)

    def ask_many(self, prefix: Prompt, questions: Sequence[Question], deadline: Deadline | None = None) -> list[Scores]:
        """Score the options of each question; the model is asked only what the cache does not hold."""
        limit = self._limit(deadline)
        keys = [sha256_of([self._identity, question.digest(prefix)]) for question in questions]
        known = {place: reply for place, key in enumerate(keys) if (reply := self._cache.get(key))}
        open_places = [place for place in range(len(questions)) if place not in known]
        began_s = self._now_s()
        asked = self._model.ask_many(prefix, [questions[place] for place in open_places], limit) if open_places else []
        took_s = (self._now_s() - began_s) / max(len(asked), 1)
        answers = dict(zip(open_places, asked, strict=True))
        for place, scores in answers.items():
            if scores.prompt_digest == questions[place].digest(prefix):  # not with fewer pictures, for want of memory
                said = CachedReply(
                    outcome=scores.outcome,
                    probabilities=scores.probabilities,
                    text=scores.text,
                    reason=scores.reason,
                )
                self._cache.put(keys[place], said)
        for place, reply in known.items():
            answers[place] = Scores(
                outcome=reply.outcome,
                probabilities=reply.probabilities,
                text=reply.text,
                reason=reply.reason,
                latency=RequestContext(limit.from_now()).latency(),
                prompt_version=prefix.version,
                prompt_digest=questions[place].digest(prefix),
            )
        for place, question in enumerate(questions):
            step = question.step or _step(prefix)
            self._note(answers[place], question.after(prefix), step, question.options, place in known, took_s)
        return [answers[place] for place in range(len(questions))]

    def generate(
        self,
        prompt: Prompt,
        schema: type[S] | None = None,
        *,
        max_tokens: int = 256,
        seed: int = 0,
        deadline: Deadline | None = None,
    ) -> Generation[S]:
        """Write text, or return that of an earlier run."""
        limit, form = self._limit(deadline), schema.model_json_schema() if schema else None
        key = sha256_of([self._identity, prompt.digest, form, max_tokens, seed])
        reply, began_s = self._cache.get(key), self._now_s()
        if reply:
            is_valid = schema is not None and reply.outcome is Outcome.ANSWERED
            written: Generation[S] = Generation(
                outcome=reply.outcome,
                text=reply.text,
                reason=reply.reason,
                value=parse_reply(reply.text, schema) if is_valid and schema else None,
                latency=RequestContext(limit.from_now()).latency(),
                prompt_version=prompt.version,
                prompt_digest=prompt.digest,
            )
        else:
            written = self._model.generate(prompt, schema, max_tokens=max_tokens, seed=seed, deadline=limit)
            if written.prompt_digest == prompt.digest:
                said = CachedReply(outcome=written.outcome, text=written.text, reason=written.reason)
                self._cache.put(key, said)
        self._note(written, prompt, _step(prompt), (), reply is not None, self._now_s() - began_s)
        return written

    def _limit(self, deadline: Deadline | None) -> TimeLimit:
        if self._until_s is None:
            self._until_s = self._now_s() + self._timeout_s
        return TimeLimit(deadline or Deadline(WallClock()), self._until_s, self._now_s)

    def _note(  # noqa: PLR0917
        self,
        said: Scores | Generation[S],
        prompt: Prompt,
        step: str,
        options: tuple[str, ...],
        cached: bool,
        took_s: float,
    ) -> None:
        self._requests.append(
            AskedRequest(
                query_id="",
                step=step,
                prompt=prompt.as_text(PICTURE_MARK),
                pictures=tuple(image.sha256 for image in prompt.images),
                options=options,
                reply=said.text,
                probabilities=said.probabilities if isinstance(said, Scores) else (),
                outcome=said.outcome,
                reason=said.reason,
                prompt_tokens=0 if cached else said.usage.prompt_tokens + said.usage.cached_tokens,
                completion_tokens=0 if cached else said.usage.completion_tokens,
                cached=cached,
                took_s=0.0 if cached else took_s,
            )
        )


def open_asked_model(name: str, clock: Clock, options: ModelOptions) -> AskedModel:
    """Open a run's model, which may take long."""
    described: dict[str, Any]
    if name == RANDOM:
        engine, described = open_random(options.seed, clock), {"seed": options.seed}
    else:
        engine, described = open_engine_by_name(name, clock), Catalogue().manifest(name).model_dump(mode="json")
    identity = sha256_of([described, to_plain(engine.model_info), engine.temperature])
    is_slow = name != RANDOM and engine.model_info.generates
    cache = AnswerCache.of_user() if options.cache and is_slow else AnswerCache()
    return AskedModel(engine, identity, cache=cache, timeout_s=options.timeout_s)


def _step(prompt: Prompt) -> str:
    """Name a request that states no step by its prompt file."""
    return prompt.version.rpartition("-")[0]
