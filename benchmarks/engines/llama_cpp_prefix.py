"""Measure what prefix sharing and option scoring save in llama.cpp, on the named GGUF file, in one run.

python benchmarks/engines/llama_cpp_prefix.py SmolLM2-135M-Instruct.Q4_1.gguf
"""

import argparse
import itertools
import statistics
import time
from pathlib import Path

from pydantic import BaseModel

from norm_core.engines.engine import Engine
from norm_core.engines.llama_cpp.backend import LlamaCppBackend
from norm_core.engines.prompt import Prompt, Question, Text
from norm_core.engines.reply import Generation, Scores
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import WallClock

PREFIX_TOKENS, WRITTEN_TOKENS = 600, 150
SENTENCE = "A guest has come in and waits at the desk while the robot talks to somebody else. "
OPTIONS = ("Yes.", "No.")
ASKED = (
    "Is the robot rude?",
    "Does the guest wait?",
    "Is somebody hurt?",
    "Should the robot greet?",
    "Should it apologise?",
    "Is it late?",
    "Is the guest angry?",
    "Is anybody else there?",
)
QUESTIONS = [Question(parts=(Text(text=text),), options=OPTIONS) for text in ASKED]


def prefix(version: int, sentences: int) -> Prompt:
    """Make a prompt. Equal versions give equal words; a new version must be read anew by the engine."""
    return Prompt(version=str(version), parts=(Text(text=SENTENCE * sentences),))


def timed(engine: Engine, window: Prompt, questions: list[Question]) -> tuple[float, list[Scores]]:
    """Return the seconds that all questions over one window took, and their answers."""
    started = time.perf_counter()
    answers = engine.ask_many(window, questions)
    took_s = time.perf_counter() - started
    assert all(scores.outcome is Outcome.ANSWERED for scores in answers), answers
    return took_s, answers


def sharing(engine: Engine, sentences: int, rounds: int) -> None:
    """Time one question, questions with a shared prefix, and questions with separate prefixes."""
    one_s, shared_s, naive_s = [], [], []
    furthest, versions = 0.0, itertools.count()
    for _ in range(rounds):
        one_s.append(timed(engine, prefix(next(versions), sentences), QUESTIONS[:1])[0])
        took_s, together = timed(engine, prefix(next(versions), sentences), QUESTIONS)
        shared_s.append(took_s)
        each = [timed(engine, prefix(next(versions), sentences), [question]) for question in QUESTIONS]
        naive_s.append(sum(took_s for took_s, _ in each))
        for shared, (_, (alone,)) in zip(together, each, strict=True):
            pairs = zip(shared.probabilities, alone.probabilities, strict=True)
            furthest = max(furthest, *(abs(one - other) for one, other in pairs))
    first, second = (scores.usage for scores in together[:2])
    print(f"first question {first.prompt_tokens} tokens with its prefix of {second.cached_tokens}; {rounds} round(s)")
    one, shared_by_all, naive = map(statistics.median, (one_s, shared_s, naive_s))
    print(f"one question          {one:8.3f} s")
    print(f"{len(QUESTIONS)} sharing the prefix  {shared_by_all:8.3f} s  {shared_by_all / one:6.2f} x one question")
    print(f"{len(QUESTIONS)} naively             {naive:8.3f} s  {naive / one:6.2f} x one question")
    print(f"scores differ by at most {furthest:.1e}")


def scoring(engine: Engine, sentences: int, rounds: int) -> None:
    """Time scored options and a written answer, both after a cached prefix."""
    window = prefix(-5, sentences)
    timed(engine, window, QUESTIONS[:1])
    scored_s, written_s = [], []
    for _ in range(rounds):
        scored_s.append(timed(engine, window, QUESTIONS[:1])[0])
        started = time.perf_counter()
        written: Generation[BaseModel] = engine.generate(window, max_tokens=WRITTEN_TOKENS)
        # A model that stops early is charged for its missing tokens.
        written_s.append((time.perf_counter() - started) * WRITTEN_TOKENS / written.usage.completion_tokens)
    scored, wrote = statistics.median(scored_s), statistics.median(written_s)
    print(f"options scored        {scored:8.3f} s  the prefix being held; {rounds} round(s)")
    print(f"{WRITTEN_TOKENS} tokens written    {wrote:8.3f} s  {wrote / scored:6.1f} x as long")


def main() -> None:
    """Print what a shared prefix saves, and what option scoring saves against writing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", choices=("sharing", "scoring", "both"), default="both")
    asked = parser.parse_args()
    backend = LlamaCppBackend(asked.model, context_tokens=2048, threads=asked.threads, batch_tokens=asked.batch_tokens)
    engine = Engine(backend, WallClock())
    few, more = (engine.score(prefix(-count, count), OPTIONS).usage.prompt_tokens for count in (1, 3))
    per_sentence = (more - few) // 2
    sentences = -(-PREFIX_TOKENS // per_sentence)
    print(f"{asked.model.name}, {asked.threads} thread(s), batches of {asked.batch_tokens}")
    if asked.part != "scoring":
        sharing(engine, sentences, asked.rounds)
    if asked.part != "sharing":
        scoring(engine, sentences, asked.rounds)


if __name__ == "__main__":
    main()
