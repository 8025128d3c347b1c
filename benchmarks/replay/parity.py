"""Check that a session gives the same output however it is replayed: ten bags, three modes, two paces.

Sound in the bags has a type of every ROS installation, so that nodes can receive it. Each bag is replayed in process,
over DDS in lockstep and over DDS at two paces, with every model on. All items (windows with digests, utterances, flags
with prompts, answers) are compared with the first replay. Windows that closed without late words are counted
separately, as parity does not cover them.

python benchmarks/replay/parity.py [--rates 1 2] [--bags NAME ...]

Prints one line per replay and writes parity.json beside this file.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from norm_core.bags.reader import BagReader  # noqa: E402
from norm_core.bags.writer import BagWriter  # noqa: E402
from norm_core.records.speech import RobotSpeech  # noqa: E402
from sim_replays.drivers.node_driver import NodeOutput  # noqa: E402
from sim_replays.drivers.session_replay import first_differing_output, in_process, items, over_dds  # noqa: E402
from sim_replays.examples.demo_session import shift_record, write_demo_session  # noqa: E402
from sim_replays.scenarios.library import find, read  # noqa: E402
from sim_replays.scenarios.records import AUDIO  # noqa: E402
from sim_replays.scenarios.sensed import write_sensed  # noqa: E402

SHIPPED = ROOT / "sim_replays/scenarios/shipped"
DEMO = "demo_session"
SENSED_S = 40.0


def bags(names: list[str], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each bag's name and a copy of it that nodes can replay."""
    for name in names:
        if name == DEMO:
            write_demo_session(folder / name)
            yield name, folder / name
        else:
            yield name, audible(SHIPPED / name, folder / name)


def audible(shipped: Path, target: Path) -> Path:
    """Copy a shipped encounter with its sound in a standard type, or with sense records where it has no sound.

    A live monitor cannot tell how far a bare transcript is complete, so silence marks are added.
    """
    with BagReader(shipped) as bag:
        if AUDIO not in {topic.topic for topic in bag.topics}:
            write_sensed(target, read(find(shipped.name)), SENSED_S)
            return target
    with BagWriter(target) as writer:
        for stamp_ns, topic, content in shift_record(shipped, 0):
            write = writer.write if isinstance(content, RobotSpeech) else writer.write_message
            write(topic, content, stamp_ns)
    return target


def kinds(said: list[NodeOutput]) -> dict[str, int]:
    """Count the compared items by kind."""
    return dict(Counter(name.split()[1] for name in items(said)))


def replayed(bag: Path, rate: float, first: list[NodeOutput]) -> dict[str, Any]:
    """Compare one replay over DDS with the one in process."""
    began_s = time.perf_counter()
    said = list(over_dds(bag, rate))
    end = said[-1].message
    late = sum(1 for one in said if one.topic == "/tactful/windows" and one.message["late"])
    return {
        "mode": f"DDS at {rate:g} x" if rate else "DDS in lockstep",
        "items": kinds(said),
        "first_difference": first_differing_output(first, said),
        "lost": end["lost"],
        "dropped": {node: count for node, count in end["dropped"].items() if count},
        "closed_late": late,
        "took_s": round(time.perf_counter() - began_s, 1),
    }


def main() -> None:
    """Replay each bag in process, in lockstep and at each rate, and write where the outputs differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=float, nargs="+", default=[1.0, 2.0])
    parser.add_argument("--bags", nargs="+", default=[*sorted(p.name for p in SHIPPED.iterdir() if p.is_dir()), DEMO])
    options = parser.parse_args()
    machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    figures: dict[str, Any] = {"machine": machine, "bags": {}}
    with tempfile.TemporaryDirectory() as name:
        for bag_name, bag in bags(options.bags, Path(name)):
            first = list(in_process(bag))
            rows = [replayed(bag, rate, first) for rate in (0.0, *options.rates)]
            figures["bags"][bag_name] = {"in_process": kinds(first), "replays": rows}
            for row in rows:
                verdict = "the same" if row["first_difference"] is None else f"differs: {row['first_difference']}"
                sys.stdout.write(
                    f"{bag_name}, {row['mode']}: {sum(row['items'].values())} items, {verdict}; "
                    f"{row['closed_late']} windows closed late, lost {row['lost']}, dropped {row['dropped']}\n"
                )
                sys.stdout.flush()
    every = [row for bag in figures["bags"].values() for row in bag["replays"]]
    figures["replays"] = len(every)
    figures["the_same"] = sum(row["first_difference"] is None for row in every)
    sys.stdout.write(f"{figures['the_same']} of {figures['replays']} replays say what the first said\n")
    Path(__file__).with_suffix(".json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
