"""Measure the replay of a minute of images and sound with every model off.

A plain reader of the same bag runs beside each, because ratios vary less between machines.
`python -m benchmarks --only replay` runs it.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.replay.quiet import switch_models_off
from benchmarks.runner import ROOT, Figure, Report
from norm_core.bags.reader import BagReader
from norm_core.bags.writer import BagWriter
from norm_core.runtime.time import NS_PER_S
from sim_replays.drivers.node_driver import hosts_for, in_process, play_to_nodes, topics_of
from sim_replays.examples.demo_session import picture_message, sound_message
from sim_replays.scenarios.generate import AUDIO, CAMERA, START_NS

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
    *_, end = play_to_nodes(bag, hosts, quiet=True, program=(str(ROOT / "benchmarks/replay/quiet.py"),))
    assert end.message["lost"] == {}
    assert end.message["sent"] == {CAMERA: 1800, AUDIO: 600}
    return float(end.message["took_s"])


def run(report: Report, *, quick: bool) -> None:
    """Report the replay of a minute in this process and over DDS, beside plain readers in between."""
    switch_models_off()
    with tempfile.TemporaryDirectory() as name:
        bag = Path(name, "bag")
        build(bag)
        here(bag)  # warms up what is loaded once
        for title, step in (("replay_in_process", here), ("replay_lockstep", over_dds)):
            pairs = [(read_plainly(bag), step(bag)) for _ in range(TIMES if quick else 3 * TIMES)]
            speeds = [LENGTH_S / took_s for _, took_s in pairs]
            ratios = [took_s / plain_s for plain_s, took_s in pairs]
            report.add(Figure.of_runs(title, "times real time", speeds, "a plain reader's time", ratios))
