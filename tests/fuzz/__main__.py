"""Fuzz the parsers on demand: python -m tests.fuzz [NAME ...] [--seconds S]. With atheris it is led by coverage.

Each target runs in a process of its own, prints how often it ran, and leaves what crashed it in the folder of cases.
"""

import argparse
import hashlib
import os
import random
import re
import sys
import tempfile
import time
import traceback
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

INSTRUMENTED = (
    "norm_core", "norm_monitor", "action_selector", "study_desk", "sim_replays", "tactful_cli",
    "csv", "json", "mcap", "pympi", "rosbags", "wave", "yaml",
)  # fmt: skip
MOST_BYTES = 8192
MEMORY_MB = 2048


def main() -> int:
    """Fuzz the targets named, and say how it went."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="targets; default: all")
    parser.add_argument("--seconds", type=int, default=20, help="time of each target [20]")
    parser.add_argument("--corpus", type=Path, help="folder that keeps what leads further, for the next run")
    parser.add_argument("--at-random", action="store_true", help="without atheris; also where it is not installed")
    options = parser.parse_args()
    random_only = options.at_random or not find_spec("atheris")
    with nullcontext() if random_only else import_module("atheris").instrument_imports(include=INSTRUMENTED):
        from tests.fuzz.targets import TARGETS
    if unknown := set(options.names) - TARGETS.keys():
        parser.error(f"{', '.join(unknown)}: the targets are {', '.join(TARGETS)}")
    executions, crashes = 0, 0
    for name in options.names or TARGETS:
        crash, count, about = (
            _at_random(name, options.seconds) if random_only else _by_coverage(name, options.seconds, options.corpus)
        )
        executions += count
        crashes += bool(crash)
        print(f"{name}: {count} executions{about}{crash and f', CRASHED: {crash}'}", flush=True)
    print(f"{executions} executions, {crashes} targets crashed")
    return int(crashes > 0)


def _by_coverage(name: str, seconds: int, corpus: Path | None) -> tuple[str, int, str]:
    """Fuzz in a process of its own; return the crash, the executions, and when the coverage last rose."""
    with tempfile.TemporaryFile("w+", errors="replace") as said, tempfile.TemporaryDirectory() as folder:
        if not (child := os.fork()):  # which holds the instrumented modules already
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            _with_atheris(name, seconds, corpus / name if corpus else Path(folder))
        code = os.waitpid(child, 0)[1]
        said.seek(0)
        text = said.read()
    counts = re.findall(r"number_of_executed_units: (\d+)", text)
    steps = re.findall(r"^#(\d+)\s.*?cov: (\d+)", text, re.MULTILINE)
    covered = steps[-1][1] if steps else "0"
    since = next((number for number, coverage in steps if coverage == covered), "0")
    return text[-4000:] if code else "", int(counts[-1]) if counts else 0, f", coverage {covered} since {since}"


def _with_atheris(name: str, seconds: int, corpus: Path) -> NoReturn:
    from tests.fuzz.targets import CASES, TARGETS, cases_of

    atheris: Any = import_module("atheris")
    target = TARGETS[name]
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate((*target.seeds, *(path.read_bytes() for path in cases_of(name)))):
        (corpus / str(number)).write_bytes(seed)
    (CASES / name).mkdir(parents=True, exist_ok=True)
    settings = [f"-max_total_time={seconds}", f"-max_len={MOST_BYTES}", f"-rss_limit_mb={MEMORY_MB}", "-timeout=20"]
    settings += [f"-artifact_prefix={CASES / name}/", "-print_final_stats=1"]
    atheris.Setup([name, *settings, str(corpus)], lambda data: target.run(data) and None)
    atheris.Fuzz()
    os._exit(0)


def _at_random(name: str, seconds: int) -> tuple[str, int, str]:
    """Change, cut and join what is known, without coverage; return the crash and the executions."""
    from tests.fuzz.targets import CASES, TARGETS, cases_of

    target, chance, count = TARGETS[name], random.Random(0), 0
    known = [*target.seeds, *(path.read_bytes() for path in cases_of(name))]
    until_s = time.process_time() + seconds
    while time.process_time() < until_s:
        data = bytearray(chance.choice(known))
        for _ in range(chance.randrange(1, 8)):
            at = chance.randrange(len(data) + 1)
            data[at : at + chance.choice((0, 1, 4))] = chance.choice((b"", chance.randbytes(2), data[at // 2 : at]))
        count += 1
        try:
            target.run(bytes(data[:MOST_BYTES]))
        except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
            (CASES / name).mkdir(parents=True, exist_ok=True)
            (CASES / name / f"crash-{hashlib.sha256(data).hexdigest()[:16]}").write_bytes(data[:MOST_BYTES])
            return traceback.format_exc(), count, ""
    return "", count, ""


if __name__ == "__main__":
    sys.exit(main())
