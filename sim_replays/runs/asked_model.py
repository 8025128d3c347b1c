"""A model that a run asks: every request is noted, answers are cached across runs, and each question has a deadline."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.engine import Engine
from norm_core.engines.engine_factory import open_engine
from norm_core.engines.errors import PastDeadlineError
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import Generation, ModelInfo, Scores, json_schema_of, parse_value
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EngineKind
from norm_core.records.json_codec import from_json, sha256_of, to_json, to_plain
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.config import Config
from norm_core.runtime.data_files import make_cache_folder
from norm_core.runtime.time import Clock, WallClock
from sim_replays.items.target import SuiteError
from sim_replays.runs.random_model import RANDOM, RandomBackend

# Of about 400 bytes each.
_MAX_REPLIES = 1_000_000
_CACHED = {Outcome.ANSWERED, Outcome.UNPARSED}


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
        """Open the file; without one, the replies last as long as this object. Raises SuiteError if it is unusable."""
        self._name, self._lock = path or "memory", Lock()
        with self._usable():
            if path:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                path.touch(mode=0o600)
            self._file = sqlite3.connect(path or "", timeout=60.0, check_same_thread=False, isolation_level=None)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=NORMAL")
            self._file.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT)")
            oldest = "SELECT max(rowid) FROM replies"
            self._file.execute(f"DELETE FROM replies WHERE rowid <= ({oldest}) - ?", (_MAX_REPLIES,))

    @classmethod
    def of_user(cls) -> "AnswerCache":
        """Open the cache that all runs of this user share."""
        return cls(make_cache_folder("answers") / "replies-1.sqlite")

    def get(self, key: str) -> CachedReply | None:
        """Return a reply, or None."""
        with self._usable():
            row = self._file.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return from_json(CachedReply, row[0]) if row else None

    def put(self, key: str, said: Scores | Generation[Any]) -> None:
        """Keep what a model said, unless it gave no reply."""
        if said.outcome in _CACHED:
            probabilities = said.probabilities if isinstance(said, Scores) else ()
            reply = CachedReply(outcome=said.outcome, probabilities=probabilities, text=said.text, reason=said.reason)
            with self._usable():
                self._file.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, to_json(reply)))

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except (OSError, sqlite3.Error) as error:
            raise SuiteError(f"{self._name}: the cache of answers is unusable: {error}; add --no-cache") from error


S = TypeVar("S", bound=BaseModel)

TIMEOUT_S = 600.0
PICTURE_MARK = "[picture]"


class ModelOptions(Config):
    """How a run asks its model."""

    seed: int = Field(default=0, description="seed of the model that answers at random")
    timeout_s: float = Field(default=TIMEOUT_S, gt=0, description="the time for one question with all its requests")
    cache: bool = Field(default=True, description="whether answers of earlier runs are used")
    concurrency: int = Field(default=1, ge=1, le=256, description="episodes side by side, of a model behind a server")


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

    @property
    def is_read_from_text(self) -> bool:
        """Whether an option was read from the reply's words."""
        return bool(self.options and self.reply)

    @property
    def is_silent(self) -> bool:
        """Whether the model was asked and no token was counted; of one option alone it is not asked."""
        is_asked = self.outcome is Outcome.ANSWERED and not self.cached and len(self.options) != 1
        return is_asked and not self.prompt_tokens


class TimeLimit(Deadline):
    """A caller's deadline with a limit in real time, up to which a busy server is waited for.

    Latencies stay in the time of the caller's clock, so that a replay's answers are equal each time.
    """

    is_patient = True

    def __init__(self, asked: Deadline, until_s: float, now_s: Callable[[], float], cancelled: Event) -> None:
        super().__init__(asked.clock, asked.deadline_ns, cancelled)
        self._asked, self._until_s, self._now_s = asked, until_s, now_s

    def from_now(self) -> "TimeLimit":
        """Return the same limits for a further question."""
        return TimeLimit(self._asked.from_now(), self._until_s, self._now_s, self._cancelled)

    def remaining_s(self) -> float:
        """Return the time left by both limits."""
        left_s, asked_s = max(0.0, self._until_s - self._now_s()), self._asked.remaining_s()
        return left_s if asked_s is None else min(left_s, asked_s)

    def check(self) -> None:
        """Raise PastDeadlineError if either has passed, or the run was ended."""
        super().check()
        self._asked.check()
        if self._now_s() >= self._until_s:
            raise PastDeadlineError("the question's time is over (--timeout-s)")


