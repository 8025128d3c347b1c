"""Precedents found among many: exact against approximate, side by side.

python benchmarks/selector/nearest.py [--entries N] [--dimensions N]
"""

import argparse
import statistics
import sys
import time

import numpy as np

from action_selector.retrieve.nearest import PROBED, Nearest

KINDS = 400


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=120_000)
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--queries", type=int, default=50)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    middles = random.normal(size=(KINDS, options.dimensions)).astype(np.float32)

    def rows(count: int) -> np.ndarray:
        """Around so many kinds of scene, as sentences are not spread evenly."""
        noise = random.normal(size=(count, options.dimensions)).astype(np.float32)
        made = middles[random.integers(0, KINDS, count)] + noise
        return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)

    vectors, queries = rows(options.entries), rows(options.queries)
    exact = Nearest(vectors, exact_up_to=options.entries)
    began_s = time.perf_counter()
    approximate = Nearest(vectors, exact_up_to=0)
    made_s = time.perf_counter() - began_s
    hits, exact_ms, approximate_ms = 0, [], []
    for query in queries:
        began_ns = time.perf_counter_ns()
        right = {place for place, _ in exact.to(query, 5)}
        between_ns = time.perf_counter_ns()
        found = {place for place, _ in approximate.to(query, 5)}
        exact_ms.append((between_ns - began_ns) / 1e6)
        approximate_ms.append((time.perf_counter_ns() - between_ns) / 1e6)
        hits += len(right & found)
    print(f"{options.entries} entries of {options.dimensions} dimensions, {PROBED:.0%} of the cells probed")
    print(f"exact: median {statistics.median(exact_ms):.1f} ms a query")
    print(f"approximate: median {statistics.median(approximate_ms):.1f} ms a query, made in {made_s:.1f} s")
    print(f"recall of the nearest five: {hits / (5 * options.queries):.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
