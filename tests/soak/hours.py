"""Hours of talk in this process without a pause, or minutes of the nodes: what both leave behind in the machine."""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from action_selector.selector import SelectorFiles, open_selector
from norm_core.health.health_log import HealthLog
from norm_core.health.node_watch import release_freed_memory
from norm_core.records.episode import Query
from norm_core.records.speech import RobotSpeech
from norm_core.runtime.config import Config
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.encounters.generate import START_NS
from norm_monitor.encounters.library import encounters
from norm_monitor.replay.bag_driver import make_replay_monitor
from norm_monitor.replay.node_process import claim_domain
from norm_monitor.session_log.live_log import LiveLog
from norm_monitor.session_log.schema import KINDS, SessionInfo
from norm_monitor.session_log.writer import StudyLog
from sim_replays.monitor_bench.script_driver import make_script_records
from tests.soak.running_graph import RunningGraph

SAMPLE_NS, PAUSE_NS, HOUR_NS = 360 * NS_PER_S, 5 * NS_PER_S, 3600 * NS_PER_S
SHORTEST_H, SHORTEST_MIN = 0.25, 2.0  # for two samples
WARM_UP = 1 / 3  # of the samples: caches and the memory of talk fill up
FLUSH_S = 60.0
# The nodes of `up simulated`, with speech of shipped encounters and 30 pictures of 640x480 a second from a robot.
NODES: dict[str, dict[str, str]] = {
    "camera": {"topic": "/soak/camera"},
    "ears": {"audio_topic": "/simulated/audio", "audio_type": "std_msgs/msg/UInt8MultiArray"},
    **{node: {} for node in ("encounter_player", "monitor", "selector")},
}
ROBOT = {"rate": 3, "width": 640, "talk": False}
# The growth an hour, in percent of the first value after the warm-up, from which something is said to grow.
LIMITS = {"memory_mb": 1.0, "handles": 1.0, "threads": 1.0, "latency_ms": 10.0}


class SoakSample(Config):
    """What the processes take after some hours, and how late the slowest hundredth of records is.

    `latency_ms` is the processor time of a record in this process; of nodes, the delay of a picture until it is known.
    """

    hours: float
    memory_mb: float
    handles: int
    threads: int
    latency_ms: float
    flags: int
    memory_by_process: dict[str, float] = Field(default_factory=dict)


class SoakReport(Config):
    """All samples, and the growth an hour of each quantity after the warm-up, in percent."""

    samples: tuple[SoakSample, ...]
    growth_percent_an_hour: dict[str, float]
    grows: tuple[str, ...]


def run_hours(hours: float, on_sample: Callable[[SoakSample], None] = lambda sample: None) -> SoakReport:
    """Run a monitor, a selector and a study log on the shipped encounters, one after another."""
    with tempfile.TemporaryDirectory(prefix="tactful-soak-") as folder:
        return _report(tuple(_sampled(hours, Path(folder), on_sample)))


def run_minutes(minutes: float, on_sample: Callable[[SoakSample], None] = lambda sample: None) -> SoakReport:
    """Run the nodes of `up` in real time, with a camera and speech, and look at their processes each minute."""
    with claim_domain() as domain, tempfile.TemporaryDirectory(prefix="tactful-soak-") as folder:
        os.environ["ROS_DOMAIN_ID"] = str(domain)
        samples, began_s = list[SoakSample](), time.monotonic()
        try:
            with RunningGraph(Path(folder), NODES, ROBOT) as graph:
                graph.take_messages()  # of the start
                while len(samples) < minutes:
                    graph.until(lambda: False, 60.0)
                    samples.append(_sample_nodes(graph, began_s, samples[-1].flags if samples else 0))
                    on_sample(samples[-1])
        except (RuntimeError, OSError) as error:
            why = f"soak: the nodes stopped after {len(samples)} min: {error}; try them with {PROGRAM} up simulated"
            raise TactfulError(why) from error
    return _report(tuple(samples))


