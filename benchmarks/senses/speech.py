"""Measure the speech path: how late the final text comes, and what recognition costs.

`python -m benchmarks --only speech` runs it.
"""

import json
import statistics
import time
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from benchmarks.runner import ROOT, Figure, Report
from norm_core.records.speech import RobotSpeech, SpeechEdge
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_monitor.senses.microphone.audio_message import SoundChunk, chunks_of
from norm_monitor.senses.speech.audio_front_end import AudioFrontEnd, HearingConfig, SpeechSegment
from norm_monitor.senses.speech.segmenter import AudioSegment
from norm_monitor.senses.speech.transcriber import Transcriber
from norm_monitor.senses.speech.whisper import Whisper, model_folder

SPEECH = ROOT / "tests/norm_monitor/senses"
START_NS = 1_000 * NS_PER_S
CHUNK_S = 0.1


class Run:
    """Play one recording at its own pace through two threads, as in the node."""

    def __init__(self, config: HearingConfig, whisper: Whisper) -> None:
        self._front_end, self._transcriber = AudioFrontEnd(config), Transcriber(config, whisper, "mic")
        self._segments: Queue[SpeechSegment | None] = Queue()
        self.segments: list[AudioSegment] = []
        self.latencies_s: list[float] = []
        self._begun_s = 0.0

    def play(self, sound: Path, edges: list[RobotSpeech]) -> None:
        """Feed a recording and the robot's speech edges in real time, and wait for the last words."""
        writer = Thread(target=self._write)
        writer.start()
        self._begun_s = time.monotonic()
        for chunk in self._in_tenths(sound):
            end_ns = chunk.stamp_ns + len(chunk.samples) * NS_PER_S // chunk.rate_hz
            time.sleep(max(0.0, self._begun_s + ns_to_s(end_ns - START_NS) - time.monotonic()))
            while edges and edges[0].stamp_ns <= end_ns:
                self._front_end.take_robot_speech(edges.pop(0))
            for speech in self._front_end.take_sound(chunk, end_ns):
                # As in the node, partial segments are skipped while anything waits.
                if speech.segment.final or self._segments.empty():
                    self._segments.put(speech)
        for speech in self._front_end.flush():
            self._segments.put(speech)
        self._segments.put(None)
        writer.join()

    def _in_tenths(self, sound: Path) -> Any:
        for chunk in chunks_of(sound, START_NS):
            step = round(CHUNK_S * chunk.rate_hz)
            for first in range(0, len(chunk.samples), step):
                stamp_ns = (chunk.stamp_ns or 0) + first * NS_PER_S // chunk.rate_hz
                part = chunk.samples[first : first + step]
                yield SoundChunk(samples=part, rate_hz=chunk.rate_hz, stamp_ns=stamp_ns)

    def _write(self) -> None:
        while (speech := self._segments.get()) is not None:
            self._transcriber.transcribe(speech)
            if not speech.segment.final:
                continue
            self.segments.append(speech.segment)
            ended_s = self._begun_s + ns_to_s(speech.segment.end_ns - START_NS)
            self.latencies_s.append(time.monotonic() - ended_s)


def edges_of(turns: list[dict[str, Any]]) -> list[RobotSpeech]:
    """Return the start and stop messages of the robot's turns, by stamp."""
    edges = [
        RobotSpeech(stamp_ns=START_NS + s_to_ns(turn[at]), speech_id=f"s{index}", state=state, text=turn["text"])
        for index, turn in enumerate(turns)
        for state, at in ((SpeechEdge.START, "start_s"), (SpeechEdge.STOP, "end_s"))
    ]
    return sorted(edges, key=lambda edge: edge.stamp_ns)


def side_by_side(whisper: Whisper, segments: list[AudioSegment]) -> dict[str, list[float]]:
    """Return wall and CPU seconds for the same sound: ours and plain faster-whisper with word times, in turns."""
    from faster_whisper import WhisperModel

    model = WhisperModel(str(model_folder("")), device="cpu", compute_type="float32", cpu_threads=2)

    def alone(segment: AudioSegment) -> None:
        list(model.transcribe(segment.samples, language="en", beam_size=1, temperature=0.0, word_timestamps=True)[0])

    alone(segments[0])
    taken: dict[str, list[float]] = {"ours": [], "ours_cpu": [], "alone": [], "alone_cpu": []}
    for segment in segments:
        for name, recognize in (("ours", whisper.recognize), ("alone", alone)):
            begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
            recognize(segment)
            taken[name].append(time.perf_counter() - begun_s)
            taken[f"{name}_cpu"].append(time.process_time() - begun_cpu_s)
    return taken


def p95(values: list[float]) -> float:
    """Return the value at the 95th percentile, by nearest rank."""
    return sorted(values)[min(len(values) - 1, round(0.95 * (len(values) - 1)))]


def run(report: Report, *, quick: bool) -> None:
    """Play a conversation, and where it is not quick mixed voices, through the ears."""
    config = HearingConfig()
    whisper = Whisper(config.whisper)
    whisper.warm_up()
    conversation = json.loads((SPEECH / "conversation.json").read_text(encoding="utf-8"))
    scenes = json.loads((SPEECH / "mixtures.json").read_text(encoding="utf-8"))
    turns = {"conversation": [turn for turn in conversation if turn["speaker"] == "robot"]}
    if not quick:
        turns["mixtures"] = [scene["robot"] for scene in scenes if "robot" in scene]
    runs = []
    for name, robot_turns in turns.items():
        runs.append(Run(config, whisper))
        runs[-1].play(SPEECH / f"{name}.flac", edges_of(robot_turns))
    latencies_s = [latency for run in runs for latency in run.latencies_s]
    taken = side_by_side(whisper, [segment for run in runs for segment in run.segments])
    ratios = [ours / alone for ours, alone in zip(taken["ours_cpu"], taken["alone_cpu"], strict=True)]
    alone_s = statistics.median(taken["alone"])
    against = "faster-whisper alone, of processor seconds"
    report.add(
        Figure.of_runs("recognition", "s", taken["ours"], against, ratios),
    )
    for name, late_s in (("final_text", statistics.median(latencies_s)), ("final_text_p95", p95(latencies_s))):
        ratio = round(late_s / alone_s, 2)
        report.add(Figure(name, round(late_s, 2), "s after the end of speech", "faster-whisper alone", ratio))
