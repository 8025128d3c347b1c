"""The session and the browser of the tests of the monitor's pages."""

from tests.norm_monitor.conftest import session, session_log
from tests.norm_monitor.view.conftest import browser, shown

__all__ = ["browser", "session", "session_log", "shown"]
