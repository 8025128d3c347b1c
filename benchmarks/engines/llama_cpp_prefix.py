"""What sharing a prefix and scoring options save in llama.cpp, on the GGUF file named; all in one run.

python benchmarks/engines/llama_cpp_prefix.py SmolLM2-135M-Instruct.Q4_1.gguf
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from norm_core.engines.engine import Engine
from norm_core.engines.llama_cpp_backend import LlamaCppBackend
from norm_core.engines.prompt import Prompt, Question, Text
from norm_core.engines.reply import Scores
from norm_core.outcome import Outcome
from norm_core.time import WallClock

PREFIX_TOKENS, QUESTION_COUNT, WRITTEN_TOKENS = 600, 8, 150
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
    """The same words each time; another version is another prompt, which an engine has to read anew."""
    return Prompt(version=str(version), parts=(Text(text=SENTENCE * sentences),))


def timed(act: Callable[[], list[Scores]]) -> tuple[float, list[Scores]]:
    started = time.perf_counter()
    answers = act()
    took_s = time.perf_counter() - started
    assert all(scores.outcome is Outcome.ANSWERED for scores in answers), answers
    return took_s, answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    backend = LlamaCppBackend(asked.model, context_tokens=2048, threads=asked.threads, batch_tokens=asked.batch_tokens)
    engine = Engine(backend, WallClock())
    per_sentence = engine.score(prefix(-1, 40), OPTIONS).usage.prompt_tokens // 40
    sentences = -(-PREFIX_TOKENS // per_sentence)
    one_s, shared_s, naive_s, scored_s, written_s = [], [], [], [], []
    furthest, version = 0.0, 0
    for _ in range(asked.rounds):
        version += 1
        took_s, _ = timed(lambda: engine.ask_many(prefix(version, sentences), QUESTIONS[:1]))  # noqa: B023
        one_s.append(took_s)
        version += 1
        took_s, together = timed(lambda: engine.ask_many(prefix(version, sentences), QUESTIONS))  # noqa: B023
        shared_s.append(took_s)
        alone: list[Scores] = []
        took_s = 0.0
        for question in QUESTIONS:
            version += 1
            each_s, answers = timed(lambda: engine.ask_many(prefix(version, sentences), [question]))  # noqa: B023
            took_s, alone = took_s + each_s, alone + answers
        naive_s.append(took_s)
        for shared, unshared in zip(together, alone, strict=True):
            pairs = zip(shared.probabilities, unshared.probabilities, strict=True)
            furthest = max(furthest, *(abs(one - other) for one, other in pairs))
        window = prefix(version, sentences)
        took_s, _ = timed(lambda: engine.ask_many(window, QUESTIONS[:1]))  # noqa: B023
        scored_s.append(took_s)
        started = time.perf_counter()
        written = engine.generate(window, max_tokens=WRITTEN_TOKENS)
        # A model that stops early is charged for what it would have written.
        written_s.append((time.perf_counter() - started) * WRITTEN_TOKENS / written.usage.completion_tokens)
    usage = together[0].usage
    print(f"{asked.model.name}, {asked.threads} thread(s), batches of {asked.batch_tokens}, {asked.rounds} rounds")
    print(f"first question {usage.prompt_tokens} tokens with its prefix of {together[1].usage.cached_tokens}")
    one, shared, naive, scored, written = map(statistics.median, (one_s, shared_s, naive_s, scored_s, written_s))
    print(f"one question            {one:8.3f} s")
    print(f"{QUESTION_COUNT} sharing the prefix    {shared:8.3f} s   {shared / one:5.2f} x one question")
    print(f"{QUESTION_COUNT} naively               {naive:8.3f} s   {naive / one:5.2f} x one question")
    print(f"scores differ by at most {furthest:.1e}")
    print(f"options scored          {scored:8.3f} s   the prefix being held")
    print(f"{WRITTEN_TOKENS} tokens written      {written:8.3f} s   {written / scored:5.1f} x as long")


if __name__ == "__main__":
    main()
