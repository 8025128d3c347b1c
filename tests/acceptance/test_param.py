"""`./tactful param` from outside: a running node tells its parameters, and changes or says why not."""

import subprocess

import pytest

from sim_replays.drivers.node_process import NodeProcess
from tests.acceptance.tactful_up import TACTFUL
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros


def param(*arguments: str) -> tuple[int, str]:
    command = [*TACTFUL, "param", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_running_node_takes_a_live_parameter_or_says_why_not(domain_id: int) -> None:
    with NodeProcess(["monitor"], {"monitor": {"fusion": {"muted": ["response_delay"]}}}, domain_id):
        for name, value, before, after in (
            ("fusion.sensitivity", "quiet", "balanced", "quiet"),
            ("fusion.muted", "[]", '["response_delay"]', "[]"),
            ("judge.calls_per_hour", "30", "-1.0", "30.0"),
        ):
            assert param("monitor", name, value) == (0, f"{name}: {before} -> {after}\n")
        assert param("monitor", "fusion.sensitivity") == (0, "fusion.sensitivity: quiet\n")
        code, told = param("monitor")
        assert {"fusion.muted: []", "windows.step_s: 5.0"} <= set(told.splitlines())
        code, told = param("monitor", "fusion.sensitivty")
        assert (code, "has no parameter fusion.sensitivty" in told) == (2, True)
        code, told = param("monitor", "fusion.sensitivity", "loud")
        assert (code, "/tactful/monitor: fusion.sensitivity is refused: " in told) == (2, True)
        assert "'balanced'" in told
        code, told = param("monitor", "windows.step_s", "3")
        assert (code, "unconfigured" in told) == (2, True)


def test_a_node_that_is_not_there_is_told(domain_id: int) -> None:
    code, told = param("monitor", "fusion.sensitivity", "quiet", "--namespace", "left")
    assert code == 2
    assert "/left/tactful/monitor: no node of this name answers" in told
