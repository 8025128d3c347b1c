"""Points the CMake exports of the ROS wheels at this interpreter's headers instead of their build machine's."""

import re
import sys
import sysconfig
from pathlib import Path

import numpy

REPLACEMENTS = (
    (re.compile(r"/opt/python/[^;\"\s)]*/numpy/_core/include"), numpy.get_include()),
    (re.compile(r"/opt/python/[^;\"\s)]*/include/python3\.\d+"), sysconfig.get_path("include")),
)


def relocate(share: Path) -> int:
    """Rewrites the exports below share and returns how many files changed."""
    changed = 0
    for path in share.rglob("*.cmake"):
        before = after = path.read_text(encoding="utf-8")
        for pattern, target in REPLACEMENTS:
            after = pattern.sub(target.replace("\\", r"\\"), after)
        if after != before:
            path.write_text(after, encoding="utf-8")
            changed += 1
    return changed


if __name__ == "__main__":
    print(f"{relocate(Path(sys.prefix, 'share'))} CMake exports relocated")
