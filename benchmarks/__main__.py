"""Measure what is claimed about speed, each figure beside a peer or floor of the same run.

python -m benchmarks [--json] [PART ...]
"""

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from norm_core.runtime.errors import TactfulError

PARTS = ("window", "decision", "memory")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts and print their figures; return 1 if a part cannot be run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--json", action="store_true", help="print each figure as a line of JSON")
    options = parser.parse_args(arguments)
    if unknown_names := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown_names))}; name some of {', '.join(PARTS)}")
    has_failed = False
    for part in options.parts or PARTS:
        try:
            for figure in importlib.import_module(f"benchmarks.{part}").measure():
                print(json.dumps(asdict(figure)) if options.json else figure, flush=True)
        except TactfulError as error:
            print(f"{part}: {error}", file=sys.stderr)
            has_failed = True
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
