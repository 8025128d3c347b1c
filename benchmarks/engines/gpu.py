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
from benchmarks.engines.scene import QUESTIONS, REASONED, window
from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Image, Prompt
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
    "own_ms",
    "eight_to_one",
    "anew_to_kept",
    "joint_to_kept",
    "written_to_scored",
    "load_mb",
    "peak_mb",
)


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
        return Prompt(version="gpu-1", parts=(*self._tiles, *window().parts))


def now_s(device: str) -> float:
    """Return the time: on a CPU that of this process, which other processes disturb least."""
    return time.process_time() if device == "cpu" else time.perf_counter()


def timed(device: str, ask: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call and its answers; a failed answer ends the benchmark."""
    started_s = now_s(device)
    answers = ask()
    spent_s = now_s(device) - started_s
    for answer in answers if isinstance(answers, list) else [answers]:
        assert answer.outcome is Outcome.ANSWERED, answer
    return spent_s, answers


def measured(folder: Path, weights: str, device: str, rounds: int, tiles: int) -> dict[str, Any]:
    """Measure one precision: first with embeddings kept, then the joint pass over the same windows."""
    spent: dict[str, list[float]] = {name: [] for name in ("one", "eight", "own", "anew", "joint", "written")}
    with loaded(folder, weights, device, picture_cache_mb=1000) as (engine, in_model_s, load_mb, peak_mb):
        shown = Window(frames(TILE_PX), tiles)
        shown_new = partial(shown.next, tiles)
        for number in range(rounds + 1):
            times: dict[str, float] = {}
            prompt = shown.next()
            times["one"], _ = timed(device, partial(engine.ask_many, prompt, QUESTIONS[:1]))
            prompt, before_s = shown.next(), in_model_s[0]
            times["eight"], answers = timed(device, partial(engine.ask_many, prompt, QUESTIONS))
            times["own"] = times["eight"] - (in_model_s[0] - before_s)
            times["written"] = written_s(device, engine, Prompt(version="gpu-1", parts=(*prompt.parts, REASONED)))
            prompt = shown_new()
            times["anew"], _ = timed(device, partial(engine.ask_many, prompt, QUESTIONS))
            for name, spent_s in times.items() if number else ():  # the first round warms up
                spent[name].append(spent_s)
        tokens, kept_peak_mb = answers[1].usage.cached_tokens, peak_mb()
    with loaded(folder, weights, device, picture_cache_mb=0) as (engine, _, _, _):
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
    median = {name: statistics.median(values) for name, values in spent.items() if values}

    def ratio(over: str, under: str) -> Any:
        pairs = zip(spent.get(over, ()), spent.get(under, ()), strict=False)
        ratios = [one / other for one, other in pairs]
        return round(statistics.median(ratios), 2) if ratios else "-"

    return {
        "weights": weights,
        "first_answer_s": round(median["one"], 3),
        "window_s": round(median["eight"], 3),
        "windows_per_s": round(1 / median["eight"], 2),
        "own_ms": round(median["own"] * 1e3, 1) if "own" in median else "-",
        "eight_to_one": ratio("eight", "one"),
        "anew_to_kept": ratio("anew", "eight"),
        "joint_to_kept": ratio("joint", "eight"),
        "written_to_scored": ratio("written", "one"),
        "load_mb": "-",
        "peak_mb": "-",
    }


@contextmanager
def loaded(
    folder: Path, weights: str, device: str, *, picture_cache_mb: int
) -> Iterator[tuple[Engine, list[float], Any, Callable[[], Any]]]:
    """Load the model; give its engine, the time in the network so far, and the memory after loading and at the peak."""
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
    spent_s = time_in_network(backend.loaded().runner.model, device)
    yield (
        Engine(backend, WallClock()),
        spent_s,
        load_mb,
        lambda: round(torch.cuda.max_memory_allocated() / 1e6) if on_gpu else "-",
    )
    backend.close()


def time_in_network(network: Any, device: str) -> list[float]:
    """Count the time in the network and in its vision tower, which runs before it."""
    import torch

    wait = torch.cuda.synchronize if device != "cpu" else lambda: None
    spent_s, depth, started_s = [0.0], [0], [0.0]

    def begin(*_: Any) -> None:
        depth[0] += 1
        if depth[0] == 1:
            wait()
            started_s[0] = now_s(device)

    def end(*_: Any) -> None:
        depth[0] -= 1
        if depth[0] == 0:
            wait()
            spent_s[0] += now_s(device) - started_s[0]

    vision = [part for name, part in network.model.named_children() if name not in {"language_model", "text_model"}]
    for module in (network, *vision):
        module.register_forward_pre_hook(begin)
        module.register_forward_hook(end)
    return spent_s


def of_server(url: str, name: str, rounds: int, tiles: int) -> dict[str, Any]:
    """Measure a server of the same size, which was started beforehand."""
    from norm_core.engines.openai.backend import OpenAIBackend
    from norm_core.engines.openai.client import OpenAIServer

    engine = Engine(OpenAIBackend(OpenAIServer(url), name), WallClock())
    shown = Window(frames(TILE_PX), tiles)
    spent: dict[str, list[float]] = {"one": [], "eight": []}
    for number in range(rounds + 1):
        one_s, _ = timed("server", partial(engine.ask_many, shown.next(), QUESTIONS[:1]))
        eight_s, _ = timed("server", partial(engine.ask_many, shown.next(), QUESTIONS))
        if number:
            spent["one"].append(one_s)
            spent["eight"].append(eight_s)
    return row("server", spent)


def report(title: str, columns: tuple[str, ...], rows: list[dict[str, Any]], json_file: Path | None) -> None:
    """Print a table, and write its rows to the JSON file."""
    lines = [list(columns), *([str(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    print(f"\n{title}")
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    if json_file:
        json_file.write_text(json.dumps(rows, indent=2) + "\n")


def main() -> None:
    """Measure each precision and print a table; exit with a message where there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=SIZES, default="qwen3-vl-2b")
    parser.add_argument("--weights", choices=("bf16", "int8", "nf4"), action="append", help="default: all three")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tiles", type=int, default=TILES, help="pictures in a window")
    parser.add_argument("--cpu", action="store_true", help="float32 on one thread, in CPU time, for the ratios alone")
    parser.add_argument("--tiny", action="store_true", help="try the benchmark with a tiny model on the CPU")
    parser.add_argument("--folder", type=Path, help="where to keep the checkpoint, for a server to load")
    parser.add_argument("--server", help="address of a running server, as http://127.0.0.1:8000/v1")
    parser.add_argument("--server-model", default="model", help="the server's name for the checkpoint")
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
        folder = told.folder or Path(name)
        write_checkpoint("tiny" if told.tiny else told.model, folder, device)
        for weights in ["float32"] if on_cpu else told.weights or ["bf16", "int8", "nf4"]:
            try:
                rows.append(measured(folder, weights, device, told.rounds, told.tiles))
            except EngineFailedError as error:
                print(f"{weights}: not measured: {error}")
    if told.server:
        rows.append(of_server(told.server, told.server_model, told.rounds, told.tiles))
    facts = {
        "device": "CPU" if on_cpu else torch.cuda.get_device_name(),
        "model": "tiny" if told.tiny else told.model,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "tiles": told.tiles,
        "prompt_tokens": next((row.get("prompt_tokens") for row in rows), None),
    }
    print(json.dumps(facts))
    report("A window of pictures and 600 tokens of speech, one picture new, eight questions", COLUMNS, rows, told.json)


if __name__ == "__main__":
    main()
