"""One generated session of ten minutes, written once, and a browser for each module that looks at pages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from study_desk.log.recording import Recording, open_recording
from tests.study_desk.browser import Browser
from tests.study_session import write_log


@pytest.fixture(scope="session")
def session_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Read it only; it is shared."""
    folder = tmp_path_factory.mktemp("study") / "log"
    write_log(folder)
    return folder


@pytest.fixture(scope="session")
def session(session_log: Path) -> Recording:
    return open_recording(session_log)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def shown(browser: Browser, url: str) -> Browser:
    """The page at the module's `url`, freshly opened."""
    browser.size(1440, 900)
    browser.events.clear()
    browser.open(url)
    return browser
