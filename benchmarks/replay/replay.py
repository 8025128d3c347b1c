"""Measure the replay of a minute of images and sound with every model off, and of a thousand text episodes.

A plain reader of the same bag runs beside each, because ratios vary less between machines.

python benchmarks/replay/replay.py [--data FOLDER of egogapbench]

Prints the figures and writes replay.json beside this file.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import cv2
import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.replay.quiet import switch_models_off  # noqa: E402
from norm_core.bags.reader import BagReader  # noqa: E402
from norm_core.bags.writer import BagWriter  # noqa: E402
from norm_core.runtime.time import NS_PER_S  # noqa: E402
from sim_replays.drivers.node_driver import lines_of, play_command  # noqa: E402
from sim_replays.drivers.node_process import NodeProcess  # noqa: E402
from sim_replays.drivers.ros_domain import claimed_domain  # noqa: E402
from sim_replays.drivers.session_replay import hosts_for, in_process, topics_of  # noqa: E402
from sim_replays.examples.demo_session import picture_message, sound_message  # noqa: E402
from sim_replays.runs.execute import run, selector_files  # noqa: E402
from sim_replays.runs.run_config import RunConfig  # noqa: E402
from sim_replays.runs.shards import Shards  # noqa: E402
from sim_replays.runs.transport import Direct, Transport  # noqa: E402
from sim_replays.scenarios.generate import START_NS  # noqa: E402
from sim_replays.scenarios.records import AUDIO, CAMERA  # noqa: E402

LENGTH_S, FRAMES_HZ, SOUNDS_HZ = 60, 30, 10
WIDTH_PX, HEIGHT_PX = 640, 480
TIMES = 3


def build(path: Path) -> None:
    """Write 1,800 JPEGs of a camera panning over noise, and 600 chunks of a quiet room."""
    chance = np.random.default_rng(0)
    scene = cv2.GaussianBlur(chance.integers(0, 255, (HEIGHT_PX, 2 * WIDTH_PX, 3), np.uint8), (0, 0), 5)
    jpegs = [cv2.imencode(".jpg", scene[:, x : x + WIDTH_PX])[1].tobytes() for x in range(0, WIDTH_PX, 20)]
    entries: list[tuple[int, str, Any]] = []
    for index in range(LENGTH_S * FRAMES_HZ):
        stamp_ns = START_NS + index * NS_PER_S // FRAMES_HZ
        entries.append((stamp_ns, CAMERA, picture_message(jpegs[index % len(jpegs)], stamp_ns)))
    for index in range(LENGTH_S * SOUNDS_HZ):
        stamp_ns = START_NS + index * NS_PER_S // SOUNDS_HZ
        samples = chance.integers(-50, 50, 16_000 // SOUNDS_HZ).astype("<i2").tobytes()
        entries.append((stamp_ns + NS_PER_S // SOUNDS_HZ, AUDIO, sound_message(samples, stamp_ns)))
    with BagWriter(path) as bag:
        for stamp_ns, topic, message in sorted(entries, key=lambda entry: entry[:2]):
            bag.write_message(topic, message, stamp_ns)


def read_plainly(bag: Path) -> float:
    """Read every message's bytes."""
    began_s = time.perf_counter()
    with BagReader(bag) as reader:
        count = sum(1 for _ in reader.messages())
    assert count == LENGTH_S * (FRAMES_HZ + SOUNDS_HZ)
    return time.perf_counter() - began_s


def here(bag: Path) -> float:
    """Run camera, ears, windows and monitor in this process."""
    return float(list(in_process(bag))[-1].message["took_s"])


def over_dds(bag: Path) -> float:
    """Run them as nodes in lockstep. Times from the first message to the last one processed."""
    hosts = hosts_for(topics_of(bag), rate=0.0)
    program = (str(HERE / "quiet.py"),)
    with ExitStack() as stack:
        domain_id = stack.enter_context(claimed_domain())
        started = [NodeProcess(list(host), host, domain_id, program=program) for host in hosts]
        for process in started:
            process.begin()
            stack.push(process)
        for process in started:
            process.await_start()
        *_, end = lines_of(play_command(bag, hosts, quiet=True), domain_id, started)
    assert end["message"]["lost"] == {}
    assert end["message"]["sent"] == {CAMERA: 1800, AUDIO: 600}
    return float(end["message"]["took_s"])


def episodes(data: Path, folder: Path, transport: Transport) -> tuple[int, float]:
    """Build, run with the encoder and score a thousand text episodes."""
    began_s, asked = time.perf_counter(), 0
    for setting, limit in (("others-given", 590), ("captions", 410)):
        asking = RunConfig(suite="egogapbench", data=str(data), setting=setting, limit=limit)
        out = folder / setting
        found, _ = run(out, asking, selector_files("encoder"), transport, how="direct", progress=lambda *_: None)
        asked += len(found.told)
    return asked, time.perf_counter() - began_s


def measured(step: Callable[[Path], float], bag: Path, times: int) -> dict[str, Any]:
    """Return the median of several runs, beside that of plain readers in between."""
    took: list[float] = []
    plain: list[float] = []
    for _ in range(times):
        plain.append(read_plainly(bag))
        took.append(step(bag))
        sys.stderr.write(f"{step.__name__}: {took[-1]:.3f} s, plain reader {plain[-1]:.3f} s\n")
    median_s, plain_s = statistics.median(took), statistics.median(plain)
    return {
        "median_s": round(median_s, 3),
        "best_s": round(min(took), 3),
        "times_real_time": round(LENGTH_S / median_s, 1),
        "best_times_real_time": round(LENGTH_S / min(took), 1),
        "plain_reader_s": round(plain_s, 3),
        "times_a_plain_reader": round(median_s / plain_s, 1),
    }


def main() -> None:
    """Time a suite's replay in process and over DDS, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data/egogapbench")
    options = parser.parse_args()
    switch_models_off()
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load_at_begin": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }
    figures: dict[str, Any] = {"machine": machine}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder / "bag")
        here(folder / "bag")  # warms up what is loaded once
        figures["in_process"] = measured(here, folder / "bag", TIMES)
        figures["lockstep_over_dds"] = measured(over_dds, folder / "bag", TIMES)
        if options.data.is_dir():
            files = selector_files("encoder")
            for label, transport in (("one_process", Direct(files)), ("two_shards", Shards(files, 2))):
                asked, took_s = episodes(options.data, folder / label, transport)
                figures[f"text_episodes_{label}"] = {"episodes": asked, "took_s": round(took_s, 1)}
    figures["machine"]["load_at_end"] = round(os.getloadavg()[0], 2)
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    Path(__file__).with_suffix(".json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
