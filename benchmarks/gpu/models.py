"""Measure vision-language models of true sizes with random weights: speed, and memory when it is short."""

import gc
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.runner import Figure, Report, SkippedError
from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.prompt import Image, Part, Prompt, Question, Quoted, Text
from norm_core.models.catalogue import Catalogue
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import NS_PER_S, WallClock

_FAMILY = "qwen3_vl"
_ROPE = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20]}
_TEXT = {
    "vocab_size": 151936,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 262144,
    "rope_parameters": _ROPE,
    **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id")),
}
_VISION = {
    "depth": 24,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_heads": 16,
    "num_position_embeddings": 2304,
    "deepstack_visual_indexes": [5, 11, 17],
}
_VISION_8B = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "deepstack_visual_indexes": [8, 16, 24]}

# By name: the text's hidden and inner widths, layers and heads, whether embeddings are tied, and the vision's own.
SIZES: dict[str, tuple[int, int, int, int, bool, dict[str, Any]]] = {
    "qwen3-vl-2b": (2048, 6144, 28, 16, True, {}),
    "qwen3-vl-4b": (2560, 9728, 36, 32, True, {}),
    "qwen3-vl-8b": (4096, 12288, 36, 32, False, _VISION_8B),
}


def write_checkpoint(name: str, folder: Path, device: str, *, tiny: bool) -> float:
    """Write a checkpoint of SIZES in bf16 in a hub repository's layout; return its millions of parameters.

    With `tiny`, it is the tests' checkpoint of the family, with a longer context.
    """
    import torch
    from transformers import AutoModelForImageTextToText
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    from tests.norm_core.engines.tiny_checkpoints import FAMILIES, built, tokenizer_of

    if tiny:
        built(_FAMILY, folder, context_tokens=16384)
        return (folder / "model.safetensors").stat().st_size / 4e6
    tokenizer = tokenizer_of(FAMILIES[_FAMILY])
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForImageTextToText.from_config(_config(name, tokenizer.get_vocab()), dtype=torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="2GB")
    tokenizer.save_pretrained(folder)
    pictures = Qwen2VLImageProcessorPil(patch_size=16, size={"shortest_edge": 64 * 64, "longest_edge": 448 * 448})
    pictures.save_pretrained(folder)
    return float(sum(part.numel() for part in model.parameters()) / 1e6)


def _config(name: str, ids: dict[str, int]) -> Any:
    from transformers import Qwen3VLConfig

    hidden, inner, layers, heads, tied, vision = SIZES[name]
    text = {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers}
    return Qwen3VLConfig(
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=tied,
        text_config={**_TEXT, **text, "num_attention_heads": heads, "tie_word_embeddings": tied},
        vision_config={**_VISION, **vision, "out_hidden_size": hidden},
    )


WRITTEN_TOKENS = 50
CAPS = (1.15, 1.09, 1.04)


