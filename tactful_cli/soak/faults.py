"""The faults: what each does to the nodes, what the status must then say, and what must hold."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

from norm_core.records.record import record
from norm_core.runtime.config import Config
from sim_replays.drivers.node_process import claimed_domain
from tactful_cli.soak.model_server import MODEL, ModelServer
from tactful_cli.soak.running_graph import POLL_S, STUDY, RunningGraph
from tactful_cli.up.node_board import SILENT_AFTER_S

STATUS_LIMIT_S, RECOVERY_LIMIT_S, MEMORY_LIMIT_MB = 2.0, 5.0, 200.0
AWAIT_STATUS_S, AWAIT_RECOVERY_S, DRAIN_S = 15.0, 120.0, 10.0
# How long a node waits for its input here; the status says so within STATUS_LIMIT_S after it.
STALE_S = 1.0
# At half the pace of time: until the newest 20 pictures, one each two seconds, come some 5 s late.
DRIFT_S = 56.0
Step = Callable[[RunningGraph], object]

PROFILE: Mapping[str, Mapping[str, Any]] = {
    "camera": {"topic": "/soak/camera", "stale_after_s": STALE_S},
    "ears": {
        "words_from": "topic",
        "words_topic": "/soak/heard",
        "words_type": "std_msgs/msg/String",
        "is_speaking_topic": "/soak/person_speaks",
        "robot_speech_topic": "/soak/words",
        "robot_speaking_topic": "/soak/voice",
        "stale_after_s": STALE_S,
    },
    "monitor": {
        "reader": "none",
        "fusion": {"sensitivity": "keen"},
        "study": {"name": "soak", "session": "S1"},
    },
}
# A moment is judged at the end of its window, some seconds later, with this deadline.
DEADLINE_S, JUDGED_S = 2.0, 4.0
JUDGE = {"model": MODEL, "deadline_s": DEADLINE_S, "note_tokens": 0}
SOUND = {"audio_topic": "/soak/sound", "audio_type": "std_msgs/msg/UInt8MultiArray", "stale_after_s": STALE_S}


class FaultResult(Config):
    """What a fault did."""

    name: str
    held: bool
    lost: int
    status_s: float | None
    recovery_s: float | None
    memory_mb: float = 0.0
    why: str = ""


@record
class Fault:
    """A fault: how it begins and is mended, and a pattern of what `up` or a status says meanwhile, "" for nothing."""

    name: str
    begin: Step
    says: str = ""
    mend: Step = lambda graph: None
    lasts_s: float = 2.0
    is_quick: bool = False
    told_after_s: float = 0.0  # the time that the parameters give a fault before it counts
    gives: tuple[str, ...] = ("utterance", "presence", "window")  # what comes again afterwards, and then a flag
    forgets: bool = False  # the fault itself removes what was recorded
    clears: bool = False  # whether the status must no longer say it once all is well
    has_server: bool = False  # whether the monitor has a judge behind a server
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def _signal(node: str, number: signal.Signals) -> Step:
    return lambda graph: os.kill(graph.pids()[node], number)


def _robot(**command: Any) -> Step:
    return lambda graph: graph.tell_robot(**command)


def _limit(kind: int, value_of: Callable[[int], int]) -> Step:
    """Limit the monitor to a value of its process."""

    def step(graph: RunningGraph) -> None:
        pid = graph.pids()["monitor"]
        resource.prlimit(pid, kind, (value_of(pid), resource.prlimit(pid, kind)[1]))

    return step


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _server(step: Callable[[ModelServer], None]) -> Step:
    def take(graph: RunningGraph) -> None:
        assert graph.server
        step(graph.server)

    return take


def _remove_log(graph: RunningGraph) -> None:
    shutil.rmtree(graph.folder / STUDY)


def _second_monitor(graph: RunningGraph) -> None:
    """Start a second monitor in the domain, and wait until it gives way."""
    command = [sys.executable, "-m", "norm_nodes.node_host", "monitor", "--autostart", f"--parent={os.getpid()}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        code = process.wait(AWAIT_STATUS_S)
    finally:
        process.kill()
        process.wait()
    if code != 4:
        raise RuntimeError(f"the second monitor ended with {code}, not with 4")


def _starve(graph: RunningGraph) -> None:
    """Keep every core busy for three seconds."""
    spin = "import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: pass"
    others = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(2 * (os.cpu_count() or 1))]
    for other in others:
        other.wait()


FULL = _limit(resource.RLIMIT_FSIZE, lambda _: 0)
ROOM = _limit(resource.RLIMIT_FSIZE, lambda pid: resource.prlimit(pid, resource.RLIMIT_FSIZE)[1])
NODES = (*PROFILE, "selector", "bag_recorder")
RECORDER = {"topics": ["/tactful/utterances", "/tactful/flags"]}

FAULTS = (
    *(
        Fault(
            name=f"kill_{node}",
            begin=_signal(node, signal.SIGKILL),
            says=rf"{node}: was ended by SIGKILL",
            lasts_s=0.0,
            is_quick=node in PROFILE,
            settings={} if node in PROFILE else {node: RECORDER if node == "bag_recorder" else {}},
        )
        for node in NODES
    ),
    *(
        Fault(
            name=f"stop_{node}",
            begin=_signal(node, signal.SIGSTOP),
            says=rf"{node}: no heartbeat",
            told_after_s=SILENT_AFTER_S,
            mend=_signal(node, signal.SIGCONT),
            lasts_s=seconds,
            is_quick=is_quick,
        )
        for node, seconds, is_quick in (("monitor", 5.0, True), ("ears", 30.0, False), ("camera", 30.0, False))
    ),
    Fault(
        name="camera_lost", begin=_robot(camera=False), mend=_robot(camera=True), says=r"/soak/camera: no image",
        clears=True, is_quick=True, told_after_s=STALE_S,
    ),
    Fault(
        name="microphone_lost", begin=_robot(sound=False), mend=_robot(sound=True), says=r"/soak/sound: no audio",
        clears=True, is_quick=True, told_after_s=STALE_S, gives=("presence",), settings={"ears": SOUND},
    ),
    Fault(name="stamps_frozen", begin=_robot(stamps="frozen"), mend=_robot(stamps="now"), says="stamp", is_quick=True),
    Fault(
        name="stamps_drifting", begin=_robot(stamps="drifting"), mend=_robot(stamps="now"), says="is stamped .* behind",
        told_after_s=DRIFT_S,
    ),
    Fault(
        name="clock_hour_ahead", begin=_robot(offset_s=3600.0), mend=_robot(offset_s=0.0), says="stamp|clock",
        is_quick=True,
    ),
    Fault(name="clock_hour_back", begin=_robot(offset_s=-3600.0), mend=_robot(offset_s=0.0), says="stamp|clock"),
    Fault(name="ten_times_the_rate", begin=_robot(rate=10), mend=_robot(rate=1), lasts_s=8.0, is_quick=True),
    Fault(name="pictures_4k", begin=_robot(width=3840), mend=_robot(width=64), lasts_s=8.0),
    Fault(name="text_of_megabytes", begin=_robot(shout=8_000_000), says="cut|longer|was not used", is_quick=True),
    Fault(
        name="log_folder_removed", begin=_remove_log, says="study log: .*(was removed|begun anew|lacks)", is_quick=True,
        forgets=True,
    ),
    Fault(name="disk_full", begin=FULL, mend=ROOM, says="study log: .* not be written", lasts_s=4.0, clears=True,
        is_quick=True),
    Fault(
        name="engine_hung", begin=_server(ModelServer.hang), mend=_server(ModelServer.answer),
        says="judge: .*timed out", told_after_s=JUDGED_S + DEADLINE_S, is_quick=True, clears=True, has_server=True,
    ),
    Fault(
        name="server_gone", begin=_server(ModelServer.go), mend=_server(ModelServer.come), says="cannot be reached",
        told_after_s=JUDGED_S, clears=True, has_server=True,
    ),
    Fault(
        name="descriptors_used_up",
        begin=_limit(resource.RLIMIT_NOFILE, _open_files),
        mend=_limit(resource.RLIMIT_NOFILE, lambda pid: _open_files(pid) + 100),
    ),
    Fault(name="processor_starved", begin=_starve),
    Fault(name="second_monitor", begin=_second_monitor, is_quick=True),
    Fault(name="foreign_publisher", begin=_robot(intrude=True), lasts_s=6.0, is_quick=True),
)  # fmt: skip


def run_fault(fault: Fault) -> FaultResult:
    """Run one fault against nodes of its own, on a domain of its own."""
    with claimed_domain() as domain, tempfile.TemporaryDirectory(prefix="tactful-soak-") as name, _domain(domain):
        folder = Path(name)
        profile = {
            node: {**PROFILE.get(node, {}), **fault.settings.get(node, {})} for node in (*PROFILE, *fault.settings)
        }
        if "ears" in fault.settings:
            profile["ears"] = dict(fault.settings["ears"])
        study = {**profile["monitor"]["study"], "log": str(folder / STUDY)}
        profile["monitor"] = {**profile["monitor"], "study": study, **({"judge": JUDGE} if fault.has_server else {})}
        if "bag_recorder" in profile:
            profile["bag_recorder"]["bag"] = str(folder / "bag")
        server = ModelServer(folder / "models") if fault.has_server else None
        os.environ["TACTFUL_MODELS"] = str(folder / "models")  # of this process, which runs one fault
        try:
            with RunningGraph(folder, profile, server) as graph:
                return _measure(fault, graph)
        except (TimeoutError, RuntimeError, OSError) as error:
            why = f"{type(error).__name__}: {error}"
            return FaultResult(name=fault.name, held=False, lost=0, status_s=None, recovery_s=None, why=why)


@contextmanager
def _domain(number: int) -> Iterator[None]:
    before = os.environ.get("ROS_DOMAIN_ID")
    os.environ["ROS_DOMAIN_ID"] = str(number)
    try:
        yield
    finally:
        os.environ.pop("ROS_DOMAIN_ID")
        if before is not None:
            os.environ["ROS_DOMAIN_ID"] = before


def _measure(fault: Fault, graph: RunningGraph) -> FaultResult:
    """Begin the fault once all is well, mend it, and say what held."""

    def gives_since(since_s: float) -> bool:
        return graph.are_active(since_s) and all(graph.heard(kind, since_s) for kind in fault.gives)

    began_s = time.monotonic()
    if graph.until(lambda: gives_since(began_s), AWAIT_RECOVERY_S) is None:
        given = {kind: len(graph.heard(kind)) for kind in fault.gives}
        raise TimeoutError(f"nothing to harm: {given}; {graph.reasons(began_s)}")
    graph.measure_memory()
    fault_s = time.monotonic()
    fault.begin(graph)

    def is_told() -> bool:
        lines = [line.text for line in graph.output if line.at_s >= fault_s]
        return any(re.search(fault.says, text) for text in (*lines, *graph.reasons(fault_s)))

    told_s = graph.until(is_told, fault.told_after_s + AWAIT_STATUS_S) if fault.says else None
    graph.until(lambda: time.monotonic() > fault_s + fault.lasts_s, fault.lasts_s)
    fault.mend(graph)
    mended_s = time.monotonic()

    def is_well() -> bool:
        says = fault.clears and any(re.search(fault.says, text) for text in graph.reasons(0.0))
        return gives_since(mended_s) and not says

    recovery_s = graph.until(is_well, AWAIT_RECOVERY_S)
    recovered_s = time.monotonic()
    flags = (
        "window" not in fault.gives or graph.until(lambda: graph.heard("flag", mended_s), AWAIT_RECOVERY_S) is not None
    )
    graph.measure_memory()
    since_s = recovered_s if fault.forgets else began_s + POLL_S
    graph.tell_robot(talk=False)
    graph.until(lambda: not graph.lost((fault_s, recovered_s), since_s), DRAIN_S)
    is_ended = graph.end()
    lost = graph.lost((fault_s, recovered_s), since_s)
    status_s = None if told_s is None else max(0.0, told_s - fault.told_after_s)
    grown_mb = graph.memory_mb[-1] - graph.memory_mb[0]
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
        name=fault.name,
        held=not why,
        lost=len(lost),
        status_s=status_s and round(status_s, 2),
        recovery_s=recovery_s and round(recovery_s, 2),
        memory_mb=round(grown_mb, 1),
        why=why,
    )
