from pathlib import Path

import pytest

from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.session_log.recording import Recording, open_recording
from tests.study_session import write_log


@pytest.fixture(scope="session")
def meaning() -> EncoderMatcher:
    return EncoderMatcher.shipped()


@pytest.fixture(scope="session")
def session_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Read it only; it is shared."""
    folder = tmp_path_factory.mktemp("study") / "log"
    write_log(folder)
    return folder


@pytest.fixture(scope="session")
def session(session_log: Path) -> Recording:
    return open_recording(session_log)
