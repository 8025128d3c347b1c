"""Measure a model's load time, memory and speed on this machine."""

import os
import resource
import time
from collections.abc import Callable
from typing import Any

from norm_core.engines.engine_factory import open_engine
from norm_core.engines.errors import EngineFailedError, InvalidRequestError
from norm_core.engines.onnx.session import open_session
from norm_core.engines.prompt import Prompt, Question, Quoted, Text
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EngineKind
from norm_core.models.store import Store
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import WallClock

_SCENE = Prompt(
    version="bench-1",
    parts=(
        Text(text="A guest has come in and says:"),
        Quoted(text="Good morning! Is the lift working?", label="guest"),
    ),
)
_OPTIONS = ("Greet the guest and answer.", "Turn away.", "Water the plants.", "Ask the guest to leave.")


def bench(name: str, seconds: float, threads: int) -> dict[str, Any]:
    """Load the model in this process, and ask it for `seconds` seconds."""
    catalogue = Catalogue()
    manifest, beside = catalogue.manifest(name), catalogue.path(name).parent
    before_mb = _resident_mb()
    started_s = time.perf_counter()
    if manifest.engine is EngineKind.ONNX:
        folder = Store().open(manifest, beside).folder
        assert folder is not None
        sessions = [open_session(folder / f.path, threads=threads) for f in manifest.files if f.path.endswith(".onnx")]
        provider = ", ".join(sorted({session.provider for session in sessions}))

        def ask() -> None:
            for session in sessions:
                session.run(None, session.blank())
    else:
        provider, ask = _engine(catalogue, name)
    ask()  # some models load on the first question
    load_s = time.perf_counter() - started_s
    loaded_mb = _resident_mb()
    asked, started_s = 0, time.perf_counter()
    while (elapsed_s := time.perf_counter() - started_s) < seconds:
        ask()
        asked += 1
    return {
        "name": name,
        "engine": manifest.engine.value,
        "quantization": manifest.quantization,
        "runs_on": provider,
        "load_s": load_s,
        "load_mb": loaded_mb - before_mb,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6 - before_mb,
        "asked": "runs on zeros" if manifest.engine is EngineKind.ONNX else "questions with four options",
        "per_s": asked / elapsed_s,
    }


def _engine(catalogue: Catalogue, name: str) -> tuple[str, Callable[[], None]]:
    engine = open_engine(catalogue.manifest(name), WallClock(), beside=catalogue.path(name).parent)
    number = 0

    def ask() -> None:
        nonlocal number
        number += 1  # a new question each time, so that no cached answer is timed
        question = Question(parts=(Text(text=f"Visit {number}: what should the robot do?"),), options=_OPTIONS)
        scores = engine.ask_many(_SCENE, [question])[0]
        if scores.outcome is Outcome.INVALID:
            raise InvalidRequestError(scores.reason)
        if scores.outcome is not Outcome.ANSWERED:
            raise EngineFailedError(f"{name}: the model {scores.outcome.predicate}: {scores.reason}")

    return engine.model_info.engine, ask


def _resident_mb() -> float:
    with open("/proc/self/statm", encoding="ascii") as pages:  # noqa: PTH123  no path of ours
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
