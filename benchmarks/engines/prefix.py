"""Measure what prefix sharing saves: eight questions over a prefix of 600 tokens, against one and eight apart."""

import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.engines.askers import ENGINES, arguments, report
from benchmarks.engines.scene import KINDS, window
from norm_core.engines.engine import Engine
from norm_core.engines.reply import Scores
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import WallClock

COLUMNS = (
    "engine",
    "questions",
    "prefix_tokens",
    "question_tokens",
    "one_s",
    "shared_s",
    "apart_s",
    "shared_to_one",
    "apart_to_one",
    "largest_gap",
)


def timed(ask: Callable[[], list[Scores]]) -> tuple[float, list[Scores]]:
    """Return the seconds of one request, and its answers; an answer that failed ends the benchmark."""
    started_s = time.perf_counter()
    answers = ask()
    spent_s = time.perf_counter() - started_s
    assert all(answer.outcome is Outcome.ANSWERED for answer in answers), answers
    return spent_s, answers


def measured(name: str, backend: Any, kind: str, rounds: int) -> dict[str, Any]:
    """Return medians over rounds that run the three variants in turn, after a warm-up round."""
    engine, prefix, questions = Engine(backend, WallClock()), window(), KINDS[kind]
    times: dict[str, list[float]] = {"one": [], "shared": [], "apart": []}
    gap = 0.0
    for number in range(rounds + 1):
        one_s, _ = timed(lambda: engine.ask_many(prefix, questions[:1]))
        shared_s, shared = timed(lambda: engine.ask_many(prefix, questions))
        # Each question is a whole prompt, without any reuse.
        apart_s, apart = timed(
            lambda: [engine.score(question.after(prefix), question.options) for question in questions]
        )
        for together, alone in zip(shared, apart, strict=True):
            pairs = zip(together.probabilities, alone.probabilities, strict=True)
            gap = max(gap, *(abs(one - other) for one, other in pairs))
        if number:
            for way, spent_s in (("one", one_s), ("shared", shared_s), ("apart", apart_s)):
                times[way].append(spent_s)
    one_s, shared_s, apart_s = (statistics.median(times[way]) for way in ("one", "shared", "apart"))
    shared_ratio, apart_ratio = (
        statistics.median(many / one for many, one in zip(times[way], times["one"], strict=True))
        for way in ("shared", "apart")
    )
    return {
        "engine": name,
        "questions": kind,
        "prefix_tokens": shared[1].usage.cached_tokens,
        "question_tokens": shared[1].usage.prompt_tokens,
        "one_s": round(one_s, 3),
        "shared_s": round(shared_s, 3),
        "apart_s": round(apart_s, 3),
        "shared_to_one": round(shared_ratio, 2),
        "apart_to_one": round(apart_ratio, 2),
        "largest_gap": f"{gap:.1e}",
    }


def main() -> None:
    """Print the time of eight questions over one prefix, per engine and kind of prompt."""
    told = arguments(__doc__ or "", kinds=tuple(KINDS))
    rows = []
    for name in told.engine:
        with ENGINES[name](told.gguf, told.threads) as (backend, note):
            print(f"{name}: {note}")
            rows += [measured(name, backend, kind, told.rounds) for kind in told.kind or KINDS]
    report("Eight questions over one prefix, against one question and against eight apart", COLUMNS, rows, told.json)


if __name__ == "__main__":
    main()
