"""Print the errors of measured offsets by condition: `python -m tests.calibration.sensor_errors clap --seeds 3`.

The speech is of espeak-ng, where that is installed, or else of the shared recording.
"""

import argparse
import shutil
import subprocess
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from calibration.sensors.alignment import Method
from norm_monitor.senses.microphone.pcm import Resampler
from norm_monitor.senses.microphone.sound_file import chunks_of
from tests.calibration.sensor_bags import RATE_HZ, Room, clap_bag, flash_bag, speech_bag, trimmed, utterances
from tests.calibration.test_sensor_offsets import found

SENTENCES = (
    "Good morning, welcome to the library.", "Can I help you?", "The museum opens at nine.",
    "Please follow me to the lift.", "I am sorry, I did not hear that.", "See you tomorrow.",
    "That way, on the left.", "Very well, thank you.",
)  # fmt: skip


def synthesized(folder: Path) -> tuple[Any, ...]:
    if not shutil.which("espeak-ng"):
        return utterances()
    said = []
    for sentence in SENTENCES:
        path = folder / "said.wav"
        subprocess.run(["espeak-ng", "-w", str(path), sentence], check=True)
        chunks = list(chunks_of(path))
        resampler = Resampler(chunks[0].rate_hz, RATE_HZ, 512)
        blocks = [*resampler.feed(np.concatenate([one.samples[:, 0] for one in chunks])), *resampler.flush()]
        said.append(trimmed(np.concatenate(blocks)))
    return tuple(said)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("method", type=Method)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    rates = (30.0,) if options.method is Method.SPEECH else (10.0, 15.0, 30.0)
    rooms: list[dict[str, Any]] = [
        {"snr_db": snr_db, "rt60_s": 0.2 if number % 2 else 0.8, "fps": fps}
        for number, (snr_db, fps) in enumerate(product((30.0, 20.0, 10.0, 5.0, 0.0), rates))
    ]
    rooms.append({"shuffled": True})
    for room in rooms:
        errors, within, whys = [], 0, []
        for seed in range(options.seeds):
            offset_ms = float(np.random.default_rng(seed).uniform(-300, 300))
            with tempfile.TemporaryDirectory() as folder:
                path, one_room = Path(folder, "bag"), Room(offset_ms=offset_ms, seed=seed + 10, events=10, **room)
                match options.method:
                    case Method.SPEECH:
                        speech_bag(path, one_room, synthesized(Path(folder)))
                    case Method.CLAP:
                        clap_bag(path, one_room)
                    case Method.FLASH:
                        flash_bag(path, one_room)
                one = found(path, options.method)
            if one.offset_ms is None:
                whys.append(one.why)
                continue
            errors.append(one.offset_ms - offset_ms)
            within += abs(errors[-1]) <= (one.uncertainty_ms or 0)
        largest = f"{max(map(abs, errors)):.1f} ms" if errors else "none"
        print(room, f"told {len(errors)} of {options.seeds}, largest error {largest}, {within} within", *whys[:1])


if __name__ == "__main__":
    main()
