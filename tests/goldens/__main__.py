"""Record or compare the golden files: `python -m tests.goldens record|compare [SOURCE...]` or `hear`."""

import os
import sys
import tempfile
from pathlib import Path

from norm_monitor.encounters.library import encounters
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.monitor_bench.script_driver import sense_encounter
from tests.goldens import collect, compare
from tests.shared_data import SHARED_DATA

os.environ["TACTFUL_READER"] = "none"  # a reader that is set up here changes flags


def main(action: str, *names: str) -> int:
    """Run one action over the sources named, or over all; exit with 1 where something differs."""
    if action == "hear":
        return _hear()
    sources = dict(collect.SOURCES)
    if SHARED_DATA.is_dir():
        sources["egogapbench"] = lambda: collect.egogapbench(SHARED_DATA)
    differs = 0
    for name in names or sources:
        found = sources[name]()
        if action == "record":
            compare.write(name, found)
            print(f"{name}: {len(found)} items recorded")
            continue
        lines = list(compare.differences(compare.read(name, compare.renames()), found))
        differs += len(lines)
        print(f"{name}: {len(found)} items, {len(lines)} differences", *lines, sep="\n  ")
    return 1 if differs else 0


def _hear() -> int:
    """Make sound and pictures of the encounters anew (needs flite) and keep what the senses give."""
    whisper = Whisper(WhisperConfig())
    with tempfile.TemporaryDirectory() as folder:
        chosen = encounters("development")[:: collect.BY_SOUND]
        collect.keep_sound(sense_encounter(one, Path(folder), whisper) for one in chosen)
    print(f"{len(chosen)} encounters heard and seen")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in {"record", "compare", "hear"}:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
