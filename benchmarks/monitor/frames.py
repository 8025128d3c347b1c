"""Measure the cost of frames in the monitor: CPU time per window on the same records with and without them.

python benchmarks/monitor/frames.py [--runs 9]
"""

import argparse
import statistics
import time
from collections.abc import Sequence

import numpy as np

from norm_core.bags.reader import BagReader
from norm_core.records.frame import Frame
from norm_core.runtime.time import ReplayClock
from norm_monitor.context.meaning import Meanings
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.senses.speech.hearing import HearingConfig
from norm_monitor.senses.speech.segmenter import SegmentConfig
from norm_monitor.senses.speech.whisper import Whisper
from norm_monitor.windows.window_config import Record
from sim_replays.drivers.bag_driver import BagSenses
from sim_replays.scenarios.library import shipped

BAGS = ("garden_centre", "kiosk_directions", "zoo_keeper")
AUDIO = "/audio"


def main() -> None:
    """Print the ratio of CPU time per window, with frames to without, and its 95 % interval over runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    sessions = [records_of(bag.name) for bag in shipped() if bag.name in BAGS]
    meaning, table = Meanings.shipped(), ThresholdTable.shipped()
    for with_frames in (True, False):  # alternate, so that neither profits from a warm cache
        once(sessions, meaning, table, with_frames=with_frames)
    pairs = [
        (once(sessions, meaning, table, with_frames=True), once(sessions, meaning, table, with_frames=False))
        for _ in range(runs)
    ]
    ratios = np.array([seen / blind for seen, blind in pairs])
    drawn = np.random.default_rng(0).choice(ratios, (2000, len(ratios)))
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    seen_ms, blind_ms = (1000 * statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"a window with frames {seen_ms:.2f} ms, without {blind_ms:.2f} ms of processor time, medians of {runs} runs")
    print(f"ratio {np.median(ratios):.3f} [{low:.3f}, {high:.3f}]")


def records_of(name: str) -> list[tuple[int, Record]]:
    """Read the senses' records of a shipped bag, computed once."""
    hearing = HearingConfig(segments=SegmentConfig(partial_every_s=0))
    (path,) = (bag for bag in shipped() if bag.name == name)
    with BagReader(path) as bag:
        return list(BagSenses(bag, hearing, Whisper(hearing.whisper), AUDIO).records())


def once(
    sessions: Sequence[Sequence[tuple[int, Record]]], meaning: Meanings, table: ThresholdTable, *, with_frames: bool
) -> float:
    """Return CPU seconds per window. Clears the cache of text embeddings before each session."""
    spent_s, windows = 0.0, 0
    for records in sessions:
        meaning.forget()
        clock = ReplayClock()
        sources = ("frames", "presence", "utterances") if with_frames else ("presence", "utterances")
        monitor = Monitor(MonitorConfig.for_replay(sources), table, meaning, clock)
        began_s = time.process_time()
        for at_ns, record in records:
            if with_frames or not isinstance(record, Frame):
                clock.advance_to(max(at_ns, clock.now_ns()))
                monitor.take(record)
        monitor.end_input()
        spent_s += time.process_time() - began_s
        windows += sum(c.count for c in monitor.counters if c.name in {"windows", "windows_late"})
    return spent_s / windows


if __name__ == "__main__":
    main()
