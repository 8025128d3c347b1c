"""A process that asks a model about large pictures with little address space left, as `python -m` from a test."""

import json
import resource
import sys
from pathlib import Path

from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Image, Prompt, Text
from norm_core.engines.transformers.backend import TransformersBackend
from norm_core.runtime.time import NS_PER_S, ReplayClock
from tests.norm_core.engines.contract import OPTIONS, picture


def address_space_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def main(folder: str, room_mb: str, *sides_px: str) -> None:
    clock = ReplayClock(0)
    engine = Engine(TransformersBackend(Path(folder), threads=1), clock)
    said = Text(text="What now?")
    small = Prompt(version="small-1", parts=(picture(), said))
    engine.score(small, OPTIONS)  # warms up
    pictures: tuple[Image, ...] = tuple(picture(int(side), int(side)) for side in sides_px)
    prompt = Prompt(version="large-1", parts=(*pictures, said))
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (address_space_bytes() + int(room_mb) * 1_000_000, hard))
    short = report(engine, prompt)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    for _ in range(3):  # memory is back; the pause passes
        clock.advance_to(clock.now_ns() + 1000 * NS_PER_S)
        engine.score(small, OPTIONS)
    print(json.dumps([short, report(engine, prompt)]))


def report(engine: Engine, prompt: Prompt) -> dict[str, object]:
    scores = engine.score(prompt, OPTIONS)
    return {
        "outcome": scores.outcome,
        "reason": scores.reason,
        "images": scores.usage.images,
        "tokens": scores.usage.prompt_tokens,
        "retries": scores.usage.retries,
        "issues": engine.health.issues,
        "counters": {counter.name: counter.count for counter in engine.health.counters},
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
