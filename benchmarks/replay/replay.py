"""Measure the replay of a minute of images and sound with every model off, and suites in two shards.

A plain reader of the same bag, or one process, runs beside each, because ratios vary less between machines.
`./tactful benchmark --only replay,shards` runs it.
"""

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.replay.quiet import switch_models_off
from benchmarks.runner import EGOGAPBENCH, ROOT, Figure, Report, SkippedError
from norm_core.bags.reader import BagReader
from norm_core.bags.writer import BagWriter
from norm_core.runtime.time import NS_PER_S
from sim_replays.drivers.node_driver import hosts_for, in_process, play_to_nodes, topics_of
from sim_replays.examples.demo_session import picture_message, sound_message
from sim_replays.runs.execute import run as execute
from sim_replays.runs.execute import selector_files
from sim_replays.runs.run_config import RunConfig
from sim_replays.runs.shards import Shards
from sim_replays.runs.transport import Direct, Transport
from sim_replays.scenarios.generate import AUDIO, CAMERA, START_NS
from sim_replays.suites import egogapbench

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


def run_shards(report: Report, *, quick: bool) -> None:
    """Report how much faster two shards answer text and picture items than one process, all with the encoder."""
    if not EGOGAPBENCH.is_dir():
        raise SkippedError(f"{EGOGAPBENCH}: is not here; set TACTFUL_SHARED to the folder with data/egogapbench")
    files = selector_files("encoder")
    settings = {
        "shards_text": {"others-given": 300} if quick else {"others-given": 590, "captions": 410},
        "shards_pictures": {"images": 100 if quick else 590},
    }
    with tempfile.TemporaryDirectory() as name:
        pictures = Path(name, "pictures")
        write_pictures(pictures)
        for title, limits in settings.items():
            pairs = []
            for number in range(2 if quick else TIMES):
                folder = Path(name, f"{title}{number}")
                one_s, two_s = (
                    answer_episodes(folder / label, transport, limits, pictures)
                    for label, transport in (("one", Direct(files)), ("two", Shards(files, 2)))
                )
                pairs.append((one_s, two_s))
            ratios = [one_s / two_s for one_s, two_s in pairs]
            seconds = [two_s for _, two_s in pairs]
            report.add(Figure.of_runs(title, "s", seconds, "the speed of one process", ratios, better="more"))


def write_pictures(folder: Path) -> None:
    """Write a JPEG for each image that the items name."""
    folder.mkdir()
    chance = np.random.default_rng(0)
    scene = cv2.GaussianBlur(chance.integers(0, 255, (HEIGHT_PX, WIDTH_PX, 3), np.uint8), (0, 0), 3)
    jpeg = cv2.imencode(".jpg", scene)[1].tobytes()
    for item in egogapbench.read(EGOGAPBENCH)[0]:
        (folder / item.file_name).write_bytes(jpeg)


def answer_episodes(folder: Path, transport: Transport, limits: Mapping[str, int], pictures: Path) -> float:
    """Build, run with the encoder and score so many episodes of each setting; return the seconds."""
    began_s = time.perf_counter()
    for setting, limit in limits.items():
        asking = RunConfig(
            suite="egogapbench", data=str(EGOGAPBENCH), setting=setting, limit=limit, pictures=str(pictures)
        )
        out = folder / setting
        execute(out, asking, selector_files("encoder"), transport, how="direct", progress=lambda *_: None)
    return time.perf_counter() - began_s
