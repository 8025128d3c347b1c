"""One generated session of ten minutes, written once."""

from pathlib import Path

import pytest

from norm_monitor.study.recording import Recording, open_recording
from sim_replays.study_example import write_log


@pytest.fixture(scope="session")
def session_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Read it only; it is shared."""
    folder = tmp_path_factory.mktemp("study") / "log"
    write_log(folder)
    return folder


@pytest.fixture(scope="session")
def session(session_log: Path) -> Recording:
    return open_recording(session_log)
