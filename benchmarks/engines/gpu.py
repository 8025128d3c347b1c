"""Measure vision-language models of true sizes with random weights on a GPU: speed, memory, and what is saved."""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.engines.gpu_checkpoints import SIZES, write_checkpoint
from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Image, Part, Prompt, Question, Quoted, Text
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import WallClock

TILES = 15
TILE_PX = (448, 336)
TOKENS = 150
COLUMNS = (
    "weights",
    "first_answer_s",
    "window_s",
    "windows_per_s",
    "eight_to_one",
    "anew_to_kept",
    "joint_to_kept",
    "written_to_scored",
    "load_mb",
    "peak_mb",
)


# A conversation of about 600 tokens, and eight questions about it.
_TURNS = (
    ("visitor", "Good morning! I have an appointment with Doctor Meyer at ten, but I am afraid that I am early."),
    ("robot", "Good morning, and welcome. May I have your name, please? Doctor Meyer is still with another patient."),
    ("visitor", "Of course, it is Anna Lindqvist. Could you tell me where I may wait, and is there some water?"),
    ("child", "Mama, look, the robot is talking! Can it dance? Ask it whether it can dance, please, please!"),
    ("visitor", "Not now, dear, we are speaking. I am sorry, she is so excited, she has never seen one of you before."),
    ("robot", "That is quite all right. The waiting room is the second door on the left, and water stands beside it."),
)  # fmt: skip
_ASKED = ("do next?", "not do now?", "say?", "fetch?", "leave until later?", "do for the child?", "show?", "have done?")
_DEEDS = ("Show the way to the waiting room.", "Dance in the hall.", "Offer a glass of water.", "Ask the nurse to go.")
QUESTIONS = tuple(Question(parts=(Text(text=f"What should the robot {what}"),), options=_DEEDS) for what in _ASKED)
REASONED = Text(text="What should the robot do next? Reason step by step about each option, then name one.")


def talk(turns: int = 13) -> tuple[Part, ...]:
    """Make the conversation, the last turns of which repeat the first."""
    said: list[Part] = [Text(text="A robot stands at the reception of a clinic. This was said in the last minute:")]
    for number in range(turns):
        speaker, words = _TURNS[number % len(_TURNS)]
        said.append(Quoted(text=words, label=f"{speaker}, second {5 * number}"))
    return tuple(said)


