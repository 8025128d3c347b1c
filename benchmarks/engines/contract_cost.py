"""Measure the overhead of the engine interface per call: an idle backend, with images and a queue."""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.engines.scene import QUESTIONS, window
from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Image, Prompt, Question
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import RequestContext
from norm_core.engines.shared_engine import SharedEngine
from norm_core.runtime.time import WallClock

PICTURES = 15
PICTURE_BYTES = 20_000


class Idle:
    """A backend that answers at once."""

    model_info = ModelInfo(model="idle", engine="none")

    @contextmanager
    def encoded(self, prefix: Prompt, call: RequestContext) -> Iterator[Prompt]:
        """Hand the prompt back as its own prefix."""
        yield prefix

    def score(self, prefix: Prompt, question: Question, call: RequestContext) -> Sequence[float]:
        """Give all options the same weight."""
        return [0.0] * len(question.options)

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Write nothing."""
        return ""

    def close(self) -> None:
        """Do nothing: nothing was loaded."""


def contract_ms(calls: int = 1000, *, shared: bool = False, pictures: int = 0) -> float:
    """Return the median time, in ms, of a call with one question, over the clinic's window and images."""
    engine: Any = Engine(Idle(), WallClock())
    if shared:
        engine = SharedEngine(engine)
    jpegs = tuple(Image(jpeg=bytes([number]) * PICTURE_BYTES) for number in range(pictures))
    prefix = Prompt(version="bench-1", parts=(*jpegs, *window().parts))
    spent_s = []
    for _ in range(calls):
        started_s = time.perf_counter()
        engine.ask_many(prefix, QUESTIONS[:1])
        spent_s.append(time.perf_counter() - started_s)
    engine.close()
    return statistics.median(spent_s) * 1e3


def main() -> None:
    """Print the engine contract's cost per call, with and without a queue and pictures."""
    for shared in (False, True):
        for pictures in (0, PICTURES):
            queue = "with a queue" if shared else "without a queue"
            print(f"{contract_ms(shared=shared, pictures=pictures):.3f} ms a call {queue}, {pictures} pictures")


if __name__ == "__main__":
    main()
