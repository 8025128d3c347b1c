"""The microphone of this machine, with a stand-in for the program that records it."""

from pathlib import Path

import pytest

from norm_core.records.status import Health
from norm_monitor.replay.node_process import NodeProcess
from tests.observer import Observer

pytestmark = pytest.mark.ros

SILENT_SECOND = "head -c 32000 /dev/zero"


def recorder(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program of that script first on the path, under the name that is looked for first."""
    program = folder / "parec"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_sound_is_published_with_the_stamp_of_its_first_sample(
    tmp_path: Path, observer: Observer, domain_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from std_msgs.msg import UInt8MultiArray

    statuses = observer.watch_status()
    recorder(tmp_path, f"while {SILENT_SECOND}; do sleep 1; done", monkeypatch)
    chunks = observer.collect(UInt8MultiArray, "/microphone/audio", 10)
    with NodeProcess(["microphone"], None, domain_id):
        observer.until(lambda: len(chunks) > 1 and statuses, "sound and a status")
    stamps = [int(chunk.layout.dim[0].label.removeprefix("stamp_ns=")) for chunk in chunks]
    assert {len(chunk.data) for chunk in chunks} == {3200}
    assert stamps == sorted(stamps)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 'open failed: Permission denied' >&2; exit 1", "sudo usermod -aG audio $USER"),
        ("exit 3", "parec: ended with 3; plug a microphone in"),
    ],
    ids=["permission", "silent"],
)
def test_microphone_failure_is_stated_with_its_remedy(  # noqa: PLR0917
    script: str, problem: str, tmp_path: Path, observer: Observer, domain_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder(tmp_path, script, monkeypatch)
    statuses = observer.watch_status()
    with NodeProcess(["microphone"], None, domain_id):
        observer.until_told(problem)
    assert statuses[-1].health is Health.STALE
