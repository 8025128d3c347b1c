"""Find social errors and competences in your own transcript, with the monitor as a library and without ROS.

eval "$(./tactful env)" && python examples/monitor_transcript.py examples/transcript.csv

The transcript is a CSV file, or a JSON list of objects, with speaker, start, end and text. Times are seconds. The
speaker of the robot's lines is `robot`; every other name is a person.
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from norm_core import ReplayClock, SocialFlag, Speaker, Utterance, ns_to_s, s_to_ns
from norm_monitor import EncoderMatcher, FusionConfig, Monitor, MonitorConfig, Sensitivity, ThresholdTable


def read_transcript(path: Path) -> list[Utterance]:
    """Read the lines of a transcript in the order in which they begin."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = json.load(file) if path.suffix == ".json" else list(csv.DictReader(file))
    lines = [utterance(f"line_{number}", row) for number, row in enumerate(rows, start=1)]
    return sorted(lines, key=lambda line: line.start_ns)


def utterance(utterance_id: str, row: dict[str, Any]) -> Utterance:
    """Convert one line; the monitor's times are integer nanoseconds."""
    start_ns = s_to_ns(float(row["start"]))
    return Utterance(
        stamp_ns=start_ns,
        utterance_id=utterance_id,
        speaker=Speaker.ROBOT if row["speaker"] == "robot" else Speaker.USER,
        speaker_id=row["speaker"],
        text=row["text"],
        start_ns=start_ns,
        end_ns=s_to_ns(float(row["end"])),
    )


def find_flags(utterances: Iterable[Utterance]) -> list[SocialFlag]:
    """Replay the utterances; return the last state of each event in the order of onset."""
    clock = ReplayClock()
    # Somebody reads what is flagged in a transcript, so a few false flags cost less than a missed error.
    config = MonitorConfig.for_replay(["utterances"], fusion=FusionConfig(sensitivity=Sensitivity.KEEN))
    monitor = Monitor(config, ThresholdTable.shipped(), EncoderMatcher.shipped(), clock)
    flags: list[SocialFlag] = []
    for line in utterances:
        clock.advance_to(line.start_ns)
        flags += monitor.take(line)
    flags += monitor.end_input()
    return sorted({flag.event_id: flag for flag in flags}.values(), key=lambda flag: flag.onset_ns)


def main() -> int:
    """Print the flags of the transcript that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("transcript", type=Path, help="CSV or JSON file")
    for flag in find_flags(read_transcript(parser.parse_args().transcript)):
        print(f"{ns_to_s(flag.onset_ns):.1f} s  {flag.polarity}  {flag.cue_id}  {flag.probability:.2f}")
        print(f"    {flag.rationale}")
        if flag.correction:
            print(f"    Instead: {flag.correction}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
