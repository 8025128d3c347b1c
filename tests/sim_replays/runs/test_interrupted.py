"""Runs that are broken off: a full disk, ctrl-C, and a dead node. Nothing answered is lost or asked again."""

import json
import os
import resource
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest

from norm_core.runtime.errors import TactfulError
from norm_core.runtime.json_lines import RunError
from norm_monitor.replay.node_process import NodeProcess
from sim_replays.items.run_config import RunConfig
from sim_replays.items.target import SuiteError
from sim_replays.runs import execute, transport
from sim_replays.runs.execute import judge_files
from sim_replays.runs.results import run_folder
from sim_replays.runs.results.run_folder import Run
from sim_replays.runs.transport import Dds, Direct, JudgeAnswererConfig, TransportError
from sim_replays.suites.egonormia import SUITE as EGONORMIA
from tests.command_line import IN_BACKGROUND, TACTFUL
from tests.patience import PATIENCE_S
from tests.sim_replays.requested_data import hsri_folder
from tests.sim_replays.runs.test_runs import FirstOption, asking, ran


@contextmanager
def no_file_longer_than(size_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def times_answered(out: Path) -> Counter[str]:
    lines = (out / run_folder.RAW).read_text().splitlines()
    return Counter(json.loads(line)["answer"]["query_id"] for line in lines)


def test_a_full_disk_in_mid_run_loses_nothing(shared_data: Path, tmp_path: Path) -> None:
    gap, out = shared_data / "egogapbench", tmp_path / "run"
    whole = ran(tmp_path / "other", asking(gap, limit=40), FirstOption())
    with pytest.raises(TransportError):
        ran(out, asking(gap, limit=40), FirstOption(breaks_after=30))
    room = (out / run_folder.RAW).stat().st_size + 40  # for a part of the next line
    filled = FirstOption()
    with no_file_longer_than(room), pytest.raises(RunError, match="make room, then give the same command again"):
        ran(out, asking(gap, limit=40), filled)
    assert len((out / run_folder.ANSWERS).read_text().splitlines()) == 30
    last = FirstOption()
    found = ran(out, asking(gap, limit=40), last)
    assert len(last.asked) == 10
    ran(out, asking(gap, limit=40), again := FirstOption())
    assert again.asked == []
    assert set(times_answered(out).values()) == {1}
    assert {name: one.answer for name, one in found.told.items()} == {n: one.answer for n, one in whole.told.items()}


def test_a_disk_too_full_for_the_bag_says_so_and_is_gone_on_with(shared_data: Path, tmp_path: Path) -> None:
    gap, out = shared_data / "egogapbench", tmp_path / "run"
    with no_file_longer_than(3000), pytest.raises((TactfulError, OSError)) as raised:
        ran(out, asking(gap), FirstOption())
    assert isinstance(raised.value, TactfulError), raised.value
    assert not (out / f"{run_folder.BAG}.labels.json").exists()
    assert len(ran(out, asking(gap), FirstOption()).told) == 8


def test_an_id_that_stands_twice_in_an_object_is_told(shared_data: Path, tmp_path: Path) -> None:
    text = (shared_data / "egonormia/ood_robot.json").read_text()
    entries = json.loads(text)
    name, entry = next(iter(entries.items()))
    doubled = f'{{"{name}": {json.dumps(entry)}, "{name}": {json.dumps(entry)}}}'
    (tmp_path / "twice.json").write_text(doubled)
    with pytest.raises(SuiteError, match=f"the key '{name}' stands twice"):
        EGONORMIA.read(tmp_path / "twice.json", "")


def waited(condition: Any, what: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"waited in vain for {what}"
        time.sleep(0.02)


@pytest.mark.parametrize(("start", "number"), [((), signal.SIGINT), (IN_BACKGROUND, signal.SIGTERM)])
def test_ctrl_c_keeps_what_was_answered(tmp_path: Path, start: Sequence[str], number: int) -> None:
    data, out = hsri_folder(tmp_path / "data", count=90), tmp_path / "run"
    command = [*start, *TACTFUL, "bench", "run", "hsri", "--data", str(data), "--setting", "text"]
    command += ["--limit", "80", "--transport", "direct", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    raw = out / run_folder.RAW
    waited(lambda: process.poll() is not None or (raw.is_file() and raw.read_bytes().count(b"\n") > 2), "answers")
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert "Traceback" not in said
    before = len(times_answered(out))
    assert json.loads((out / run_folder.SCORE).read_text())["outcomes"]["answered"] == before
    what = RunConfig(suite="hsri", data=str(data), setting="text", limit=80)
    _, scored = execute.run(
        out,
        what,
        judge_files("encoder", what),
        Direct(JudgeAnswererConfig()),
        how="direct",
        progress=lambda done, total: None,
    )
    assert scored.outcomes["answered"] == scored.questions > before
    assert set(times_answered(out).values()) == {1}


@pytest.mark.ros
def test_a_node_killed_in_mid_run_is_gone_on_with(
    tmp_path: Path, domain_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the judge says the same over DDS, in two pieces, as directly in one."""
    started: list[NodeProcess] = []

    class Watched(NodeProcess):
        def __enter__(self) -> Self:
            started.append(self)
            return super().__enter__()

    monkeypatch.setattr(transport, "NodeProcess", Watched)
    data = hsri_folder(tmp_path / "data", count=15)
    what = RunConfig(suite="hsri", data=str(data), setting="text", limit=3)
    files = judge_files("encoder", what)

    def told(done: int, total: int) -> None:
        if done == 4 and len(started) == 1 and started[0].is_running():
            os.kill(started[0].pid, signal.SIGKILL)

    def begun(out: Path, by: Any, how: str = "dds") -> Run:
        return execute.run(out, what, files, by, how=how, progress=told)[0]

    with pytest.raises(TransportError, match=r"the process of monitor ended with -9 and said"):
        begun(tmp_path / "run", Dds(files, domain_id=domain_id))
    before = times_answered(tmp_path / "run")
    assert len(before) >= 4
    found = begun(tmp_path / "run", Dds(files, domain_id=domain_id))
    assert len(started) == 2
    assert set(times_answered(tmp_path / "run").values()) == {1}
    direct = begun(tmp_path / "direct", Direct(files), "direct")
    assert len(direct.told) > len(before)
    assert {n: one.answer for n, one in found.told.items()} == {n: one.answer for n, one in direct.told.items()}
