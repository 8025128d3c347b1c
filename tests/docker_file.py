"""The instructions of docker/Dockerfile, as far as tests need them."""

import re
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "docker/Dockerfile"


def instructions() -> list[tuple[str, str]]:
    """Each instruction with its arguments, without comments and with its lines joined."""
    text = re.sub(r"^#.*\n", "", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    return [
        (name, " ".join(rest.split())) for name, _, rest in (line.partition(" ") for line in text.splitlines()) if name
    ]


def copied() -> list[tuple[str, str]]:
    """What COPY takes from the checkout, each with where it lands below the working folder."""
    found = []
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from="):
            *sources, target = rest.split()
            found += [(each, f"{target}{each}" if target.endswith("/") else target) for each in sources]
    return found
