"""One generated session of ten minutes, written once."""

from pathlib import Path

import pytest

from sim_replays.examples.study_session import write_log
from study_desk.log.recording import Recording, open_recording


@pytest.fixture(scope="session")
def session_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Read it only; it is shared."""
    folder = tmp_path_factory.mktemp("study") / "log"
    write_log(folder)
    return folder


@pytest.fixture(scope="session")
def session(session_log: Path) -> Recording:
    return open_recording(session_log)
