"""Measure the cost of frames in the monitor, on the same records with and without them.

The cost is CPU time per window, CPU time of the record that completes a flag's evidence, and how long after its
evidence a flag is known by the stamps, as windows with a camera wait for its frames.

python benchmarks/monitor/frames.py [--runs 9]
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from norm_core.bags.reader import BagReader
from norm_core.records.flag import FlagState
from norm_core.records.frame import Frame
from norm_core.runtime.time import ReplayClock, ns_to_s
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


class Cost(NamedTuple):
    """What one replay of all sessions cost."""

    window_s: float  # CPU time per window
    flag_s: list[float]  # CPU time of each record that opened a flag
    delays_s: list[float]  # stamp time from a flag's evidence to the decision


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
    ratios = np.array([seen.window_s / blind.window_s for seen, blind in pairs])
    drawn = np.random.default_rng(0).choice(ratios, (2000, len(ratios)))
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    for name, column in zip(("with frames", "without"), zip(*pairs, strict=True), strict=True):
        window_ms = 1000 * statistics.median(cost.window_s for cost in column)
        flag_ms = 1000 * np.percentile([s for cost in column for s in cost.flag_s], 95)
        delays_s = np.percentile(column[0].delays_s, [50, 95])
        print(
            f"{name}: a window takes {window_ms:.2f} ms of CPU time, the record that completes a flag's evidence "
            f"{flag_ms:.1f} ms (p95); a flag is known {delays_s[0]:.2f} s after its evidence (p95 {delays_s[1]:.2f} s)"
        )
    print(f"ratio of windows {np.median(ratios):.3f} [{low:.3f}, {high:.3f}], {runs} runs")


def records_of(name: str) -> list[tuple[int, Record]]:
    """Read the senses' records of a shipped bag, computed once."""
    hearing = HearingConfig(segments=SegmentConfig(partial_every_s=0))
    (path,) = (bag for bag in shipped() if bag.name == name)
    with BagReader(path) as bag:
        return list(BagSenses(bag, hearing, Whisper(hearing.whisper), AUDIO).records())


def once(
    sessions: Sequence[Sequence[tuple[int, Record]]], meaning: Meanings, table: ThresholdTable, *, with_frames: bool
) -> Cost:
    """Replay all sessions. Clears the cache of text embeddings before each."""
    spent_s, windows = 0.0, 0
    flag_s: list[float] = []
    delays_s: list[float] = []
    for records in sessions:
        meaning.forget()
        clock = ReplayClock()
        sources = ("frames", "presence", "utterances") if with_frames else ("presence", "utterances")
        monitor = Monitor(MonitorConfig.for_replay(sources), table, meaning, clock)
        began_s = time.process_time()
        for at_ns, record in records:
            if with_frames or not isinstance(record, Frame):
                clock.advance_to(max(at_ns, clock.now_ns()))
                record_began_s = time.process_time()
                opened = [flag for flag in monitor.take(record) if flag.state is FlagState.OPENED]
                if opened:
                    flag_s.append(time.process_time() - record_began_s)
                    delays_s += [ns_to_s(flag.decision_ns - flag.known_until_ns) for flag in opened]
        monitor.end_input()
        spent_s += time.process_time() - began_s
        windows += sum(c.count for c in monitor.counters if c.name in {"windows", "windows_late"})
    return Cost(spent_s / windows, flag_s, delays_s)


if __name__ == "__main__":
    main()
