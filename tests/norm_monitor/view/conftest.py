"""A browser for each module that looks at pages."""

from collections.abc import Iterator

import pytest

from tests.norm_monitor.view.browser import Browser


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