@dataclass(frozen=True)
class Bench:
    """Where checkpoints lie and on what they run; tiny ones take fewer and smaller pictures, and one round."""

    folder: Path
    device: str
    is_tiny: bool = False

    @property
    def on_gpu(self) -> bool:
        """Whether memory and speed of a GPU can be measured."""
        return self.device == "cuda"

    @property
    def pictures(self) -> int:
        """The pictures of a window."""
        return 3 if self.is_tiny else 15

    @property
    def rounds(self) -> int:
        """How often each figure is measured, after a first time that warms up."""
        return 1 if self.is_tiny else 3

    def frames(self) -> Iterator[Image]:
        """Make pictures without end, each different from all others."""
        random, size_px = np.random.default_rng(0), (128, 96) if self.is_tiny else (448, 336)
        while True:
            pixels = random.integers(0, 255, (size_px[1] // 16, size_px[0] // 16, 3), np.uint8)
            scaled = cv2.resize(pixels, size_px, interpolation=cv2.INTER_CUBIC)
            yield Image(jpeg=cv2.imencode(".jpg", scaled)[1].tobytes())

    @contextmanager
    def open(self, model: str, weights: str = "", **settings: Any) -> Iterator[DirectEngine]:
        """Load a checkpoint, bf16 on a GPU and float32 on a CPU unless `weights` says otherwise."""
        from norm_core.engines.transformers.backend import TransformersBackend

        weights = weights or ("bf16" if self.on_gpu else "float32")
        quantized = weights in {"nf4", "int8"}
        backend = TransformersBackend(
            self.folder / model,
            dtype="bf16" if quantized else weights,
            quantization=weights if quantized else "",
            device=self.device,
            **settings,
        )
        engine = DirectEngine(backend, WallClock())
        try:
            yield engine
        finally:
            engine.close()
            gc.collect()


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
    parts: list[Part] = [Text(text="A robot stands at the reception of a clinic. This was said in the last minute:")]
    for number in range(turns):
        speaker, words = _TURNS[number % len(_TURNS)]
        parts.append(Quoted(text=words, label=f"{speaker}, second {5 * number}"))
    return tuple(parts)


class Window:
    """The robot's last pictures: at each `next`, one is new."""

    def __init__(self, pictures: Iterator[Image], tiles: int) -> None:
        self._pictures = pictures
        self._tiles = deque((next(pictures) for _ in range(tiles)), maxlen=tiles)

    def next(self, new: int = 1) -> Prompt:
        """Return the prompt of the next window, in which `new` pictures were not seen before."""
        self._tiles.extend(next(self._pictures) for _ in range(new))
        return Prompt(version="gpu-1", parts=(*self._tiles, *talk()))


def timed(bench: Bench, ask: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call and its answers; raise RuntimeError if one is no answer."""
    started_s = time.perf_counter()
    answers = ask()
    if bench.on_gpu:
        torch_cuda().synchronize()
    spent_s = time.perf_counter() - started_s
    for answer in answers if isinstance(answers, list) else [answers]:
        if answer.outcome is not Outcome.ANSWERED:
            raise RuntimeError(f"the model {answer.outcome.predicate}: {answer.reason}")
    return spent_s, answers


def torch_cuda() -> Any:
    """Return torch.cuda."""
    import torch

    return torch.cuda


def memory_mb(bench: Bench) -> dict[str, float]:
    """Return the memory that torch holds on the GPU, and what the driver counts; nothing without a GPU."""
    if not bench.on_gpu:
        return {}
    cuda = torch_cuda()
    free, total = cuda.mem_get_info()
    sizes = {
        "allocated": cuda.memory_allocated(),
        "reserved": cuda.memory_reserved(),
        "peak": cuda.max_memory_allocated(),
        "device": total - free,
    }
    return {name: round(size / 1e6) for name, size in sizes.items()}


def window(bench: Bench, report: Report, *, model: str, weights: str = "") -> None:
    """Measure load and peak memory, a first answer, a window of eight questions, and a written token."""
    if weights == "nf4" and find_spec("bitsandbytes") is None:
        raise SkippedError("bitsandbytes is not installed; carry its wheel (--wheels)")
    name = f"{model}-{weights}".strip("-")
    label, manifest = name.replace("-", "_").replace(".", "_"), Catalogue().read_manifest(name)
    started_s = time.perf_counter()
    with bench.open(model, weights, picture_cache_mb=1000) as engine:
        load_s = time.perf_counter() - started_s
        loaded = memory_mb(bench)
        report.add(Figure(name=f"{label}_load", value=round(load_s, 2), unit="s"))
        shown = Window(bench.frames(), bench.pictures)
        cold_s, _ = timed(bench, partial(engine.ask_many, shown.next(), QUESTIONS[:1]))
        report.add(Figure(name=f"{label}_question_after_load", value=round(cold_s, 3), unit="s"))
        spent: dict[str, list[float]] = {"one": [], "eight": [], "anew": []}
        for number in range(bench.rounds + 1):
            for name, new, asked in (("one", 1, 1), ("eight", 1, 8), ("anew", bench.pictures, 8)):
                seconds, answers = timed(bench, partial(engine.ask_many, shown.next(new), QUESTIONS[:asked]))
                spent[name] += [seconds] if number else []
        usage = answers[1].usage
        report.add(
            _figure(f"{label}_first_answer", spent["one"]),
            _figure(f"{label}_window", spent["eight"]),
            _figure(f"{label}_eight_questions", spent["eight"], spent["one"], "one question"),
            _figure(f"{label}_new_pictures", spent["anew"], spent["eight"], "one new picture"),
        )
        if loaded and manifest.memory:
            for title, mb, planned in (
                ("load", loaded["allocated"], manifest.memory.load_mb),
                ("peak", memory_mb(bench)["peak"], manifest.memory.peak_mb),
            ):
                name = f"{label}_{title}_memory"
                report.add(Figure(name=name, value=mb, unit="MB", against="the plan", ratio=round(mb / planned, 3)))
        tokens = {"prefix": usage.cached_tokens, "question": usage.prompt_tokens}
        report.note(pictures=bench.pictures, tokens=tokens, memory_mb=memory_mb(bench))
        token_s = []
        for _ in range(bench.rounds + 1):
            reasoned = Prompt(version="gpu-1", parts=(*shown.next().parts, REASONED))
            _, text = timed(bench, partial(engine.generate, reasoned, max_tokens=WRITTEN_TOKENS))
            decode_ns = sum(part.duration_ns for part in text.latency if part.name == "decode")
            token_s.append(decode_ns / NS_PER_S / text.usage.completion_tokens)
        report.add(_figure(f"{label}_written_token", token_s[1:]))


def _figure(name: str, seconds: Sequence[float], peers_s: Sequence[float] = (), against: str = "") -> Figure:
    if not peers_s:
        return Figure(name=name, value=round(statistics.median(seconds), 4), unit="s")
    ratios = [spent_s / peer_s for spent_s, peer_s in zip(seconds, peers_s, strict=True)]
    return Figure.of_runs(name, "s", seconds, against, ratios)


def caps(bench: Bench, report: Report, *, model: str) -> None:
    """Leave less and less memory beside the weights, then all of it again."""
    if not bench.on_gpu:
        raise SkippedError("no GPU is here, whose memory could be capped")
    cuda = torch_cuda()
    total = cuda.get_device_properties(0).total_memory
    with bench.open(model) as engine:
        shown = Window(bench.frames(), bench.pictures)
        timed(bench, partial(engine.ask_many, shown.next(), QUESTIONS))
        cuda.empty_cache()
        weights, rows = cuda.memory_reserved(), {}
        for cap in CAPS:
            cuda.set_per_process_memory_fraction(min(1.0, weights * cap / total))
            tight = engine.ask_many(shown.next(bench.pictures), QUESTIONS)
            cuda.set_per_process_memory_fraction(1.0)
            free = engine.ask_many(shown.next(), QUESTIONS)
            rows[cap] = {
                "capped": dict(Counter(str(answer.outcome) for answer in tight)),
                "pictures": tight[0].usage.images,
                "retries": tight[0].usage.retries,
                "reason": tight[0].reason[:200],
                "lifted": dict(Counter(str(answer.outcome) for answer in free)),
            }
            answered = sum(answer.outcome is Outcome.ANSWERED for answer in tight)
            report.add(Figure(name=f"answers_at_{cap:g}_weights", value=answered, unit=f"of {len(QUESTIONS)}"))
        report.note(caps=rows, counters={counter.name: counter.count for counter in engine.health.counters})
