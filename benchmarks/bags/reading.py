"""Measure the memory for reading, recovering and cutting a large bag: `python benchmarks/bags/reading.py --gb 2`.

The bag holds camera images (200 kB of random bytes each), sound and words. It lies in a temporary folder. Each step
runs in its own process. The result is that process's largest resident set, beside that of a process which only imports
the same modules.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rosbags.rosbag2 import StoragePlugin, Writer

from norm_core.bags.bag_cut import cut_bag
from norm_core.bags.reader import BagReader
from norm_core.bags.recovery.bag_recovery import recover_bag
from norm_core.bags.types import make, typestore

PICTURE_BYTES, SOUND_BYTES = 200_000, 3_200
FRAME_NS = 33_000_000
STEPS = ("nothing", "read", "decode", "recover", "cut")


def generate(path: Path, size_bytes: int, storage: StoragePlugin) -> int:
    """Write about `size_bytes` bytes. Returns the number of messages."""
    source = os.urandom(PICTURE_BYTES * 4)
    picture, sound = "sensor_msgs/msg/CompressedImage", "std_msgs/msg/UInt8MultiArray"
    layout = make("std_msgs/msg/MultiArrayLayout", {"dim": [], "data_offset": 0})
    written = count = 0
    with Writer(path, version=9, storage_plugin=storage) as writer:
        pictures = writer.add_connection("/camera", picture, typestore=typestore())
        sounds = writer.add_connection("/audio", sound, typestore=typestore())
        stamp = make("builtin_interfaces/msg/Time", {"sec": 0, "nanosec": 0})
        header = make("std_msgs/msg/Header", {"stamp": stamp, "frame_id": "camera"})
        heard = make(sound, {"layout": layout, "data": source[:SOUND_BYTES]})
        heard_bytes = typestore().serialize_cdr(heard, sound)
        while written < size_bytes:
            start = count * 97 % (PICTURE_BYTES * 3)
            values = {"header": header, "format": "jpeg", "data": source[start : start + PICTURE_BYTES]}
            writer.write(pictures, count * FRAME_NS, typestore().serialize_cdr(make(picture, values), picture))
            writer.write(sounds, count * FRAME_NS, heard_bytes)
            written += PICTURE_BYTES + SOUND_BYTES
            count += 1
    return 2 * count


def step(name: str, bag: Path, scratch: Path) -> Iterator[int]:
    """Run one step on the bag. Yields the number of messages processed."""
    if name == "nothing":
        yield 0
    elif name == "read":
        with BagReader(bag) as reader:
            yield sum(1 for _ in reader.messages())
    elif name == "decode":
        with BagReader(bag) as reader:
            yield sum(reader.decode(message) is not None for message in reader.messages())
    elif name == "recover":
        yield recover_bag(bag, scratch / "recovered").messages
    else:
        yield cut_bag(bag, scratch / "cut", "10").messages


def _peak_mb() -> float:
    # getrusage would start at the size of the parent process.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1.024e-3


def main() -> None:
    """Make a bag, run each step on it in a process of its own, and print the peak memory of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=0.2)
    parser.add_argument("--storage", choices=["mcap", "sqlite3"], default="mcap")
    parser.add_argument("--only", nargs="+", default=STEPS, choices=STEPS)
    parser.add_argument("--step", nargs=3, metavar=("NAME", "BAG", "SCRATCH"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step:
        name, bag, scratch = asked.step
        began_s = time.monotonic()
        (messages,) = step(name, Path(bag), Path(scratch))
        print(json.dumps({"messages": messages, "seconds": time.monotonic() - began_s, "peak_mb": _peak_mb()}))
        return
    with tempfile.TemporaryDirectory(prefix="tactful-bag-") as folder:
        bag = Path(folder, "bag")
        made = generate(bag, round(asked.gb * 1e9), StoragePlugin[asked.storage.upper()])
        size_gb = sum(file.stat().st_size for file in bag.iterdir()) / 1e9
        print(f"{asked.storage}, {size_gb:.2f} GB, {made} messages")
        for name in asked.only:
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                command = [sys.executable, __file__, "--step", name, str(bag), scratch]
                told = subprocess.run(command, check=True, capture_output=True, text=True)
            found = json.loads(told.stdout)
            print(f"{name:8} {found['messages']:8} messages {found['seconds']:7.1f} s, peak {found['peak_mb']:6.0f} MB")


if __name__ == "__main__":
    main()
