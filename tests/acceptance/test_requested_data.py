"""The steps for somebody who has the data of VideoNorms and HSRI work as written, with a stand-in for each model."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.markdown_pages import ROOT, lines
from tests.patience import PATIENCE_S
from tests.sim_replays.evals.chat_server import MODEL, serve_replies
from tests.sim_replays.requested_data import pictures

PAGE = ROOT / "docs/how-to/benchmarks.md"
TITLE = "## Run VideoNorms and HSRI from their data"
# The shell notes each command, and one process runs them in turn: each by itself would import for seconds.
NOTE = '#!/bin/sh\nprintf \'%s\\0\' "$0" "$@" >>commands; echo >>commands\n'
RUN = """
import sys
from importlib.metadata import entry_points
from pathlib import Path
from tactful_cli.main import main

[inspect] = entry_points(group="console_scripts", name="inspect")
for line in Path("commands").read_text().splitlines():
    program, *arguments = line.split("\\0")[:-1]
    allowed = (0, 1) if "check-items" in arguments else (0,)
    for log in Path("logs").glob("*.eval") if "logs/LOG.eval" in arguments else [""]:
        sys.argv = [program, *(str(log) if argument == "logs/LOG.eval" else argument for argument in arguments)]
        code = 0
        try:
            (main if program.endswith("tactful") else inspect.load())()
        except SystemExit as ended:
            code = ended.code or 0
        if code not in allowed:
            sys.exit(f"{sys.argv} ended with {code}")
"""
NORM = "Adherence/Violation: Adherence\nVerbal Evidence: hello\nNonVerbal Evidence: a smile\nSpecific Norm: Greet."


def read_steps() -> str:
    """Return the commands of the section, with folders and models in place of the names that a reader replaces."""
    page = lines(PAGE)
    start = next(index for index, line in enumerate(page) if line.text == TITLE)
    end = next(index for index, line in enumerate(page) if index > start and line.text.startswith("## "))
    script = "\n".join(line.text for line in page[start:end] if line.language)
    script = re.sub("openai/(MODEL|GRADER|READER)", MODEL, script)
    return script.replace("data=VIDEONORMS", "data=scratch/norms").replace("data=HSRI", "data=scratch/hsri")


def reply(prompt: str) -> str:
    if "Final Verdict" in prompt:
        return "Final Verdict: 4"
    return NORM if "norm" in prompt.casefold() else "A"


def test_the_steps_run_as_written(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="the extra bench is not installed")
    for clip in ("c1", "c2"):
        pictures(tmp_path / "scratch/norms", clip, 3)
    for segment in (f"{kind}{number}" for kind in "ec" for number in range(1, 7)):
        pictures(tmp_path / "scratch/hsri", segment, 3)
    for program in ("tactful", "inspect"):
        (tmp_path / program).write_text(NOTE, encoding="utf-8")
        (tmp_path / program).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", read_steps()], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True
    )
    with serve_replies(reply) as chat:
        environment = {
            **os.environ,
            "LOCAL_BASE_URL": chat.url,
            "LOCAL_API_KEY": "none",
            "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
        }
        done = subprocess.run(
            [sys.executable, "-c", RUN], cwd=tmp_path, env=environment, capture_output=True, text=True,
            timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    assert done.stdout.count("the model alone: openai-api/local/stand-in") == 4
    assert done.stdout.count("the robot: the model inside our steps") == 1
    assert {"published", "Human", "rationale", "norm"} <= set(re.findall(r"\w+", done.stdout))
