"""Measure how soon commands answer: the version, and the first line of `flags` on a short talk.

An empty Python program, and a process that reads the bag plainly, are started in turn with them.
`./tactful benchmark --only start` runs it.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from benchmarks.runner import ROOT, Figure, Report
from norm_core.bags.writer import BagWriter
from norm_core.records.messages import RECORDS, message_type
from norm_core.records.speech import RobotSpeech, Utterance
from sim_replays.drivers.script_driver import records_of_script
from sim_replays.scenarios.library import encounters

TOPICS = {Utterance: "/tactful/utterances", RobotSpeech: "/tactful/robot_speech"}
READ = "import sys, rosbags.highlevel as h\nwith h.AnyReader([__import__('pathlib').Path(sys.argv[1])]) as bag:\n"
READ += "    print(sum(1 for _ in bag.messages()))"


def command() -> list[str]:
    """Return what starts the command line: `./tactful` where this checkout is set up, else its Python alone."""
    is_set_up = Path(os.environ.get("TACTFUL_STATE", "/")).parent == ROOT
    return [str(ROOT / "tactful")] if is_set_up else [sys.executable, "-m", "tactful_cli"]


def first_line_s(arguments: Sequence[str]) -> float:
    """Start a program; return the seconds until its first line."""
    began_s = time.perf_counter()
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT) as program:
        assert program.stdout
        line = program.stdout.readline()
        took_s = time.perf_counter() - began_s
        program.stdout.read()
    if program.returncode or not line:
        raise RuntimeError(f"{' '.join(arguments)} ended with {program.returncode}")
    return took_s


def write_talk(bag: Path) -> None:
    """Write the words of a shipped encounter."""
    (encounter,) = islice(encounters("development"), 1)
    entries, _ = records_of_script(encounter)
    with BagWriter(bag) as writer:
        for stamp_ns, entry in entries:
            if message_type(type(entry)) in RECORDS and type(entry) in TOPICS:
                writer.write(TOPICS[type(entry)], entry, stamp_ns)


def run(report: Report, *, quick: bool) -> None:
    """Report the seconds until the version and until the first flag."""
    with tempfile.TemporaryDirectory() as name:
        bag = Path(name, "bag")
        write_talk(bag)
        for title, ours, peer, against in (
            ("start_version", [*command(), "--version"], [sys.executable, "-c", "print()"], "an empty Python program"),
            ("start_flags", [*command(), "flags", str(bag)], [sys.executable, "-c", READ, str(bag)], "a plain reader"),
        ):
            first_line_s(ours)  # warms up the disk's cache
            pairs = [(first_line_s(peer), first_line_s(ours)) for _ in range(3 if quick else 9)]
            ratios = [took_s / peer_s for peer_s, took_s in pairs]
            report.add(Figure.of_runs(title, "s", [took_s for _, took_s in pairs], against, ratios))
