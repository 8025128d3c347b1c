"""What the contract itself costs a call: an engine over a backend that answers at once, alone and shared.

python benchmarks/engines/contract.py
"""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from norm_core.engines.call import Call, Limit
from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Image, Prompt, Question, Quoted, Text
from norm_core.engines.reply import Card
from norm_core.engines.shared_engine import SharedEngine
from norm_core.time import NS_PER_S, WallClock

CALLS, IMAGE_COUNT, IMAGE_BYTES = 500, 15, 30_000


class Instant:
    """Answers without a model."""

    card = Card(model="instant", engine="none")

    @contextmanager
    def encoded(self, prefix: Prompt, call: Call) -> Iterator[Prompt]:
        yield prefix

    def score(self, prefix: Prompt, question: Question, call: Call) -> Sequence[float]:
        return [0.0] * len(question.options)

    def generate(self, prompt: Prompt, call: Call, *, schema: dict[str, Any] | None, max_tokens: int, seed: int) -> str:
        return ""

    def close(self) -> None:
        pass


def ms_per_call(engine: Engine | SharedEngine, prompt: Prompt) -> tuple[float, float]:
    """The median and the 99th percentile."""
    clock, took_ms = WallClock(), []
    for _ in range(CALLS):
        started = time.perf_counter()
        engine.score(prompt, ("Greet.", "Wait.", "Leave."), Limit(clock, clock.now_ns() + NS_PER_S))
        took_ms.append((time.perf_counter() - started) * 1000)
    return statistics.median(took_ms), sorted(took_ms)[CALLS * 99 // 100]


def main() -> None:
    words = (
        Text(text="What should the robot do? " * 20),
        Quoted(text="Hello, could you help me? " * 60, label="guest"),
    )
    tiles = tuple(Image(jpeg=bytes([nth]) * IMAGE_BYTES) for nth in range(IMAGE_COUNT))
    alone, shared = Engine(Instant(), WallClock()), SharedEngine(Engine(Instant(), WallClock()))
    for name, prompt in {
        "words alone": Prompt(version="1", parts=words),
        f"{IMAGE_COUNT} tiles of {IMAGE_BYTES // 1000} kB": Prompt(version="1", parts=(*tiles, *words)),
    }.items():
        for kind, engine in (("engine", alone), ("shared engine", shared)):
            median, high = ms_per_call(engine, prompt)
            print(f"{name:20} {kind:14} {median:6.3f} ms a call, 99th percentile {high:6.3f} ms")
    shared.close(timeout_s=5)


if __name__ == "__main__":
    main()
