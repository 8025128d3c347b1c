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
from pathlib import Path

from benchmarks.runner import ROOT, Figure, Report
from norm_core.bags.writer import BagWriter
from norm_core.records.speech import RobotSpeech, Utterance
from sim_replays.drivers.script_driver import records_of_script
from sim_replays.scenarios.library import encounters

TOPICS: dict[type, str] = {Utterance: "/tactful/utterances", RobotSpeech: "/tactful/robot_speech"}
READ = "from norm_core.bags.reader import BagReader as R; from pathlib import Path as P; import sys; "
READ += "print(sum(1 for _ in R(P(sys.argv[1])).messages()))"


def first_line_s(arguments: Sequence[str]) -> float:
    """Start a program; return the seconds until its first line."""
    began_s = time.perf_counter()
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT) as program:
        assert program.stdout
        if not program.stdout.readline():
            raise RuntimeError(f"{' '.join(arguments)} printed nothing")
        took_s = time.perf_counter() - began_s
        program.stdout.read()
    return took_s


def run(report: Report, *, quick: bool) -> None:
    """Report the seconds until the version and until the first flag."""
    is_set_up = Path(os.environ.get("TACTFUL_STATE", "/")).parent == ROOT  # by ./tactful in this checkout
    command = [str(ROOT / "tactful")] if is_set_up else [sys.executable, "-m", "tactful_cli"]
    with tempfile.TemporaryDirectory() as name:
        bag = str(Path(name, "bag"))
        with BagWriter(Path(bag)) as writer:
            for stamp_ns, entry in records_of_script(encounters("development")[0])[0]:
                if topic := TOPICS.get(type(entry)):
                    writer.write(topic, entry, stamp_ns)
        for title, ours, peer, against in (
            ("start_version", ["--version"], [], "an empty Python program"),
            ("start_flags", ["flags", bag], [READ, bag], "a program that reads the bag"),
        ):
            other = [sys.executable, "-c", *(peer or ["print()"])]
            first_line_s([*command, *ours])  # warms up the disk's cache
            pairs = [(first_line_s(other), first_line_s([*command, *ours])) for _ in range(3 if quick else 9)]
            ratios = [took_s / peer_s for peer_s, took_s in pairs]
            report.add(Figure.of_runs(title, "s", [took_s for _, took_s in pairs], against, ratios))