def _sample_nodes(graph: RunningGraph, began_s: float, flags: int) -> SoakSample:
    pids, messages = graph.pids(), graph.take_messages()
    delays_s = [at_s - line.read().stamp_ns / NS_PER_S for at_s, line in messages if line.kind == "presence"]
    if missing := [*sorted(NODES.keys() - pids.keys()), *([] if delays_s else ["pictures with their presence"])]:
        raise RuntimeError("; ".join([f"no {', '.join(missing)} in the last minute", *graph.reasons(0.0)]))
    memory_mb = {pid: _held_mb(pid) for pid in pids.values()}  # nodes may share a process
    return SoakSample(
        hours=round((time.monotonic() - began_s) / 3600, 6),
        memory_mb=round(sum(memory_mb.values()), 1),
        handles=sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in memory_mb),
        threads=sum(len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in memory_mb),
        latency_ms=round(1000 * (float(np.percentile(delays_s, 99)) + time.time() - time.monotonic()), 2),
        flags=flags + sum(line.kind == "flag" for _, line in messages),
        memory_by_process={"+".join(n for n in pids if pids[n] == pid): memory_mb[pid] for pid in memory_mb},
    )


def _held_mb(pid: int) -> float:
    """Return the anonymous memory of a process: the system takes pages of files back when it likes."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    return round(sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024, 1)


def _report(samples: tuple[SoakSample, ...]) -> SoakReport:
    settled = samples[int(len(samples) * WARM_UP) :]
    growth = {name: growth_of(settled, name) for name in LIMITS}
    return SoakReport(
        samples=samples,
        growth_percent_an_hour=growth,
        grows=tuple(name for name, percent in growth.items() if percent > LIMITS[name]),
    )


def growth_of(samples: tuple[SoakSample, ...], name: str) -> float:
    """Return the slope of a straight line through some samples, in percent of the first one an hour."""
    if len(samples) < 2:
        return 0.0
    values = [float(getattr(sample, name)) for sample in samples]
    slope = float(np.polyfit([sample.hours for sample in samples], values, 1)[0])
    return round(100 * slope / (values[0] or 1.0), 2)


def _sampled(hours: float, folder: Path, on_sample: Callable[[SoakSample], None]) -> Iterator[SoakSample]:
    clock = ReplayClock()
    monitor, selector = make_replay_monitor((UTTERANCES,), clock), open_selector(SelectorFiles(), clock)
    info, log_clock = SessionInfo(study="soak", session="S1"), ReplayClock(START_NS)
    log = LiveLog(lambda: StudyLog.begin(folder / "study", info, log_clock), HealthLog())
    flags, latencies_s, due_ns = 0, [], START_NS + SAMPLE_NS
    try:
        for at_ns, entry in _talk(round(hours * HOUR_NS)):
            clock.advance_to(max(at_ns, clock.now_ns()))
            began_s = time.thread_time()
            records: list[Any] = monitor.take(entry)
            monitor.closed_windows()
            flags += len(records)
            if isinstance(entry, Query):
                records += [selector.decide(due).decision for due in selector.take(entry)]
            latencies_s.append(time.thread_time() - began_s)
            for record in (entry, *records):
                if type(record) in KINDS:
                    log.put(record, at_ns)
            if at_ns >= due_ns:
                log.flush(FLUSH_S)
                sample = _sample((at_ns - START_NS) / HOUR_NS, latencies_s, flags)
                on_sample(sample)
                yield sample
                latencies_s, due_ns = [], due_ns + SAMPLE_NS
    finally:
        log.close()


def _talk(length_ns: int) -> Iterator[tuple[int, Any]]:
    """Yield the records of one encounter after another, each ended by a question to the selector.

    Those of the warm-up come again after it, so that caches of words are full by then.
    """
    scenes, start_ns, count = encounters("development"), START_NS, 0
    round_count = len(scenes)
    while start_ns < START_NS + length_ns:
        if start_ns > START_NS + WARM_UP * length_ns:
            round_count = min(round_count, count)
        entries, truth = make_script_records(scenes[count % round_count], seed=count, start_ns=start_ns)
        for at_ns, entry in entries:
            if isinstance(entry, RobotSpeech):
                yield at_ns, replace(entry, speech_id=f"{entry.speech_id}-{count}")
            else:
                yield at_ns, entry
        options = (f"Greet guest {count}.", "Do nothing.", "Give way.")
        yield (
            truth.end_ns,
            Query(stamp_ns=truth.end_ns, query_id=f"q{count}", episode_id="", task="action", options=options),
        )
        start_ns, count = truth.end_ns + PAUSE_NS, count + 1


def _sample(hours: float, latencies_s: list[float], flags: int) -> SoakSample:
    release_freed_memory()
    return SoakSample(
        hours=round(hours, 3),
        memory_mb=_held_mb(os.getpid()),
        handles=len(list(Path("/proc/self/fd").iterdir())),
        threads=threading.active_count(),
        latency_ms=round(1000 * float(np.percentile(latencies_s, 99)), 2),
        flags=flags,
    )
