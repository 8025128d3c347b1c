"""Measure a Qwen2.5-VL of 3B's size, with random weights, on a GPU: speed, memory, and bf16 against int8 and nf4."""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.engines.askers import report
from benchmarks.engines.scene import QUESTIONS, window
from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Image, Prompt
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import WallClock

TILES = 15
TILE_PX = (448, 336)
COLUMNS = (
    "weights",
    "first_score_s",
    "window_s",
    "windows_per_s",
    "eight_to_one",
    "outside_share",
    "load_mb",
    "peak_mb",
)
# The published shape of the 3B model. With random weights, only speed and memory are meaningful.
_TEXT = {
    "hidden_size": 2048,
    "intermediate_size": 11008,
    "num_hidden_layers": 36,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128000,
    "tie_word_embeddings": True,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]},
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
_VISION = {
    "depth": 32,
    "hidden_size": 1280,
    "intermediate_size": 3420,
    "num_heads": 16,
    "out_hidden_size": 2048,
    "fullatt_block_indexes": [7, 15, 23, 31],
    "window_size": 112,
}
_VOCABULARY = 151936


def checkpoint(folder: Path) -> None:
    """Write the model in bf16 in a hub repository's layout, with the tests' tokenizer of the family."""
    import torch
    from transformers import AutoModelForImageTextToText, Qwen2_5_VLConfig
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.norm_core.engines.tiny_checkpoints import FAMILIES, tokenizer_of

    tokenizer = tokenizer_of(FAMILIES["qwen2_5_vl"])
    ids = tokenizer.get_vocab()
    config = Qwen2_5_VLConfig(
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        text_config={**_TEXT, "vocab_size": _VOCABULARY},
        vision_config=_VISION,
    )
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = AutoModelForImageTextToText.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    del model
    torch.cuda.empty_cache()
    tokenizer.save_pretrained(folder)
    Qwen2VLImageProcessorPil(size={"shortest_edge": 56 * 56, "longest_edge": 448 * 448}).save_pretrained(folder)


def tiles() -> tuple[Image, ...]:
    """Make fifteen different images, one second apart."""
    random = np.random.default_rng(0)
    pictures = (random.integers(0, 255, (TILE_PX[1] // 16, TILE_PX[0] // 16, 3), np.uint8) for _ in range(TILES))
    scaled = (cv2.resize(pixels, TILE_PX, interpolation=cv2.INTER_CUBIC) for pixels in pictures)
    return tuple(Image(jpeg=cv2.imencode(".jpg", pixels)[1].tobytes()) for pixels in scaled)


def measured(folder: Path, weights: str, rounds: int) -> dict[str, Any]:
    """Measure one precision: memory, time of first and later windows, and the time outside the model."""
    import torch

    from norm_core.engines.transformers.backend import TransformersBackend

    torch.cuda.reset_peak_memory_stats()
    backend = TransformersBackend(
        folder, quantization="" if weights == "bf16" else weights, dtype="bf16", device="cuda"
    )
    load_mb = torch.cuda.memory_allocated() / 1e6
    in_model_s = [0.0]
    _time_model(backend, in_model_s)
    engine = Engine(backend, WallClock())
    prefix = Prompt(version="gpu-1", parts=(*tiles(), *window().parts))
    first_s, window_s, ratio, outside = [], [], [], []
    for number in range(rounds + 1):
        started_s = time.perf_counter()
        one = engine.ask_many(prefix, QUESTIONS[:1])
        one_s = time.perf_counter() - started_s
        in_model_s[0] = 0.0
        started_s = time.perf_counter()
        eight = engine.ask_many(prefix, QUESTIONS)
        eight_s = time.perf_counter() - started_s
        assert all(answer.outcome is Outcome.ANSWERED for answer in (*one, *eight)), (one, eight)
        if number:
            first_s.append(one_s)
            window_s.append(eight_s)
            ratio.append(eight_s / one_s)
            outside.append(1 - in_model_s[0] / eight_s)
    peak_mb = torch.cuda.max_memory_allocated() / 1e6
    engine.close()
    return {
        "weights": weights,
        "first_score_s": round(statistics.median(first_s), 3),
        "window_s": round(statistics.median(window_s), 3),
        "windows_per_s": round(1 / statistics.median(window_s), 2),
        "eight_to_one": round(statistics.median(ratio), 2),
        "outside_share": round(statistics.median(outside), 3),
        "load_mb": round(load_mb),
        "peak_mb": round(peak_mb),
        "prompt_tokens": eight[1].usage.cached_tokens,
        "device": torch.cuda.get_device_name(),
    }


def _time_model(backend: Any, spent_s: list[float]) -> None:
    """Wrap the model to add the network's time to `spent_s`, with GPU synchronization on both sides."""
    import torch

    network = backend.loaded().runner.model
    started_s = [0.0]

    def begin(*_: Any) -> None:
        torch.cuda.synchronize()
        started_s[0] = time.perf_counter()

    def end(*_: Any) -> None:
        torch.cuda.synchronize()
        spent_s[0] += time.perf_counter() - started_s[0]

    network.register_forward_pre_hook(begin)
    network.register_forward_hook(end)


def main() -> None:
    """Measure each precision on this machine's GPU; exit with a message where there is none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", choices=("bf16", "int8", "nf4"), action="append", help="default: all three")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    told = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("torch is not installed here: this benchmark needs a GPU and ./tactful setup transformers")
    if not torch.cuda.is_available():
        sys.exit("no GPU is here, so nothing was measured")
    with tempfile.TemporaryDirectory() as name:
        checkpoint(Path(name))
        rows = [measured(Path(name), weights, told.rounds) for weights in told.weights or ("bf16", "int8", "nf4")]
    print(json.dumps({"device": rows[0]["device"], "prompt_tokens": rows[0]["prompt_tokens"], "tiles": TILES}))
    report("A window of 15 pictures and 600 tokens of speech, eight questions", COLUMNS, rows, told.json)


if __name__ == "__main__":
    main()
