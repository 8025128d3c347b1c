"""Record or compare the golden files: `python -m tests.goldens record|compare [SOURCE...]`, `hear` or `words`.

`words` compares what Whisper recognizes here in the shipped bags with the words that the goldens keep.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from norm_monitor.encounters.library import encounters
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.monitor_bench.script_driver import sense_encounter
from tests.goldens import collect, compare

# With AVX, AVX2, AVX-512 and without them, rounding changed at most 1.2 % of the words of synthetic voices.
MAX_OTHER_WORDS = 0.05
os.environ["TACTFUL_READER"] = "none"  # a reader that is set up here changes flags


def main(action: str, *names: str) -> int:
    """Run one action over the sources named, or over all; exit with 1 where something differs."""
    if action == "hear":
        return _hear()
    if action == "words":
        return _compare_words(names)
    sources = dict(collect.SOURCES)
    data = Path(os.environ.get("TACTFUL_SHARED", collect.ROOT.parent / "shared"), "data")
    if data.is_dir():
        sources["egogapbench"] = lambda: collect.egogapbench(data)
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


def _compare_words(names: Sequence[str]) -> int:
    kept, words = collect.words_here(names)
    share = edit_distance(kept, words) / len(kept)
    print(f"{len(kept)} words, {share:.1%} of them other here (at most {MAX_OTHER_WORDS:.0%})")
    return 1 if share > MAX_OTHER_WORDS else 0


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Count the words to insert, remove or replace between two texts."""
    row = list(range(len(second) + 1))
    for number, word in enumerate(first, 1):
        row, above = [number], row
        for place, other in enumerate(second, 1):
            row.append(min(above[place] + 1, row[-1] + 1, above[place - 1] + (word != other)))
    return row[-1]


def _hear() -> int:
    """Make sound and pictures of the encounters anew (needs flite) and keep what the senses give."""
    whisper = Whisper(WhisperConfig())
    with tempfile.TemporaryDirectory() as folder:
        chosen = encounters("development")[:: collect.BY_SOUND]
        collect.keep_sound(sense_encounter(one, Path(folder), whisper) for one in chosen)
    print(f"{len(chosen)} encounters heard and seen")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in {"record", "compare", "hear", "words"}:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
