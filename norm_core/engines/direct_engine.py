"""The engine in front of a backend: every question gets an outcome by its deadline."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel

from norm_core.engines.engine import Backend, EngineHealth, ServerStatus
from norm_core.engines.errors import (
    EngineError,
    EngineFailedError,
    InvalidRequestError,
    ModelMemoryError,
    RefusedError,
    UnparsedError,
)
from norm_core.engines.options import is_refusal
from norm_core.engines.prompt import Image, Prompt, Question
from norm_core.engines.reply import Generation, ModelInfo, Scores, make_json_schema, parse_value
from norm_core.engines.request_context import ENCODE, PARSE, Deadline, RequestContext
from norm_core.records.outcome import Outcome
from norm_core.records.status import Counter
from norm_core.runtime.time import Clock

S = TypeVar("S", bound=BaseModel)

_log = logging.getLogger(__name__)


class DirectEngine:
    """Ask a backend from one thread at a time (see SharedEngine)."""

    def __init__(self, backend: Backend[Any], clock: Clock) -> None:
        self._backend = backend
        self.clock = clock
        self._starved_count = 0

    @property
    def model_info(self) -> ModelInfo:
        """The identity and limits of the model."""
        return self._backend.model_info

    @property
    def server_status(self) -> ServerStatus | None:
        """Whether the server of the model can be reached; None for a model in this process."""
        status: ServerStatus | None = getattr(self._backend, "server_status", None)
        return status

    @property
    def health(self) -> EngineHealth:
        """The problems and counters of the backend, and how often memory ran out."""
        health: EngineHealth = getattr(self._backend, "health", EngineHealth())
        if not self._starved_count:
            return health
        starved = Counter(name="model_out_of_memory", count=self._starved_count)
        return replace(health, counters=(*health.counters, starved))

    def ask_many(self, prefix: Prompt, questions: Sequence[Question], deadline: Deadline | None = None) -> list[Scores]:
        """Return one answer per question, in order. The prefix is encoded once, at the cost of the first answer.

        If a backend reads several questions in one pass, the first answer has the time, and each its own tokens.
        """
        deadline = deadline or Deadline(self.clock)
        call = RequestContext(deadline)
        answers: list[Scores] = []

        def ask_each(call: RequestContext) -> None:
            call.check()
            self._count_images((), prefix, call)
            call.enter_segment(ENCODE)
            with self._backend.encoded(prefix, call) as encoded:
                if expect := getattr(self._backend, "expect", None):
                    expect(encoded, questions)
                for question in questions:
                    answers.append(self._ask(encoded, prefix, question, call))
                    call = RequestContext(deadline.from_now())

        fault = self._catch_error(lambda: ask_each(call))
        if fault and len(answers) < len(questions):
            answers.append(_make_scores(prefix, questions[len(answers)], call, fault))
            answers += self.decline(prefix, questions[len(answers) :], fault, deadline.from_now())
        return answers

    def generate(
        self,
        prompt: Prompt,
        schema: type[S] | None = None,
        *,
        max_tokens: int = 256,
        seed: int = 0,
        deadline: Deadline | None = None,
    ) -> Generation[S]:
        """Return the text of the model; with a schema, UNPARSED unless the text is JSON of that schema."""
        call = RequestContext(deadline or Deadline(self.clock))
        text = ""
        value = None

        def write() -> None:
            nonlocal text, value
            call.check()
            self._count_images((), prompt, call)
            if max_tokens < 1:
                raise InvalidRequestError(f"max_tokens is {max_tokens}: ask for at least one token")
            if not self.model_info.generates:
                raise InvalidRequestError(f"{self.model_info.model} scores options and cannot write")
            call.enter_segment(ENCODE)
            json_schema = make_json_schema(schema) if schema else None
            text = self._backend.generate(prompt, call, schema=json_schema, max_tokens=max_tokens, seed=seed)
            call.enter_segment(PARSE)
            if is_refusal(text):
                raise RefusedError(f"the model declined: {text:.200}")
            value = parse_value(text, schema) if schema else None
            call.check()

        fault = self._catch_error(write)
        common = _make_common_fields(call, fault, prompt.version, prompt.digest)
        return Generation(text=text, value=None if fault else value, **common)

    def decline(
        self, prefix: Prompt, questions: Sequence[Question], fault: EngineError, deadline: Deadline
    ) -> list[Scores]:
        """Return failed answers in the form of `ask_many`, without asking the model."""
        return [_make_scores(prefix, question, RequestContext(deadline), fault) for question in questions]

    def decline_to_write(self, prompt: Prompt, fault: EngineError, deadline: Deadline) -> Generation[Any]:
        """Return a failed answer in the form of `generate`, without asking the model."""
        return Generation(**_make_common_fields(RequestContext(deadline), fault, prompt.version, prompt.digest))

    def close(self) -> None:
        """Release the memory of the model."""
        self._backend.close()

    def _ask(self, encoded: Any, prefix: Prompt, question: Question, call: RequestContext) -> Scores:
        probabilities: tuple[float, ...] = ()

        def ask() -> None:
            nonlocal probabilities
            call.check()
            self._check_options(question.options)
            self._count_images(prefix.images, Prompt(version="", parts=question.parts), call)
            call.enter_segment(ENCODE)
            weights = self._backend.score(encoded, question, call) if len(question.options) > 1 else [0.0]
            call.enter_segment(PARSE)
            probabilities = _to_probabilities(weights, len(question.options))
            call.check()

        fault = self._catch_error(ask)
        return _make_scores(prefix, question, call, fault, probabilities)

    def _catch_error(self, step: Callable[[], None]) -> EngineError | None:
        """Return the error of a step, or None. It has no traceback, which would keep the memory of the model."""
        fault: EngineError | None = None
        try:
            step()
        except EngineError as error:
            fault = error.with_traceback(None)
        except MemoryError as error:
            fault = ModelMemoryError(f"out of memory: {error or 'the model and its prompt do not fit'}")
        except Exception as error:  # noqa: BLE001  a backend may raise anything, and the next call must work
            _log.warning("an engine failed", exc_info=True)
            fault = EngineFailedError(f"{type(error).__name__}: {error}")
        self._starved_count += isinstance(fault, ModelMemoryError)
        return fault

    def _count_images(self, before: tuple[Image, ...], prompt: Prompt, call: RequestContext) -> None:
        """Count the images of the prompt. Raises InvalidRequestError if they and those before exceed the limit."""
        count = len(before) + len(prompt.images)
        max_count = self.model_info.max_images
        if max_count is not None and count > max_count:
            remedy = "show fewer" if max_count else "name a model that sees, or show none"
            raise InvalidRequestError(
                f"{count} pictures were given, and {self.model_info.model} takes at most {max_count}; {remedy}"
            )
        call.add_usage(images=len(prompt.images))

    def _check_options(self, options: tuple[str, ...]) -> None:
        """Raise InvalidRequestError if there are no options, too many, or equal ones."""
        if not options:
            raise InvalidRequestError("there are no options to choose from")
        if len(set(options)) < len(options):
            repeated = next(option for option in options if options.count(option) > 1)
            raise InvalidRequestError(f"the option {repeated!r:.80} appears {options.count(repeated)} times")
        max_count = self.model_info.max_options
        if max_count is not None and len(options) > max_count:
            raise InvalidRequestError(
                f"{len(options)} options were given, and {self.model_info.model} takes at most {max_count}; give fewer"
            )


def _make_common_fields(call: RequestContext, fault: EngineError | None, version: str, digest: str) -> dict[str, Any]:
    """Return the fields that all replies share."""
    return {
        "outcome": fault.outcome if fault else Outcome.ANSWERED,
        "reason": str(fault) if fault else "",
        "usage": call.usage,
        "latency": call.latency(),
        "prompt_version": version,
        "prompt_digest": digest,
    }


def _make_scores(
    prefix: Prompt,
    question: Question,
    call: RequestContext,
    fault: EngineError | None,
    probabilities: tuple[float, ...] = (),
) -> Scores:
    common = _make_common_fields(call, fault, prefix.version, question.digest(prefix))
    return Scores(probabilities=() if fault else probabilities, text=call.text, **common)


def _to_probabilities(weights: Sequence[float], count: int) -> tuple[float, ...]:
    """Return probabilities that sum to one; a weight of minus infinity excludes an option.

    Raises UnparsedError if a weight is missing or not a number, or if all options are excluded.
    """
    if len(weights) != count or any(math.isnan(w) or w == math.inf for w in weights) or max(weights) == -math.inf:
        raise UnparsedError(f"{count} options got the weights {list(weights)[:8]}")
    max_weight = max(weights)
    powers = [math.exp(weight - max_weight) for weight in weights]
    return tuple(power / sum(powers) for power in powers)
