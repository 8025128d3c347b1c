"""The engine in front of a backend: every question gets an outcome in time, whatever the model does."""

import logging
import math
from collections.abc import Callable, Sequence
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
from norm_core.engines.picture_allowance import PictureAllowance
from norm_core.engines.prompt import Image, Prompt, Question
from norm_core.engines.reply import Generation, ModelInfo, Scores, json_schema_of, parse_value
from norm_core.engines.request_context import ENCODE, PARSE, Deadline, RequestContext
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import Clock

S = TypeVar("S", bound=BaseModel)

_log = logging.getLogger(__name__)


class DirectEngine:
    """Ask a backend from one thread at a time (see SharedEngine)."""

    def __init__(self, backend: Backend[Any], clock: Clock) -> None:
        self._backend, self.clock = backend, clock
        self._allowance = PictureAllowance(backend.model_info.model, clock)

    @property
    def model_info(self) -> ModelInfo:
        """The model's identity and limits."""
        return self._backend.model_info

    @property
    def server_status(self) -> ServerStatus | None:
        """Whether the model's server can be reached; None for a model in this process."""
        status: ServerStatus | None = getattr(self._backend, "server_status", None)
        return status

    @property
    def health(self) -> EngineHealth:
        """The problems and counters of the backend and its memory."""
        own: EngineHealth = getattr(self._backend, "health", EngineHealth())
        memory = self._allowance.health
        return EngineHealth(issues=(*own.issues, *memory.issues), counters=(*own.counters, *memory.counters))

    def ask_many(self, prefix: Prompt, questions: Sequence[Question], deadline: Deadline | None = None) -> list[Scores]:
        """Return one answer per question, in order. The prefix is encoded once; the first answer carries its cost.

        Of questions that a backend reads in one pass, the first carries the time, and each its own tokens.
        Where memory runs out, the questions that failed are asked again with fewer pictures or none.
        """
        deadline = deadline or Deadline(self.clock)
        self._allowance.restore()
        asked = dict(enumerate(questions))
        answers: dict[int, Scores] = {}
        retries = 0
        while True:
            shown, fitted = self._allowance.fit(prefix), [*map(self._allowance.fit_question, asked.values())]
            replies, starved = self._ask_each(shown, fitted, deadline, retries)
            answers |= zip(asked, replies, strict=True)
            asked = {place: asked[place] for index, place in enumerate(asked) if index in starved}
            pictured = [part for question in asked.values() for part in (*prefix.parts, *question.parts)]
            if not (asked and self._allowance.reduce(pictured)):
                return [answers[place] for place in range(len(questions))]
            retries += 1

    def generate(
        self,
        prompt: Prompt,
        schema: type[S] | None = None,
        *,
        max_tokens: int = 256,
        seed: int = 0,
        deadline: Deadline | None = None,
    ) -> Generation[S]:
        """Return the model's text; with a schema, UNPARSED unless the text is valid JSON for it."""
        deadline = deadline or Deadline(self.clock)
        self._allowance.restore()
        retries = 0
        while True:
            shown = self._allowance.fit(prompt)
            written, fault = self._write(shown, schema, max_tokens, seed, deadline, retries)
            if not (isinstance(fault, ModelMemoryError) and self._allowance.reduce(prompt.parts)):
                return written
            retries += 1

    def _write(  # noqa: PLR0917
        self, prompt: Prompt, schema: type[S] | None, max_tokens: int, seed: int, deadline: Deadline, retries: int
    ) -> tuple[Generation[S], EngineError | None]:
        call = RequestContext(deadline)
        call.add_usage(retries=retries)
        text, value = "", None

        def write() -> None:
            nonlocal text, value
            call.check()
            self._take_images((), prompt, call)
            if max_tokens < 1:
                raise InvalidRequestError(f"max_tokens is {max_tokens}: ask for at least one token")
            if not self.model_info.generates:
                raise InvalidRequestError(f"{self.model_info.model} scores options and cannot write")
            call.enter_segment(ENCODE)
            plain = json_schema_of(schema) if schema else None
            text = self._backend.generate(prompt, call, schema=plain, max_tokens=max_tokens, seed=seed)
            call.enter_segment(PARSE)
            if is_refusal(text):
                raise RefusedError(f"the model declined: {text:.200}")
            value = parse_value(text, schema) if schema else None
            call.check()

        fault = _run_attempt(write)
        about = _about(call, fault, prompt.version, prompt.digest)
        return Generation(text=text, value=None if fault else value, **about), fault

    def decline(
        self, prefix: Prompt, questions: Sequence[Question], fault: EngineError, deadline: Deadline
    ) -> list[Scores]:
        """Return the answers of `ask_many` without asking the model."""
        return [_score_once(prefix, question, RequestContext(deadline), fault) for question in questions]

    def decline_to_write(self, prompt: Prompt, fault: EngineError, deadline: Deadline) -> Generation[Any]:
        """Return the answer of `generate` without asking the model."""
        return Generation(**_about(RequestContext(deadline), fault, prompt.version, prompt.digest))

    def close(self) -> None:
        """Release the model's memory."""
        self._backend.close()

    def _ask_each(
        self, prefix: Prompt, questions: Sequence[Question], deadline: Deadline, retries: int
    ) -> tuple[list[Scores], set[int]]:
        """Return one answer per question, and the places of those for which memory ran out."""
        call = RequestContext(deadline)
        call.add_usage(retries=retries)
        answers: list[Scores] = []
        starved: set[int] = set()

        def ask_each(call: RequestContext) -> None:
            call.check()
            self._take_images((), prefix, call)
            call.enter_segment(ENCODE)
            with self._backend.encoded(prefix, call) as encoded:
                if expect := getattr(self._backend, "expect", None):
                    expect(encoded, questions)
                for place, question in enumerate(questions):
                    answer, fault = self._ask(encoded, prefix, question, call)
                    answers.append(answer)
                    if isinstance(fault, ModelMemoryError):
                        starved.add(place)
                    call = RequestContext(deadline.from_now())
                    call.add_usage(retries=retries)

        fault = _run_attempt(lambda: ask_each(call))
        if fault and len(answers) < len(questions):
            if isinstance(fault, ModelMemoryError):
                starved |= set(range(len(answers), len(questions)))
            answers.append(_score_once(prefix, questions[len(answers)], call, fault))
            answers += self.decline(prefix, questions[len(answers) :], fault, deadline.from_now())
        return answers, starved

    def _ask(
        self, encoded: Any, prefix: Prompt, question: Question, call: RequestContext
    ) -> tuple[Scores, EngineError | None]:
        probabilities: tuple[float, ...] = ()

        def ask() -> None:
            nonlocal probabilities
            call.check()
            self._check_options(question.options)
            self._take_images(prefix.images, Prompt(version="", parts=question.parts), call)
            call.enter_segment(ENCODE)
            weights = self._backend.score(encoded, question, call) if len(question.options) > 1 else [0.0]
            call.enter_segment(PARSE)
            probabilities = _softmax(weights, len(question.options))
            call.check()

        fault = _run_attempt(ask)
        return _score_once(prefix, question, call, fault, probabilities), fault

    def _take_images(self, before: tuple[Image, ...], prompt: Prompt, call: RequestContext) -> None:
        """Count the prompt's images; raise if they and the images before them exceed the limit."""
        count, most = len(before) + len(prompt.images), self.model_info.max_images
        if most is not None and count > most:
            remedy = "show fewer" if most else "name a model that sees, or show none"
            raise InvalidRequestError(
                f"{count} pictures were given, and {self.model_info.model} takes at most {most}; {remedy}"
            )
        call.add_usage(images=len(prompt.images))

    def _check_options(self, options: tuple[str, ...]) -> None:
        if not options:
            raise InvalidRequestError("there are no options to choose from")
        if len(set(options)) < len(options):
            twice = next(option for option in options if options.count(option) > 1)
            raise InvalidRequestError(f"the option {twice!r:.80} stands {options.count(twice)} times")
        most = self.model_info.max_options
        if most is not None and len(options) > most:
            raise InvalidRequestError(
                f"{len(options)} options were given, and {self.model_info.model} tells {most} apart"
            )


