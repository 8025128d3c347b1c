"""Time an exact search among precedents.

python benchmarks/selector/nearest.py [--entries N] [--dimensions N] [--queries N]
"""

import argparse
import statistics
import sys
import time

import numpy as np

from action_selector.retrieve.nearest import nearest


def main() -> int:
    """Print the time of a nearest-precedent search in an index of random vectors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=512)
    parser.add_argument("--queries", type=int, default=50)
    options = parser.parse_args()
    random = np.random.default_rng(0)

    def rows(count: int) -> np.ndarray:
        made = random.normal(size=(count, options.dimensions)).astype(np.float32)
        return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)

    vectors, queries = rows(options.entries), rows(options.queries)
    allowed = np.arange(options.entries) % 100 > 0  # like a search that excludes the scene's own source
    for name, mask in (("all", None), ("without one source", allowed)):
        spent_ms = []
        for query in queries:
            began_ns = time.perf_counter_ns()
            nearest(vectors, query, 5, mask)
            spent_ms.append((time.perf_counter_ns() - began_ns) / 1e6)
        print(
            f"{options.entries} entries of {options.dimensions} dimensions, {name}: "
            f"median {statistics.median(spent_ms):.1f} ms a query"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
