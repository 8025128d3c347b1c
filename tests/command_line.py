"""The command line as its user calls it, in this process where that shows the same, else in a child process."""

import io
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from tactful_cli import console, main
from tests.patience import PATIENCE_S

TACTFUL = (sys.executable, "-m", "tactful_cli")
# As a shell starts what stands before &, where SIGTERM alone ends it.
IN_BACKGROUND = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
# What Python, the loader and libraries read as they start.
_OF_A_START = ("PYTHON", "LD_", "OPENBLAS_", "OMP_", "CT2_")


def tactful(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call a verb that ends by itself and starts no program. It runs here, which spares a second of imports a call."""
    if any(name.startswith(_OF_A_START) for name in environment):
        return tactful_process(*arguments, **environment)
    command = [str(argument) for argument in arguments]
    environment = {"COLUMNS": "120", **environment}
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with patch.dict(os.environ, environment), _state_kept(), redirect_stdout(out), redirect_stderr(err):
        # Both keep the width that they found as they were imported.
        console.out.width = console.err.width = int(environment["COLUMNS"])
        code = _exit_code(command)
    for stream in (out, err):
        stream.seek(0)
    return subprocess.CompletedProcess(["tactful", *command], code, out.read(), err.read())


def tactful_process(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call a verb in a child process: what runs nodes or other programs, or reads its environment as it starts."""
    return subprocess.run(
        [*TACTFUL, *map(str, arguments)],
        env={**os.environ, "COLUMNS": "120", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def _exit_code(command: list[str]) -> int:
    try:
        with patch.object(sys, "argv", ["tactful", *command]):
            main.main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception:  # noqa: BLE001 - Python prints it and exits with 1
        traceback.print_exc()
        return 1
    return 0


@contextmanager
def _state_kept() -> Iterator[None]:
    """Put back what a process loses with its end: the handlers of signals, the folder, the widths."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    folder, widths = Path.cwd(), (console.out.width, console.err.width)
    try:
        yield
    finally:
        os.chdir(folder)
        console.out.width, console.err.width = widths
        for number, handler in handlers.items():
            signal.signal(number, handler)