def _run_attempt(step: Callable[[], None]) -> EngineError | None:
    """Return the error of a step, or None. No backend exception ends the process or stays referenced."""
    try:
        step()
    except EngineError as fault:
        return fault.with_traceback(None)
    except MemoryError as error:
        return ModelMemoryError(f"out of memory: {error or 'the model and its prompt need more than there is'}")
    except Exception as error:  # noqa: BLE001  a backend may raise anything, and the next call must still work
        _log.warning("an engine failed", exc_info=True)
        return EngineFailedError(f"{type(error).__name__}: {error}")
    return None


def _about(call: RequestContext, fault: EngineError | None, version: str, digest: str) -> dict[str, Any]:
    """Return what every reply states."""
    return {
        "outcome": fault.outcome if fault else Outcome.ANSWERED,
        "reason": str(fault) if fault else "",
        "usage": call.usage,
        "latency": call.latency(),
        "prompt_version": version,
        "prompt_digest": digest,
    }


def _score_once(
    prefix: Prompt,
    question: Question,
    call: RequestContext,
    fault: EngineError | None,
    probabilities: tuple[float, ...] = (),
) -> Scores:
    about = _about(call, fault, prefix.version, question.digest(prefix))
    return Scores(probabilities=() if fault else probabilities, text=call.text, **about)


def _softmax(weights: Sequence[float], count: int) -> tuple[float, ...]:
    """Return probabilities that sum to one; minus infinity excludes an option, but cannot exclude all."""
    if len(weights) != count or any(math.isnan(w) or w == math.inf for w in weights) or max(weights) == -math.inf:
        raise UnparsedError(f"{count} options got the weights {list(weights)[:8]}")
    highest = max(weights)
    powers = [math.exp(weight - highest) for weight in weights]
    return tuple(power / sum(powers) for power in powers)
