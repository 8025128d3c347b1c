"""Fuzz the parsers with atheris, led by coverage: python -m tests.fuzz [NAME ...] [--seconds S].

Each target runs in a process of its own, prints how often it ran, and leaves what crashed it in the folder of cases.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

INSTRUMENTED = (
    "norm_core", "norm_monitor", "action_selector", "scoring", "study_desk", "sim_replays", "tactful_cli",
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
    options = parser.parse_args()
    if not find_spec("atheris"):
        parser.error("atheris is not installed; run pip install atheris")
    with import_module("atheris").instrument_imports(include=INSTRUMENTED):
        from tests.fuzz.targets import TARGETS
    if unknown := set(options.names) - TARGETS.keys():
        parser.error(f"{', '.join(unknown)}: the targets are {', '.join(TARGETS)}")
    executions, crashes = 0, 0
    for name in options.names or TARGETS:
        crash, count, about = _by_coverage(name, options.seconds, options.corpus)
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
        for scratch in import_module("tests.fuzz.targets").SCRATCH.glob(f"fuzz-{child}-*"):
            shutil.rmtree(scratch)  # libFuzzer ends a process without Python's exit handlers
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


if __name__ == "__main__":
    sys.exit(main())
