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

from norm_core.engines.engine import Engine
from norm_core.engines.engine_factory import open_engine
from norm_core.engines.prompt import Image, Part, Prompt, Question, Text
from norm_core.engines.reply import Reply
from norm_core.engines.request_context import Deadline
from norm_core.models.catalogue import Catalogue
from norm_core.records.frame import Frame
from norm_core.records.outcome import Outcome
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Timing, Utterance
from norm_core.records.window import gather_window
from norm_core.runtime.bounded_command import run_bounded
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, WallClock, s_to_ns
from norm_core.runtime.wording import count_of
from norm_monitor.context.scene import History
from norm_monitor.judge.excerpt import Excerpt, UnitView, unit_view
from norm_monitor.judge.judge import JudgeConfig, Note, images_for, plan
from norm_monitor.units.unit import UnitKind, units_of

_LENGTH_S = 15.0
# People and the robot take turns, each of this length with the pause after it.
_TURNS, _TURN_S, _PAUSE_S = 4, 2.75, 0.5
_WIDTH_PX, _HEIGHT_PX = 448, 336


def time_judge(engine: Engine, config: JudgeConfig = JudgeConfig()) -> dict[str, Any]:  # noqa: B008  it is frozen
    """Ask all that the judge may ask about a unit, then for its note, both within the deadline; stop without answer."""
    images = images_for(engine.model_info, config)
    planned = plan(Excerpt.of_unit(_unit(images)), images, config.deployment_context)
    note = planned.note_prompt(0)

    def deadline() -> Deadline:
        return Deadline(engine.clock, engine.clock.now_ns() + s_to_ns(config.deadline_s))

    def decide() -> Reply:
        until = deadline()
        last: Reply = engine.ask_many(planned.prompt, [planned.detection], until)[0]
        for batch in planned.attributes:
            if last.outcome is Outcome.ANSWERED:
                found = engine.ask_many(batch.prompt, batch.questions, until)
                last = next((each for each in found if each.outcome is not Outcome.ANSWERED), found[-1])
        return last

    started_s = time.perf_counter()
    last = decide()
    decided_s = time.perf_counter()
    if last.outcome is Outcome.ANSWERED and engine.model_info.generates and config.note_tokens:
        written = engine.generate(note, Note, max_tokens=config.note_tokens, deadline=deadline())
        last = last if written.outcome is Outcome.UNPARSED else written  # a flag then has no note
    keeps = last.outcome is Outcome.ANSWERED
    return {
        "pictures": images,
        "unit_s": decided_s - started_s,
        "note_s": time.perf_counter() - decided_s,
        "deadline_s": config.deadline_s,
        "keeps_deadline": keeps,
        "reason": "" if keeps else f"the model {last.outcome.predicate}: {last.reason}",
    }


def describe_judge(timed: dict[str, Any]) -> str:
    """Say whether the model can judge in time, and what to do if not."""
    pictures = count_of(timed["pictures"], "picture")
    if timed["keeps_deadline"]:
        return (
            f"as judge: a unit with {pictures} takes {timed['unit_s']:.1f} s, so at most "
            f"{3600 / timed['unit_s']:.0f} an hour, and its note {timed['note_s']:.1f} s more; both keep "
            f"judge.deadline_s, {timed['deadline_s']:g} s"
        )
    return (
        f"as judge: not with {pictures} of a unit and judge.deadline_s of {timed['deadline_s']:g} s: "
        f"{timed['reason']}; name a smaller model, lower judge.images, or raise judge.deadline_s"
    )


def _unit(images: int) -> UnitView:
    """Return a robot's turn in a talk that fills the window, seen by a camera."""
    said, spoken = list[Utterance](), list[RobotSpeech]()
    for turn in range(_TURNS):
        start_ns = s_to_ns(1 + turn * (_TURN_S + _PAUSE_S))
        end_ns = start_ns + s_to_ns(_TURN_S)
        if turn % 2:
            text, name = "Find number 0 yourself, I am busy.", f"r{turn}"
            spoken += [
                RobotSpeech(stamp_ns=start_ns, speech_id=name, state=SpeechEdge.START, text=text),
                RobotSpeech(stamp_ns=end_ns, speech_id=name, state=SpeechEdge.STOP),
            ]
        else:
            said.append(_said(f"u{turn}", "Excuse me, where is lift 0? I have looked for it.", start_ns, end_ns))
    frames = [_frame(2 + second) for second in range(images)]
    scene = History().scene(gather_window(0, s_to_ns(_LENGTH_S), frames, said, spoken))
    robot_turns = [unit for unit in units_of(scene, scene.start_ns) if unit.kind is UnitKind.ROBOT_TURN]
    return unit_view(robot_turns[-1], scene, ())


def _said(name: str, text: str, start_ns: int, end_ns: int) -> Utterance:
    return Utterance(
        stamp_ns=start_ns,
        utterance_id=name,
        speaker=Speaker.USER,
        text=text,
        start_ns=start_ns,
        end_ns=end_ns,
        timing=Timing.SOURCE,
        source_topic="audio",
    )


def _frame(second: int) -> Frame:
    """Return a picture that differs from the others, so that no cache answers for it."""
    picture = np.full((_HEIGHT_PX, _WIDTH_PX, 3), 255, np.uint8)
    cv2.circle(picture, (40 * second, _HEIGHT_PX // 2), 60, (30, 30, 210), -1)
    return Frame(
        stamp_ns=second * NS_PER_S,
        source_topic="camera",
        source_encoding="jpeg",
        source_width_px=_WIDTH_PX,
        source_height_px=_HEIGHT_PX,
        payload_sha256="",
        tile_width_px=_WIDTH_PX,
        tile_height_px=_HEIGHT_PX,
        tile_jpeg=cv2.imencode(".jpg", picture)[1].tobytes(),
    )


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
