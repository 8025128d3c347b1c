"""What sharing a prefix saves: eight questions over one of 600 tokens, against one question and eight apart."""

import statistics
import time
from collections.abc import Callable
from typing import Any

from askers import ENGINES, arguments, report
from scene import OPTIONS, QUESTIONS, window

from norm_core.engines.engine import Engine
from norm_core.engines.reply import Scores
from norm_core.outcome import Outcome
from norm_core.time import WallClock

COLUMNS = ("engine", "prefix_tokens", "one_s", "shared_s", "apart_s", "shared_to_one", "apart_to_one", "largest_gap")


def timed(ask: Callable[[], list[Scores]]) -> tuple[float, list[Scores]]:
    started_s = time.perf_counter()
    answers = ask()
    spent_s = time.perf_counter() - started_s
    assert all(answer.outcome is Outcome.ANSWERED for answer in answers), answers
    return spent_s, answers


def measured(name: str, backend: Any, rounds: int) -> dict[str, Any]:
    """Medians over rounds in which the three stand side by side, after one that is not counted."""
    engine, prefix = Engine(backend, WallClock()), window()
    times: dict[str, list[float]] = {"one": [], "shared": [], "apart": []}
    gap = 0.0
    for number in range(rounds + 1):
        one_s, _ = timed(lambda: engine.ask_many(prefix, QUESTIONS[:1]))
        shared_s, shared = timed(lambda: engine.ask_many(prefix, QUESTIONS))
        # A question as a whole prompt: nothing is kept for the next, and nothing was for it.
        apart_s, apart = timed(lambda: [engine.score(question.after(prefix), OPTIONS) for question in QUESTIONS])
        for together, alone in zip(shared, apart, strict=True):
            pairs = zip(together.probabilities, alone.probabilities, strict=True)
            gap = max(gap, *(abs(one - other) for one, other in pairs))
        if number:
            for kind, spent_s in (("one", one_s), ("shared", shared_s), ("apart", apart_s)):
                times[kind].append(spent_s)
    one_s, shared_s, apart_s = (statistics.median(times[kind]) for kind in ("one", "shared", "apart"))
    ratios = (statistics.median(a / b for a, b in zip(times[kind], times["one"], strict=True)) for kind in ("shared", "apart"))
    return {
        "engine": name,
        "prefix_tokens": shared[1].usage.cached_tokens,
        "one_s": round(one_s, 3),
        "shared_s": round(shared_s, 3),
        "apart_s": round(apart_s, 3),
        **dict(zip(("shared_to_one", "apart_to_one"), (round(ratio, 2) for ratio in ratios), strict=True)),
        "largest_gap": f"{gap:.1e}",
    }


def main() -> None:
    told = arguments(__doc__ or "")
    rows = []
    for name in told.engine:
        with ENGINES[name](told.gguf, told.threads) as (backend, note):
            print(f"{name}: {note}")
            rows.append(measured(name, backend, told.rounds))
    report("Eight questions over one prefix, against one question and against eight apart", COLUMNS, rows, told.json)


if __name__ == "__main__":
    main()
