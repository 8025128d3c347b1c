"""Pages of the view, served for a browser."""

from collections.abc import Iterator
from contextlib import contextmanager

from norm_core.records.status import Health, MonitorStatus
from norm_core.runtime.time import NS_PER_S
from norm_monitor.view.page_server import StillAt
from norm_monitor.view.timeline import SessionTimeline
from norm_monitor.view.view_server import Controls, ViewServer
from tests.node_records import node_status
from tests.norm_monitor.view.browser import Browser
from tests.norm_monitor.view.page_requests import serving
from tests.study_session import START_NS

REMEDY = "ears: topic /audio has no publisher; check the name with ./tactful doctor"


def status(second: int, *reasons: str) -> MonitorStatus:
    """Return the ears' health at a second of the generated session: stale for reasons."""
    health = Health.STALE if reasons else Health.OK
    return node_status(START_NS + second * NS_PER_S, health=health, reasons=reasons)


@contextmanager
def page_of(
    browser: Browser,
    timeline: SessionTimeline,
    still_at: StillAt | None = None,
    *,
    controls: Controls | None = None,
    is_live: bool = False,
) -> Iterator[str]:
    """Serve the page of a timeline, and give its address."""
    with serving(ViewServer(timeline, still_at, controls=controls, is_live=is_live)) as server:
        yield server.url
        browser.send("Page.navigate", url="about:blank")  # a page that stays would go on asking