def frames(size_px: tuple[int, int]) -> Iterator[Image]:
    """Make pictures without end, each different from all others."""
    random = np.random.default_rng(0)
    while True:
        pixels = random.integers(0, 255, (size_px[1] // 16, size_px[0] // 16, 3), np.uint8)
        scaled = cv2.resize(pixels, size_px, interpolation=cv2.INTER_CUBIC)
        yield Image(jpeg=cv2.imencode(".jpg", scaled)[1].tobytes())


class Window:
    """The robot's last pictures: at each `next`, one is new."""

    def __init__(self, pictures: Iterator[Image], tiles: int) -> None:
        self._pictures = pictures
        self._tiles = deque((next(pictures) for _ in range(tiles)), maxlen=tiles)

    def next(self, new: int = 1) -> Prompt:
        """Return the prompt of the next window, in which `new` pictures were not seen before."""
        self._tiles.extend(next(self._pictures) for _ in range(new))
        return Prompt(version="gpu-1", parts=(*self._tiles, *talk()))


def timed(device: str, ask: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call and its answers, on a CPU those of this process; a failed answer ends it."""
    now_s = time.process_time if device == "cpu" else time.perf_counter
    started_s = now_s()
    answers = ask()
    spent_s = now_s() - started_s
    for answer in answers if isinstance(answers, list) else [answers]:
        assert answer.outcome is Outcome.ANSWERED, answer
    return spent_s, answers


def measured(folder: Path, weights: str, device: str, rounds: int, tiles: int) -> dict[str, Any]:
    """Measure one precision: first with embeddings kept, then the joint pass over the same windows."""
    spent: dict[str, list[float]] = {name: [] for name in ("one", "eight", "anew", "joint", "written")}
    with loaded(folder, weights, device, picture_cache_mb=1000) as (engine, load_mb, peak_mb):
        shown = Window(frames(TILE_PX), tiles)
        for number in range(rounds + 1):
            times: dict[str, float] = {}
            times["one"], _ = timed(device, partial(engine.ask_many, shown.next(), QUESTIONS[:1]))
            prompt = shown.next()
            times["eight"], answers = timed(device, partial(engine.ask_many, prompt, QUESTIONS))
            times["written"] = written_s(device, engine, Prompt(version="gpu-1", parts=(*prompt.parts, REASONED)))
            times["anew"], _ = timed(device, partial(engine.ask_many, shown.next(tiles), QUESTIONS))
            for name, spent_s in times.items() if number else ():  # the first round warms up
                spent[name].append(spent_s)
        tokens, kept_peak_mb = answers[1].usage.cached_tokens, peak_mb()
    with loaded(folder, weights, device, picture_cache_mb=0) as (engine, _, _):
        shown = Window(frames(TILE_PX), tiles)
        for number in range(rounds + 1):
            spent_s, _ = timed(device, partial(engine.ask_many, shown.next(), QUESTIONS))
            spent["joint"] += [spent_s] if number else []
    return row(weights, spent) | {"load_mb": load_mb, "peak_mb": kept_peak_mb, "prompt_tokens": tokens}


def written_s(device: str, engine: Engine, prompt: Prompt) -> float:
    """Return the seconds of a written answer of TOKENS tokens; one that ends early is extrapolated."""
    spent_s, written = timed(device, partial(engine.generate, prompt, max_tokens=TOKENS))
    decode_s = sum(part.duration_ns for part in written.latency if part.name == "decode") / 1e9
    return float(spent_s + decode_s * (TOKENS / written.usage.completion_tokens - 1))


def row(weights: str, spent: dict[str, list[float]]) -> dict[str, Any]:
    """Return the medians, and the medians of the ratios within a round."""
    median = {name: statistics.median(values) for name, values in spent.items()}

    def ratio(over: str, under: str) -> float:
        return round(statistics.median(a / b for a, b in zip(spent[over], spent[under], strict=True)), 2)

    return {
        "weights": weights,
        "first_answer_s": round(median["one"], 3),
        "window_s": round(median["eight"], 3),
        "windows_per_s": round(1 / median["eight"], 2),
        "eight_to_one": ratio("eight", "one"),
        "anew_to_kept": ratio("anew", "eight"),
        "joint_to_kept": ratio("joint", "eight"),
        "written_to_scored": ratio("written", "one"),
    }


@contextmanager
def loaded(
    folder: Path, weights: str, device: str, *, picture_cache_mb: int
) -> Iterator[tuple[Engine, Any, Callable[[], Any]]]:
    """Load the model; give its engine, and the memory after loading and at the peak."""
    import torch

    from norm_core.engines.transformers.backend import TransformersBackend

    on_gpu = device.startswith("cuda")
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    backend = TransformersBackend(
        folder,
        quantization="" if weights in {"bf16", "float32"} else weights,
        dtype="bf16" if on_gpu else "float32",
        device=device,
        picture_cache_mb=picture_cache_mb,
    )
    if picture_cache_mb and backend.loaded().pictures is None:
        print("this transformers takes no embeddings: every window is a joint pass")
    load_mb = round(torch.cuda.memory_allocated() / 1e6) if on_gpu else "-"
    peak_mb = (lambda: round(torch.cuda.max_memory_allocated() / 1e6)) if on_gpu else (lambda: "-")
    yield Engine(backend, WallClock()), load_mb, peak_mb
    backend.close()


def main() -> None:
    """Measure each precision and print a table; exit with a message where there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=SIZES, default="qwen3-vl-2b")
    parser.add_argument("--weights", choices=("bf16", "int8", "nf4"), action="append", help="default: all three")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tiles", type=int, default=TILES, help="pictures in a window")
    parser.add_argument("--cpu", action="store_true", help="float32 on one thread, in CPU time, for the ratios alone")
    parser.add_argument("--tiny", action="store_true", help="try the benchmark with a tiny model on the CPU")
    parser.add_argument("--json", type=Path)
    told = parser.parse_args()
    try:
        import torch
        import transformers
    except ImportError as error:
        sys.exit(f"{error.name} is not installed: this benchmark needs ./tactful setup transformers, and a GPU")
    on_cpu = told.cpu or told.tiny
    if not (on_cpu or torch.cuda.is_available()):
        sys.exit("no GPU is here, so nothing was measured; --tiny tries the benchmark, --cpu measures ratios")
    device, rows = "cpu" if on_cpu else "cuda", []
    if on_cpu:
        torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_checkpoint("tiny" if told.tiny else told.model, folder, device)
        for weights in ["float32"] if on_cpu else told.weights or ["bf16", "int8", "nf4"]:
            try:
                rows.append(measured(folder, weights, device, told.rounds, told.tiles))
            except EngineFailedError as error:
                print(f"{weights}: not measured: {error}")
    facts = {
        "device": "CPU" if on_cpu else torch.cuda.get_device_name(),
        "model": "tiny" if told.tiny else told.model,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "tiles": told.tiles,
        "prompt_tokens": next((row.get("prompt_tokens") for row in rows), None),
    }
    print(json.dumps(facts))
    print("A window of pictures and 600 tokens of speech, one picture new, eight questions")
    for line in [dict(zip(COLUMNS, COLUMNS, strict=True)), *rows]:
        print("".join(f"{line[column]!s:18}" for column in COLUMNS))
    if told.json:
        told.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
