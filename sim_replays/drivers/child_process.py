"""Processes started here, ended: asked first, and killed where they do not end in time."""

import signal
import subprocess
from typing import Any


def end_process(process: subprocess.Popen[Any], within_s: float, number: signal.Signals = signal.SIGTERM) -> None:
    """Send the signal to a process that still runs, and kill it where it has not ended within so long."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
