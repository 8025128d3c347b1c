"""Measure what scoring saves: four options over a shared prefix, against a reasoned answer of 150 tokens."""

import statistics
import time
from typing import Any

from pydantic import BaseModel

from benchmarks.engines.askers import ENGINES, arguments, report
from benchmarks.engines.contract_cost import contract_ms
from benchmarks.engines.scene import QUESTIONS, REASONED, window
from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Question
from norm_core.engines.reply import Generation, Scores
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import WallClock

REASONED_TOKENS = 150
COLUMNS = ("engine", "scored_ms", "scored_alone_ms", "written_ms", "tokens", "written_to_scored", "written_to_alone")


def measured(name: str, backend: Any, rounds: int) -> dict[str, Any]:
    """Return medians over rounds that run all variants in turn, after a warm-up round."""
    engine, prefix = Engine(backend, WallClock()), window()
    reasoned = Question(parts=(REASONED,), options=()).after(prefix)
    scored_s, alone_s, written_s, tokens = [], [], [], []
    for number in range(rounds + 1):
        started_s = time.perf_counter()
        answers = engine.ask_many(prefix, QUESTIONS)
        shared_s = (time.perf_counter() - started_s) / len(QUESTIONS)
        started_s = time.perf_counter()
        alone = engine.ask_many(prefix, QUESTIONS[:1])
        one_s = time.perf_counter() - started_s
        started_s = time.perf_counter()
        written: Generation[BaseModel] = engine.generate(reasoned, max_tokens=REASONED_TOKENS)
        spent_s = time.perf_counter() - started_s
        replies: tuple[Scores | Generation[BaseModel], ...] = (*answers, *alone, written)
        assert all(reply.outcome is Outcome.ANSWERED for reply in replies), (answers, written)
        if number:
            scored_s.append(shared_s)
            alone_s.append(one_s)
            # An answer that ended early is extrapolated at its own pace.
            decode_s = sum(part.duration_ns for part in written.latency if part.name == "decode") / 1e9
            written_s.append(spent_s + decode_s * (REASONED_TOKENS / written.usage.completion_tokens - 1))
            tokens.append(written.usage.completion_tokens)
    return {
        "engine": name,
        "scored_ms": round(statistics.median(scored_s) * 1e3, 1),
        "scored_alone_ms": round(statistics.median(alone_s) * 1e3, 1),
        "written_ms": round(statistics.median(written_s) * 1e3, 1),
        "tokens": tokens[0],
        "written_to_scored": round(statistics.median(w / s for w, s in zip(written_s, scored_s, strict=True)), 1),
        "written_to_alone": round(statistics.median(w / s for w, s in zip(written_s, alone_s, strict=True)), 1),
    }


def main() -> None:
    """Print the time of a scored question per engine, against a written answer."""
    told = arguments(__doc__ or "")
    rows = []
    for name in told.engine:
        with ENGINES[name](told.gguf, told.threads) as (backend, note):
            print(f"{name}: {note}")
            rows.append(measured(name, backend, told.rounds))
    report(
        "A question scored with seven others over one prefix, and alone, against a reasoned answer of 150 tokens",
        COLUMNS,
        rows,
        told.json,
    )
    print(f"\nThe contract adds {contract_ms():.3f} ms to a call (median of 1000, a backend that does nothing).")


if __name__ == "__main__":
    main()
