"""Run a command that may hang, such as the tool of a driver."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence

# How long a killed process may take to end.
_END_S = 1.0


def run_bounded(command: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Return the command's exit code and output. Raises TimeoutExpired soon after `timeout_s`, even if it hangs.

    `subprocess.run` would wait on for a process that cannot be killed, because a driver holds it, and for children
    that keep the pipe open.
    """
    with (
        tempfile.TemporaryFile("w+", errors="replace") as output,
        tempfile.TemporaryFile("w+", errors="replace") as complaints,
    ):
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=complaints, start_new_session=True
        )
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.returncode = -signal.SIGKILL  # so that nothing waits for it at the end of this process
            raise
        output.seek(0)
        complaints.seek(0)
        return subprocess.CompletedProcess(list(command), code, output.read(), complaints.read())
