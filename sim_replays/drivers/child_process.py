"""End child processes: signal first, kill after a timeout."""

import signal
import subprocess
from typing import Any


def end_process(process: subprocess.Popen[Any], within_s: float, number: signal.Signals = signal.SIGTERM) -> None:
    """Send a signal to a running process, and kill it if it has not ended after `within_s` seconds."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
