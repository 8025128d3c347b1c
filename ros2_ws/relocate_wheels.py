"""Point the CMake exports of the ROS wheels at the headers of this interpreter, not of the machine that built them."""

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
    """Rewrite the exports below `share`, and return how many files changed."""
    changed = 0
    for path in share.rglob("*.cmake"):
        text = path.read_text(encoding="utf-8")
        relocated = text
        for pattern, target in REPLACEMENTS:
            relocated = pattern.sub(target.replace("\\", r"\\"), relocated)
        if relocated != text:
            path.write_text(relocated, encoding="utf-8")
            changed += 1
    return changed


if __name__ == "__main__":
    print(f"{relocate(Path(sys.prefix, 'share'))} CMake exports relocated")
