"""Measure the monitor's time from the record that completes a flag's evidence to the flag, and per window.

It replays scripted encounters of the development split record by record, with silence marks ten times a second.
Transcription is not included. Times are CPU times, which depend less on the load. For
comparison, a plain loop cuts the same windows without looking at them, and the encoder encodes one new sentence: ratios
vary less between machines. `python -m benchmarks --only window` runs it.
"""

import time

import numpy as np

from benchmarks.runner import Figure, Report
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
from sim_replays.monitor_bench.script_driver import records_of_script

WINDOWS = WindowConfig(sources=(UTTERANCES,), lateness_s=0)
MARKS_EVERY_NS = 100 * NS_PER_MS
# A later flag waited for a silence that its cue measures.
MOST_WAIT_MS = 1000.0
RUNS = 3  # the encounters are dealt out to so many


class Measured:
    """Durations in milliseconds, over the encounters of one run."""

    def __init__(self) -> None:
        self.flag_ms: list[float] = []
        self.wait_ms: list[float] = []
        self.window_ms: list[float] = []
        self.plain_ms: list[float] = []
        self.sentence_ms: list[float] = []
        self.for_silence = 0

    def follow(self, entries: list[tuple[int, Entry]], meaning: EncoderMatcher) -> None:
        """Run one encounter through the monitor."""
        clock = ReplayClock()
        monitor = Monitor(MonitorConfig(windows=WINDOWS), ThresholdTable.shipped(), meaning, clock)
        arrived: dict[str, int] = {}
        windows = 0
        for now_ns, entry in entries:
            clock.advance_to(max(now_ns, clock.now_ns()))
            if isinstance(entry, Utterance):
                arrived[entry.utterance_id] = now_ns
            elif isinstance(entry, RobotSpeech):
                arrived[entry.speech_id] = now_ns
            began_s = time.process_time()
            flags = monitor.take(entry)
            took_ms = 1000 * (time.process_time() - began_s)
            closed = sum(counter.count for counter in monitor.counters if counter.name.startswith("windows"))
            if closed > windows:
                self.window_ms.append(took_ms / (closed - windows))
                windows = closed
            for flag in flags:
                if flag.state is FlagState.CLOSED:
                    continue  # it decides nothing new
                complete_ns = max((arrived.get(fact.utterance_id, 0) for fact in flag.evidence), default=0)
                wait_ms = (now_ns - complete_ns) / NS_PER_MS
                if wait_ms > MOST_WAIT_MS:
                    self.for_silence += 1
                    wait_ms = 0.0  # a silence mark completes it
                self.wait_ms.append(wait_ms)
                self.flag_ms.append(wait_ms + took_ms)

    def follow_plainly(self, entries: list[tuple[int, Entry]]) -> None:
        """Run one encounter through a loop that only cuts windows."""
        cutter, watermarks = WINDOWS.cutter(), WINDOWS.watermarks()
        for _, entry in entries:
            began_s = time.process_time()
            cutter.add(entry)
            if isinstance(entry, Utterance):
                cutter.request(entry.end_ns + 1, Purpose.CUE)
            mark = watermarks.watermark_after(entry)
            closed = [*cutter.advance(*mark), *(window for window, _ in cutter.closable_windows())] if mark else []
            took_ms = 1000 * (time.process_time() - began_s)
            self.plain_ms += [took_ms / len(closed) for _ in closed]


def run(report: Report, *, quick: bool) -> None:
    """Report the time from complete evidence to the flag, and the cost of a window."""
    encoder = SentenceEncoder()
    runs, meaning = [Measured() for _ in range(RUNS)], EncoderMatcher(encoder, Concepts.shipped())
    for number, encounter in enumerate(encounters("development")[: 6 if quick else 21]):
        entries, _ = records_of_script(encounter, marks_every_ns=MARKS_EVERY_NS)
        runs[number % RUNS].follow(entries, meaning)
        runs[number % RUNS].follow_plainly(entries)
    for number in range(100):
        began_s = time.process_time()
        encoder.encode([f"The train to platform {number} leaves in a few minutes"])
        runs[number % RUNS].sentence_ms.append(1000 * (time.process_time() - began_s))
    for name, ours, peer, against in (
        ("window", "window_ms", "plain_ms", "the same windows cut alone"),
        ("flag", "flag_ms", "sentence_ms", "encoding a sentence"),
    ):
        for suffix, share in (("", 50), ("_p95", 95)):
            values = [float(np.percentile(getattr(measured, ours), share)) for measured in runs]
            peers = [float(np.median(getattr(measured, peer))) for measured in runs]
            ratios = [value / peer_ms for value, peer_ms in zip(values, peers, strict=True)]
            report.add(Figure.of_runs(f"{name}{suffix}", "ms", values, against, ratios))
    wait_ms = [ms for measured in runs for ms in measured.wait_ms]
    silences = sum(measured.for_silence for measured in runs)
    report.note(flags=len(wait_ms), silences=silences, wait_ms=float(np.median(wait_ms)))
