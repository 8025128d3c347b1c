"""Measure the monitor's time from the record that completes a flag's evidence to the flag, and per window.

It replays scripted encounters of the development split record by record, with silence marks ten times a second.
Transcription is not included. Times are CPU times, which depend less on the load. For comparison, a plain loop cuts
the same windows without looking at them, and the encoder encodes one new sentence: ratios vary less between machines.
`python -m benchmarks window` runs it.
"""

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.figure import Figure
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.flag import FlagState
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.runtime.time import NS_PER_MS, ReplayClock
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import Concepts, EncoderMatcher
from norm_monitor.encounters.library import encounters
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.windows.cutter import Entry, Purpose, WindowConfig
from sim_replays.monitor_bench.script_driver import make_script_records

WINDOWS = WindowConfig(sources=(UTTERANCES,), lateness_s=0)
MARKS_EVERY_NS = 100 * NS_PER_MS
# A flag that comes later waited for a silence that its cue measures.
MAX_WAIT_MS = 1000.0
# Number of encounters, and of runs over which they are distributed.
ENCOUNTER_COUNT = 12
RUN_COUNT = 3


class RunTimes:
    """Durations in milliseconds over the encounters of one run."""

    def __init__(self) -> None:
        self.flag_ms: list[float] = []
        self.window_ms: list[float] = []
        self.plain_ms: list[float] = []
        self.sentence_ms: list[float] = []

    def run_monitor(self, entries: list[tuple[int, Entry]], matcher: EncoderMatcher) -> None:
        """Run one encounter through the monitor."""
        clock = ReplayClock()
        monitor = Monitor(MonitorConfig(windows=WINDOWS), ThresholdTable.shipped(), matcher, clock)
        arrival_ns_by_id: dict[str, int] = {}
        window_count = 0
        for now_ns, entry in entries:
            clock.advance_to(max(now_ns, clock.now_ns()))
            if isinstance(entry, Utterance):
                arrival_ns_by_id[entry.utterance_id] = now_ns
            elif isinstance(entry, RobotSpeech):
                arrival_ns_by_id[entry.speech_id] = now_ns
            started_s = time.process_time()
            flags = monitor.take(entry)
            spent_ms = 1000 * (time.process_time() - started_s)
            closed_count = sum(counter.count for counter in monitor.counters if counter.name.startswith("windows"))
            if closed_count > window_count:
                self.window_ms.append(spent_ms / (closed_count - window_count))
                window_count = closed_count
            for flag in flags:
                if flag.state is FlagState.CLOSED:
                    continue  # A closed flag decides nothing new.
                complete_ns = max((arrival_ns_by_id.get(fact.utterance_id, 0) for fact in flag.evidence), default=0)
                wait_ms = (now_ns - complete_ns) / NS_PER_MS
                if wait_ms > MAX_WAIT_MS:
                    wait_ms = 0.0  # A silence mark completes the evidence.
                self.flag_ms.append(wait_ms + spent_ms)

    def run_plain_loop(self, entries: list[tuple[int, Entry]]) -> None:
        """Run one encounter through a loop that only cuts windows."""
        cutter, watermarks = WINDOWS.cutter(), WINDOWS.watermarks()
        for _, entry in entries:
            started_s = time.process_time()
            cutter.add(entry)
            if isinstance(entry, Utterance):
                cutter.request(entry.end_ns + 1, Purpose.CUE)
            mark = watermarks.watermark_after(entry)
            windows = [*cutter.advance(*mark), *(window for window, _ in cutter.closable_windows())] if mark else []
            spent_ms = 1000 * (time.process_time() - started_s)
            self.plain_ms += [spent_ms / len(windows) for _ in windows]


def measure() -> Iterator[Figure]:
    """Measure the time from complete evidence to the flag, and the cost of a window."""
    encoder = SentenceEncoder()
    matcher = EncoderMatcher(encoder, Concepts.shipped())
    runs = [RunTimes() for _ in range(RUN_COUNT)]
    for index, encounter in enumerate(encounters("development")[:ENCOUNTER_COUNT]):
        entries, _ = make_script_records(encounter, marks_every_ns=MARKS_EVERY_NS)
        runs[index % RUN_COUNT].run_monitor(entries, matcher)
        runs[index % RUN_COUNT].run_plain_loop(entries)
    for index in range(100):
        started_s = time.process_time()
        encoder.encode([f"The train to platform {index} leaves in a few minutes"])
        runs[index % RUN_COUNT].sentence_ms.append(1000 * (time.process_time() - started_s))
    for name, measured_field, peer_field, against in (
        ("window", "window_ms", "plain_ms", "the same windows cut alone"),
        ("flag", "flag_ms", "sentence_ms", "encoding a sentence"),
    ):
        for suffix, percentile in (("", 50), ("_p95", 95)):
            values = [float(np.percentile(getattr(times, measured_field), percentile)) for times in runs]
            peers = [float(np.median(getattr(times, peer_field))) for times in runs]
            ratios = [value / peer_ms for value, peer_ms in zip(values, peers, strict=True)]
            yield Figure.of_runs(f"{name}{suffix}", "ms", values, against, ratios)
