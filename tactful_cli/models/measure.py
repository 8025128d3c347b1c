"""Load a model, ask it three questions with a picture, and print time and memory; runs in a process of its own."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from norm_core.engines.engine_factory import open_engine
from norm_core.engines.prompt import Image, Part, Prompt, Question, Text
from norm_core.models.catalogue import Catalogue
from norm_core.models.estimate import CUDA_CONTEXT_MB
from norm_core.records.outcome import Outcome
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock

# The scene for a model without vision.
_SCENE_WORDS = "One red ball lies on the left of a white table. Nothing else is on it."
# Each question with its options, of which the first is right.
_QUESTIONS = (
    ("What colour is the ball?", ("Red.", "Blue.", "Green.")),
    ("How many balls are there?", ("One.", "Two.", "Three.")),
    ("On which side is the ball?", ("On the left.", "On the right.")),
)


def measure_model(name: str, seconds: float) -> dict[str, Any]:
    """Return the measures of a model in this process.

    Raises TactfulError if the model cannot be loaded or does not answer.
    """
    manifest = Catalogue().read_manifest(name)
    before_mb = _read_memory_mb("VmRSS")
    started_s = time.perf_counter()
    engine = open_engine(manifest, WallClock())
    load_s = time.perf_counter() - started_s
    resident_mb = _read_memory_mb("VmRSS") - before_mb
    on_gpu_mb = _read_gpu_mb("memory_reserved")
    answers = []
    prompt = Prompt(version="setup-1", parts=_make_scene(engine.model_info.max_images))
    first_s = 0.0
    try:
        for text, options in _QUESTIONS:
            started_s = time.perf_counter()
            scores = engine.ask_many(prompt, [Question(parts=(Text(text=text),), options=options)])[0]
            first_s = first_s or time.perf_counter() - started_s
            if scores.outcome is not Outcome.ANSWERED:
                raise TactfulError(f"{name}: the model {scores.outcome.predicate}: {scores.reason}")
            answers.append({"question": text, "answer": options[scores.best or 0], "right": scores.best == 0})
        count = 0
        started_s = time.perf_counter()
        while (elapsed_s := time.perf_counter() - started_s) < seconds:
            text, options = _QUESTIONS[count % len(_QUESTIONS)]
            engine.ask_many(prompt, [Question(parts=(Text(text=f"{text} ({count})"),), options=options)])
            count += 1
        peak_mb = max(resident_mb, _read_memory_mb("VmHWM") - before_mb)
    finally:
        engine.close()
    return {
        "name": name,
        "engine": engine.model_info.engine,
        "device": "GPU" if on_gpu_mb else "CPU",
        "with_picture": bool(prompt.images),
        "load_s": load_s,
        "first_answer_s": first_s,
        "load_mb": on_gpu_mb or resident_mb,
        "peak_mb": _read_gpu_mb("max_memory_reserved") if on_gpu_mb else peak_mb,
        "questions_per_s": count / elapsed_s,
        "answers": answers,
    }


def _make_scene(max_images: int | None) -> tuple[Part, ...]:
    """Return a picture of a red ball on the left, or its description for a model that takes no pictures."""
    if max_images == 0:
        return (Text(text=_SCENE_WORDS),)
    picture = np.full((336, 448, 3), 255, np.uint8)
    cv2.circle(picture, (110, 190), 60, (30, 30, 210), -1)
    return (Text(text="You see:"), Image(jpeg=cv2.imencode(".jpg", picture)[1].tobytes()))


def _read_memory_mb(counter: str) -> float:
    """Return a counter of /proc/self/status in MB."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return sum(float(line.split()[1]) * 1.024e-3 for line in lines if line.startswith(f"{counter}:"))


def _read_gpu_mb(counter: str) -> float:
    """Return a counter of torch in MB, with the CUDA context; 0 if no model is on a GPU."""
    torch = sys.modules.get("torch")
    torch_mb = getattr(torch.cuda, counter)() / 1e6 if torch and torch.cuda.is_available() else 0.0
    return torch_mb + CUDA_CONTEXT_MB if torch_mb else 0.0


if __name__ == "__main__":
    try:
        print(json.dumps(measure_model(sys.argv[1], float(sys.argv[2]))))
    except TactfulError as fault:
        print(fault, file=sys.stderr)
        sys.exit(1)
