"""How long decisions take without a language model: many items in a row, and one at a time with nothing remembered.

python benchmarks/selector/speed.py [--data FOLDER]
"""

import argparse
import statistics
import sys
import time
from itertools import cycle, islice
from pathlib import Path

from action_selector.abstain import WhenUnsure
from action_selector.config import SelectorConfig
from action_selector.queries import answer_of, request_of
from action_selector.request import Request
from action_selector.selector import Selector
from norm_core.engines.call import Limit
from norm_core.engines.sentences import SentenceEncoder
from norm_core.time import WallClock
from sim_replays.suites import egogapbench as suite

ROOT = Path(__file__).resolve().parents[2]
CONFIG = SelectorConfig(when_unsure=WhenUnsure.BEST_EFFORT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data/egogapbench")
    options = parser.parse_args()
    items, _ = suite.read(options.data)
    thousand = list(islice(cycle(items), 1000))
    clock = WallClock()
    for name, remembered in (("remembering sentences", 4096), ("remembering none", 1)):
        selector = Selector(SentenceEncoder(remembered=remembered), CONFIG)
        began_s, used_s = time.perf_counter(), time.process_time()
        for item in thousand:
            query = suite.query(item, suite.Setting.OTHERS)
            answer_of(selector.select(request_of(query), Limit(clock)), query)
        wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - used_s
        print(f"1,000 items, {name}: {wall_s:.1f} s, of which on a core {cpu_s:.1f} s")
    live(items, clock)
    return 0


def live(items: list[suite.Item], clock: WallClock) -> None:
    """Five candidates no sentence of which was met before, with the others, a situation and two reasons."""
    texts = sorted({option for item in items for option in item.options})
    selector = Selector(SentenceEncoder(), CONFIG)
    took_ms, used_ms = [], []
    for number in range(200):
        request = Request(
            query_id=str(number),
            candidates=tuple(texts[5 * number : 5 * number + 5]),
            justifications=(f"It is expected at {number} o'clock.", f"It helps {number} people."),
            situation=f"{' '.join(items[number].captions[:2])} It is encounter {number}.",
            others=items[number].others,
        )
        began_ns, used_ns = time.perf_counter_ns(), time.process_time_ns()
        selector.select(request, Limit(clock))
        took_ms.append((time.perf_counter_ns() - began_ns) / 1e6)
        used_ms.append((time.process_time_ns() - used_ns) / 1e6)
    for name, values in (("wall", took_ms), ("on a core", used_ms)):
        p95 = statistics.quantiles(values, n=20)[18]
        print(f"live decision among five, {name}: median {statistics.median(values):.1f} ms, p95 {p95:.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
