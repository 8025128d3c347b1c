"""Our products of matrices are small, so no thread is started for them, however the code is started."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["norm_monitor.monitor", "tactful_cli.main"])
@pytest.mark.parametrize("own", [None, "2"])
def test_no_thread_waits_for_products_of_matrices(module: str, own: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    program = (
        f"import {module}, numpy, os; print(len(os.listdir('/proc/self/task')), os.environ['OPENBLAS_NUM_THREADS'])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | ({"OPENBLAS_NUM_THREADS": own} if own else {}),
        capture_output=True,
        text=True,
        check=True,
    )
    threads, asked = map(int, ended.stdout.split())
    assert asked == int(own or 1)
    assert threads == min(asked, len(os.sched_getaffinity(0)))
