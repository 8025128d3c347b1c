"""Load a model, ask it three questions with a picture, and print what that took; run in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from norm_core.engines.engine_factory import open_engine
from norm_core.engines.prompt import Image, Part, Prompt, Question, Text
from norm_core.models.catalogue import Catalogue
from norm_core.records.outcome import Outcome
from norm_core.runtime.bounded_command import run_bounded
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock
from tactful_cli.models.judge_unit import time_judge

_TIMEOUT_S = 10.0
_WORDS = "One red ball lies on the left of a white table. Nothing else is on it."
# Each question with its options, of which the first is right.
_QUESTIONS = (
    ("What colour is the ball?", ("Red.", "Blue.", "Green.")),
    ("How many balls are there?", ("One.", "Two.", "Three.")),
    ("On which side is the ball?", ("On the left.", "On the right.")),
)


def measure(name: str, seconds: float) -> dict[str, Any]:
    """Return the measures of a model in this process; raise TactfulError if it cannot be loaded or does not answer."""
    catalogue = Catalogue()
    manifest = catalogue.manifest(name)
    before_mb, started_s = _memory_mb("VmRSS"), time.perf_counter()
    engine = open_engine(manifest, WallClock(), beside=catalogue.path(name).parent)
    load_s = time.perf_counter() - started_s
    resident_mb, on_gpu_mb = _memory_mb("VmRSS") - before_mb, _gpu_mb()
    peak_gpu_mb, answers = on_gpu_mb, []
    prompt = Prompt(version="setup-1", parts=_scene(engine.model_info.max_images))
    first_s = 0.0
    try:
        for asked, options in _QUESTIONS:
            started_s = time.perf_counter()
            scores = engine.ask_many(prompt, [Question(parts=(Text(text=asked),), options=options)])[0]
            first_s = first_s or time.perf_counter() - started_s
            if scores.outcome is not Outcome.ANSWERED:
                raise TactfulError(f"{name}: the model {scores.outcome.predicate}: {scores.reason}")
            answers.append({"question": asked, "answer": options[scores.best or 0], "right": scores.best == 0})
            peak_gpu_mb = max(peak_gpu_mb, _gpu_mb())
        count, started_s = 0, time.perf_counter()
        while (elapsed_s := time.perf_counter() - started_s) < seconds:
            asked, options = _QUESTIONS[count % len(_QUESTIONS)]
            engine.ask_many(prompt, [Question(parts=(Text(text=f"{asked} ({count})"),), options=options)])
            count += 1
        judge = time_judge(engine)
        peak_mb = max(resident_mb, _memory_mb("VmHWM") - before_mb)
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
        "peak_mb": max(peak_gpu_mb, _torch_mb("max_memory_reserved")) if on_gpu_mb else peak_mb,
        "questions_per_s": count / elapsed_s,
        "answers": answers,
        "judge": judge,
    }


def _scene(max_images: int | None) -> tuple[Part, ...]:
    """Return a picture of a red ball on the left, or its description for a model that takes no pictures."""
    if max_images == 0:
        return (Text(text=_WORDS),)
    picture = np.full((336, 448, 3), 255, np.uint8)
    cv2.circle(picture, (110, 190), 60, (30, 30, 210), -1)
    return (Text(text="You see:"), Image(jpeg=cv2.imencode(".jpg", picture)[1].tobytes()))


def _memory_mb(counter: str) -> float:
    """Add up a counter of /proc/PID/status over this process and that of the engine, if it has one."""
    lines = [line for pid in _processes() for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()]
    return sum(float(line.split()[1]) * 1.024e-3 for line in lines if line.startswith(f"{counter}:"))


def _processes() -> list[int]:
    children = [path.read_text("ascii").split() for path in Path("/proc/self/task").glob("*/children")]
    return [os.getpid(), *(int(pid) for pids in children for pid in pids)]


def _gpu_mb() -> float:
    """Return the GPU's memory that the driver, or torch, counts for this process; 0 where there is none."""
    by_torch = _torch_mb("memory_reserved")
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return by_torch
    query = [tool, "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    try:
        answer = run_bounded(query, _TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return by_torch
    rows = [[part.strip() for part in line.split(",")] for line in answer.stdout.splitlines()]
    pids = [str(pid) for pid in _processes()]
    own = [int(row[1]) for row in rows if row[0] in pids and row[1:] and row[1].isdigit()]
    return max(sum(own) * 2**20 / 1e6, by_torch)  # in a container the driver knows processes by other numbers


def _torch_mb(counter: str) -> float:
    torch = sys.modules.get("torch")
    return getattr(torch.cuda, counter)() / 1e6 if torch and torch.cuda.is_available() else 0.0


if __name__ == "__main__":
    try:
        print(json.dumps(measure(sys.argv[1], float(sys.argv[2]))))
    except TactfulError as fault:
        print(fault, file=sys.stderr)
        sys.exit(1)