class AskedModel:
    """Ask a model, one question of a run at a time. `identity` is the digest of all that decides its answers."""

    def __init__(
        self,
        model: Engine,
        identity: str = "",
        *,
        cache: AnswerCache | None = None,
        timeout_s: float = TIMEOUT_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cancelled = Event()
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

    def cancel(self) -> None:
        """End the request in progress, from any thread; further requests time out."""
        self._cancelled.set()

    def ask_many(self, prefix: Prompt, questions: Sequence[Question], deadline: Deadline | None = None) -> list[Scores]:
        """Score the options of each question; the model is asked only what the cache does not hold."""
        limit = self._limit(deadline)
        digests = [question.digest(prefix) for question in questions]
        keys = [sha256_of([self._identity, digest]) for digest in digests]
        cached = {place: reply for place, key in enumerate(keys) if (reply := self._cache.get(key))}
        open_places = [place for place in range(len(questions)) if place not in cached]
        began_s = self._now_s()
        asked = self._model.ask_many(prefix, [questions[place] for place in open_places], limit) if open_places else []
        took_s = (self._now_s() - began_s) / max(len(asked), 1)
        answers = dict(zip(open_places, asked, strict=True))
        for place, scores in answers.items():
            if scores.prompt_digest == digests[place]:  # not with fewer pictures, for want of memory
                self._cache.put(keys[place], scores)
        for place, reply in cached.items():
            fields = _fields_of(reply, limit, prefix.version, digests[place])
            answers[place] = Scores(probabilities=reply.probabilities, **fields)
        for place, question in enumerate(questions):
            step = question.step or _step(prefix)
            self._note(answers[place], question.after(prefix), step, question.options, place in cached, took_s)
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
        limit, form = self._limit(deadline), json_schema_of(schema) if schema else None
        key = sha256_of([self._identity, prompt.digest, form, max_tokens, seed])
        reply, began_s = self._cache.get(key), self._now_s()
        if reply:
            is_valid = schema is not None and reply.outcome is Outcome.ANSWERED
            value = parse_value(reply.text, schema) if is_valid and schema else None
            fields = _fields_of(reply, limit, prompt.version, prompt.digest)
            written: Generation[S] = Generation(value=value, **fields)
        else:
            written = self._model.generate(prompt, schema, max_tokens=max_tokens, seed=seed, deadline=limit)
            if written.prompt_digest == prompt.digest:
                self._cache.put(key, written)
        self._note(written, prompt, _step(prompt), (), reply is not None, self._now_s() - began_s)
        return written

    def _limit(self, deadline: Deadline | None) -> TimeLimit:
        if self._until_s is None:
            self._until_s = self._now_s() + self._timeout_s
        return TimeLimit(deadline or Deadline(WallClock()), self._until_s, self._now_s, self._cancelled)

    def _note(  # noqa: PLR0917
        self,
        answer: Scores | Generation[S],
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
                reply=answer.text,
                probabilities=answer.probabilities if isinstance(answer, Scores) else (),
                outcome=answer.outcome,
                reason=answer.reason,
                prompt_tokens=0 if cached else answer.usage.prompt_tokens + answer.usage.cached_tokens,
                completion_tokens=0 if cached else answer.usage.completion_tokens,
                cached=cached,
                took_s=0.0 if cached else took_s,
            )
        )


def open_asked_models(name: str, clock: Clock, options: ModelOptions) -> list[AskedModel]:
    """Open a run's model, which may take long, and return as many faces of it as episodes are asked side by side."""
    engine, identity = _open(name, clock, options)
    if options.concurrency > 1 and engine.model_info.engine != EngineKind.OPENAI:
        raise SuiteError(f"--concurrency: {name} runs in this process and answers one request at a time; leave it out")
    is_slow = name != RANDOM and engine.model_info.generates
    cache = AnswerCache.of_user() if options.cache and is_slow else AnswerCache()
    return [AskedModel(engine, identity, cache=cache, timeout_s=options.timeout_s) for _ in range(options.concurrency)]


def _open(name: str, clock: Clock, options: ModelOptions) -> tuple[DirectEngine, str]:
    """Return the engine, and the digest of all that decides its answers."""
    if name == RANDOM:
        engine, described = DirectEngine(RandomBackend(options.seed), clock), {"seed": options.seed}
    else:
        manifest = Catalogue().manifest(name)
        if manifest.engine is EngineKind.OPENAI:
            manifest = manifest.model_copy(update={"settings": {"answers": "auto", **manifest.settings}})
        engine = open_engine(manifest, clock)
        described = manifest.model_dump(mode="json")
    # The number keeps the keys of earlier answers.
    return engine, sha256_of([described, to_plain(engine.model_info), 1.0])


def _fields_of(reply: CachedReply, limit: TimeLimit, version: str, digest: str) -> dict[str, Any]:
    return {
        "outcome": reply.outcome,
        "text": reply.text,
        "reason": reply.reason,
        "latency": RequestContext(limit.from_now()).latency(),
        "prompt_version": version,
        "prompt_digest": digest,
    }


def _step(prompt: Prompt) -> str:
    """Name a request that states no step by its prompt file."""
    return prompt.version.rpartition("-")[0]
