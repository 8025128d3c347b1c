"""The faults: what each does to the nodes, what the status must then say, and what must hold."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from norm_core.runtime.config import Config, load_yaml
from norm_core.runtime.errors import TactfulError
from norm_monitor.replay.node_process import claim_domain
from tests.soak.running_graph import POLL_S, STUDY, RunningGraph

# A fault that takes longer, or more memory, does not hold.
STATUS_LIMIT_S = 2.0
RECOVERY_LIMIT_S = 5.0
MEMORY_LIMIT_MB = 200.0
# How long a trial waits for each.
AWAIT_STATUS_S = 15.0
AWAIT_RECOVERY_S = 120.0
DRAIN_S = 10.0


class FaultResult(Config):
    """The effect of a fault, and whether the nodes held."""

    name: str
    held: bool
    lost: int = 0
    status_s: float | None = None
    recovery_s: float | None = None
    memory_mb: float = 0.0
    why: str = ""


class Fault(Config):
    """A fault, as the file of faults describes its fields."""

    begin: dict[str, Any]
    mend: dict[str, Any] = Field(default_factory=dict)
    says: str = ""
    stated_after_s: float = 0.0
    lasts_s: float = 2.0
    quick: bool = False
    gives: tuple[str, ...] = ("utterance", "presence", "window")
    forgets: bool = False
    clears: bool = False
    robot: dict[str, Any] = Field(default_factory=dict)
    nodes: dict[str, dict[str, Any]] = Field(default_factory=dict)


def _send_signal(graph: RunningGraph, node_and_signal: tuple[str, str]) -> None:
    os.kill(graph.pids()[node_and_signal[0]], signal.Signals[node_and_signal[1]])


def _limit(graph: RunningGraph, limits: Mapping[str, int]) -> None:
    """Leave the monitor no room beyond what it has, or, with -1, all that its user may have."""
    pid = graph.pids()["monitor"]
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.prlimit(pid, kind)[1]
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[0])
        handles = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        taken = {"NOFILE": handles, "AS": pages * resource.getpagesize()}.get(name, value)
        resource.prlimit(pid, kind, (hard if value < 0 else taken, hard))


def _remove_log(graph: RunningGraph) -> None:
    shutil.rmtree(graph.folder / STUDY)


def _starve(graph: RunningGraph) -> None:
    """Keep every core busy for three seconds."""
    spin = "import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: pass"
    others = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(2 * (os.cpu_count() or 1))]
    for other in others:
        other.wait()


ACTIONS: dict[str, Callable[[RunningGraph], None]] = {"remove_log": _remove_log, "starve": _starve}
STEPS: dict[str, Callable[[RunningGraph, Any], object]] = {
    "robot": lambda graph, command: graph.tell_robot(**command),
    "signal": _send_signal,
    "limit": _limit,
    "do": lambda graph, name: ACTIONS[name](graph),
}
_FILE = load_yaml(Path(__file__).with_name("faults.yaml"))
FAULTS = {name: Fault(**fields) for name, fields in _FILE["faults"].items()}


def run_fault(name: str) -> FaultResult:
    """Run one fault against nodes of its own, on a domain of its own."""
    fault = FAULTS[name]
    with claim_domain() as domain, tempfile.TemporaryDirectory(prefix="tactful-soak-") as folder:
        nodes = {
            node: {**_FILE["profile"].get(node, {}), **fault.nodes.get(node, {})}
            for node in (*_FILE["profile"], *fault.nodes)
        }
        profile = json.loads(json.dumps(nodes).replace("FOLDER", folder))
        os.environ["ROS_DOMAIN_ID"] = str(domain)  # of this process, which runs one fault
        try:
            with RunningGraph(Path(folder), profile, fault.robot) as graph:
                return _measure(name, fault, graph)
        except (TactfulError, LookupError, RuntimeError, OSError) as error:
            return FaultResult(name=name, held=False, why=f"{type(error).__name__}: {error}")


def _measure(name: str, fault: Fault, graph: RunningGraph) -> FaultResult:
    """Begin the fault once all is well, mend it, and say what held."""

    def gives_since(since_s: float) -> bool:
        return graph.are_active(since_s) and all(graph.heard(kind, since_s) for kind in fault.gives)

    def is_said(texts: Iterable[str]) -> bool:
        return bool(fault.says) and any(re.search(fault.says, text) for text in texts)

    began_s = time.monotonic()
    if graph.until(lambda: gives_since(began_s) and not is_said(graph.reasons(began_s)), AWAIT_RECOVERY_S) is None:
        counts = {kind: len(graph.heard(kind)) for kind in fault.gives}
        raise TimeoutError(f"nothing to harm: {counts}; {graph.reasons(began_s)}")
    memory_mb = graph.memory_mb()
    fault_s = time.monotonic()

    def is_told() -> bool:
        return is_said([*graph.printed(fault_s), *graph.reasons(fault_s)])

    try:
        _take(fault.begin, graph)
        told_s = graph.until(is_told, fault.stated_after_s + AWAIT_STATUS_S) if fault.says else None
        graph.until(lambda: time.monotonic() > fault_s + fault.lasts_s, fault.lasts_s)
    finally:
        _take(fault.mend, graph)  # else files that nobody can remove would stay
    mended_s = time.monotonic()

    def is_well() -> bool:
        return gives_since(mended_s) and not (fault.clears and is_said(graph.reasons(0.0)))

    recovery_s = graph.until(is_well, AWAIT_RECOVERY_S)
    recovered_s = time.monotonic()
    flags = (
        "window" not in fault.gives or graph.until(lambda: graph.heard("flag", mended_s), AWAIT_RECOVERY_S) is not None
    )
    grown_mb = graph.memory_mb() - memory_mb
    since_s = recovered_s if fault.forgets else began_s + POLL_S
    graph.tell_robot(talk=False)
    graph.until(lambda: not graph.lost((fault_s, recovered_s), since_s), DRAIN_S)
    is_ended = graph.end()
    lost = graph.lost((fault_s, recovered_s), since_s)
    status_s = None if told_s is None else max(0.0, told_s - fault.stated_after_s)
    problems = {
        f"lost {', '.join(lost[:3])}": lost,
        "the status did not say it": fault.says and told_s is None,
        f"the status said it after {status_s or 0:.1f} s": (status_s or 0) > STATUS_LIMIT_S,
        "it did not recover": recovery_s is None,
        "no flag came again": not flags,
        f"it recovered in {recovery_s or 0:.1f} s": (recovery_s or 0) > RECOVERY_LIMIT_S,
        f"memory grew by {grown_mb:.0f} MB": grown_mb > MEMORY_LIMIT_MB,
        "not every node ended": not is_ended,
    }
    why = "; ".join(text for text, is_so in problems.items() if is_so)
    return FaultResult(
        name=name,
        held=not why,
        lost=len(lost),
        status_s=status_s and round(status_s, 2),
        recovery_s=recovery_s and round(recovery_s, 2),
        memory_mb=round(grown_mb, 1),
        why=why,
    )


def _take(steps: Mapping[str, Any], graph: RunningGraph) -> None:
    for kind, argument in steps.items():
        STEPS[kind](graph, argument)
