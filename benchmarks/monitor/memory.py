"""Measure how much memory the monitor holds over a simulated day of talk.

A person and a robot exchange two turns every twelve seconds, always in new words. The monitor's state is pickled
after some hours, without the sentence encoder and its caches, which have a fixed bound.

python benchmarks/monitor/memory.py [--hours N]
"""

import argparse
import pickle
import time
from collections.abc import Iterator
from typing import Any

from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance, silence_mark
from norm_core.runtime.time import ReplayClock, s_to_ns
from norm_core.runtime.watermarks import UTTERANCES
from norm_monitor.context.meaning import Meanings
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.windows.cutter import Entry

EVERY_S = 12
SHOWN_H = (1, 2, 4, 8, 16, 24)


def talk(number: int) -> Iterator[Entry]:
    """Yield one exchange: a question, a late answer now and then, and silence."""
    start_s = number * EVERY_S
    answer_s = start_s + 4 + 5 * (number % 7 == 0)
    yield Utterance(
        stamp_ns=s_to_ns(start_s),
        utterance_id=f"u{number}",
        speaker=Speaker.USER,
        text=f"Where can I find room number {number}, please, and my friend {number * 7}?",
        start_ns=s_to_ns(start_s),
        end_ns=s_to_ns(start_s + 3),
        source_topic="audio",
    )
    text = f"Room {number} is on floor {number % 9}, the friend has left."
    yield RobotSpeech(stamp_ns=s_to_ns(answer_s), speech_id=f"r{number}", state=SpeechEdge.START, text=text)
    yield RobotSpeech(stamp_ns=s_to_ns(answer_s + 2), speech_id=f"r{number}", state=SpeechEdge.STOP)
    yield silence_mark(s_to_ns(start_s + EVERY_S - 1), "audio")


class _Unpickled:
    """Stands for the sentence meanings, which hold a model."""


class _StatePickler(pickle.Pickler):
    def reducer_override(self, obj: object) -> Any:
        return (_Unpickled, ()) if isinstance(obj, Meanings) else NotImplemented


class _Count:
    """A file that only counts bytes."""

    size = 0

    def write(self, data: bytes) -> int:
        self.size += len(data)
        return len(data)


def held_bytes(monitor: Monitor) -> int:
    """Return the size of the monitor's pickled state in bytes."""
    count = _Count()
    _StatePickler(count).dump(monitor)
    return count.size


def main() -> None:
    """Print the size of the state after some hours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=24)
    hours = parser.parse_args().hours
    clock = ReplayClock()
    config = MonitorConfig.for_replay((UTTERANCES,), calls_per_hour=240.0)
    monitor = Monitor(config, ThresholdTable.shipped(), Meanings.shipped(), clock)
    began_s, flags = time.process_time(), 0
    for number in range(hours * 3600 // EVERY_S):
        for entry in talk(number):
            clock.advance_to(max(clock.now_ns(), entry.stamp_ns))
            flags += len(monitor.take(entry))
        monitor.units_to_judge()
        monitor.closed_windows()
        hour, rest = divmod((number + 1) * EVERY_S, 3600)
        if rest == 0 and hour in SHOWN_H:
            spent_s = time.process_time() - began_s
            print(
                f"{hour:2d} h: {held_bytes(monitor) / 1000:.0f} kB, {flags} flag messages, {spent_s:.0f} s of CPU time"
            )


if __name__ == "__main__":
    main()
