"""The coding page in a real browser: marking events with keys, playing, and agreeing on a consensus."""

from collections.abc import Iterator
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_monitor.session_log.recording import open_recording
from norm_monitor.session_log.schema import Label
from norm_monitor.session_log.study_file import Code, StudyFile
from norm_monitor.session_log.writer import StudyLog
from study_desk.coding.coding_server import CodingServer, PlayerMedia
from tests.norm_monitor.view.browser import Browser, faults, inaccessible, needs_axe, needs_chromium, text
from tests.norm_monitor.view.page_requests import serving
from tests.study_session import START_NS, write_log

pytestmark = needs_chromium

EVIL = "</script><script>window.owned=1</script><img src=x onerror='window.owned=1'>{{data}}"
STUDY = StudyFile(
    study="library-2026",
    codes=(
        Code(id="joke", name=EVIL, polarity=Polarity.COMPETENCE, attribute=Attribute.ENGAGEMENT, key="j"),
        Code(id="oath", name="oath", polarity=Polarity.ERROR, attribute=Attribute.EMOTIONS, key="o"),
        Code(id="stray", name="stray", polarity=Polarity.ERROR),
    ),
)
TOKENS = {"token-ana": "Ana", "token-bo": "Bo"}


def draw_still(stamp_ns: int) -> bytes:
    """Draw a picture as wide as its second, so that a page tells which one it shows."""
    width = 100 + (stamp_ns - START_NS) // NS_PER_S
    data = cv2.imencode(".jpg", np.full((60, width, 3), 180, np.uint8))[1]
    return data.tobytes()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_log(tmp_path / "log", length_s=60, flags=4)
    return tmp_path / "log"


@pytest.fixture
def server(log: Path) -> Iterator[CodingServer]:
    media = PlayerMedia(still_at=draw_still)
    coding = CodingServer(log, TOKENS, ReplayClock(START_NS), study=STUDY, media=media)
    with serving(coding) as served:
        yield served


@pytest.fixture
def ana_page(browser: Browser, server: CodingServer) -> Browser:
    """Ana's page, freshly opened."""
    browser.size(1440, 900)
    browser.events.clear()
    browser.open(server.url("token-ana"))
    return browser


def seek(browser: Browser, second: int) -> None:
    """Move the player by its keys."""
    at = round(browser.run("Number(document.getElementById('cursor').value)") / 1000)
    for _ in range(abs(second - at)):
        browser.key("ArrowRight" if second > at else "ArrowLeft", code=39 if second > at else 37)


def mark_event(browser: Browser, key: str, second: int, until: int | None = None) -> None:
    """Mark an event with keys alone, and wait until it is in the log."""
    before = count_events(browser)
    seek(browser, second)
    if until is not None:
        browser.key("i")
        seek(browser, until)
        browser.key("o")
    browser.key(key)
    browser.until(f"document.querySelectorAll('#rows [role=option]').length === {before + 1}")


def count_events(browser: Browser) -> int:
    return int(browser.run("document.querySelectorAll('#rows [role=option]').length"))


def wait_until_saved(browser: Browser) -> None:
    browser.until("document.getElementById('saved').innerText === 'Saved in the log.'")


def finish_coding(browser: Browser) -> None:
    browser.run("document.getElementById('finish-open').focus()")
    browser.key("Enter", code=13)
    browser.until("document.getElementById('finish').open")
    browser.run("document.getElementById('finish-yes').click()")
    browser.until("document.documentElement?.dataset.ready === 'yes' && !document.getElementById('compare').hidden")


def read_drafts(log: Path) -> list[tuple[str, float, float, str | None]]:
    return [
        (
            label.code or f"{label.polarity} {label.attribute}",
            (label.start_ns - START_NS) / NS_PER_S,
            (label.end_ns - START_NS) / NS_PER_S,
            label.severity,
        )
        for label in open_recording(log).drafts
    ]


def test_keys_code_a_session(ana_page: Browser, log: Path) -> None:
    mark_event(ana_page, "3", 10, 13)
    mark_event(ana_page, "2", 20)
    ana_page.key("f")
    wait_until_saved(ana_page)
    ana_page.until("document.querySelector('#details [name=severity]').value === 'severe'")
    assert read_drafts(log) == [
        ("error conversational_mechanics", 10, 13, None),
        ("error engagement", 20, 20, "severe"),
    ]
    ana_page.key("ArrowUp", code=38)
    assert text(ana_page, "#details .name") == "Error conversational mechanics"
    assert text(ana_page, "#at") == "0:10.0 of 1:00"
    ana_page.key("Delete", code=46)
    ana_page.until("document.querySelectorAll('#rows [role=option]').length === 1")
    assert read_drafts(log) == [("error engagement", 20, 20, "severe")]
    ana_page.run("document.querySelector('#saved button').click()")
    ana_page.until("document.querySelectorAll('#rows [role=option]').length === 2")
    assert len(read_drafts(log)) == 2
    assert faults(ana_page) == []


def test_the_form_changes_an_event_and_escape_closes_it(ana_page: Browser, log: Path) -> None:
    mark_event(ana_page, "1", 10, 12)
    seek(ana_page, 15)
    ana_page.run(
        "const form = document.querySelector('#details form'); form.elements.code.value = 'joke';"
        "form.elements.start.value = '0:09.5'; form.elements.comment.value = 'unsure'; form.elements.comment.focus()"
    )
    ana_page.key("1")
    assert count_events(ana_page) == 1  # a key in a comment is a letter
    ana_page.key("Escape", code=27)
    assert ana_page.run("document.querySelector('#details [name=comment]').value") == ""
    assert ana_page.run("document.activeElement.id") == "list"
    ana_page.run(
        "{ const form = document.querySelector('#details form'); form.elements.code.value = 'joke';"
        "form.elements.start.value = '0:09.5'; form.elements.end.nextSibling.click();"
        "form.elements.comment.value = 'in two minds'; form.requestSubmit(); }"
    )
    ana_page.until("!document.querySelector('#details .name').innerText.startsWith('Error')")  # saved
    assert ana_page.run("document.querySelector('#details [name=comment]').value") == "in two minds"
    assert read_drafts(log) == [("joke", 9.5, 15, None)]
    for start, message in (
        ("0:16", "The end is before the start."),
        ("soon", "Write times as"),
        ("1:2:3:4", "Write times"),
    ):
        ana_page.run(
            f"{{ const f = document.querySelector('#details form'); f.elements.start.value = '{start}';"
            "f.requestSubmit(); }"
        )
        assert message in text(ana_page, "#details [role=alert]")
    assert read_drafts(log) == [("joke", 9.5, 15, None)]


def test_the_still_follows_keys_pointer_slider_and_play(ana_page: Browser) -> None:
    width = "document.getElementById('still').naturalWidth"
    ana_page.until(f"{width} === 100")
    seek(ana_page, 7)
    ana_page.until(f"{width} === 107")
    at = ana_page.run(
        "(({ left, top, width }) => [left, top, width])(document.getElementById('canvas').getBoundingClientRect())"
    )
    ana_page.click(at[0] + at[2] / 2, at[1] + 80)
    ana_page.until(f"{width} === 130")
    assert text(ana_page, "#at") == "0:30.0 of 1:00"
    ana_page.run("const c = document.getElementById('cursor'); c.value = 45000; c.dispatchEvent(new Event('input'))")
    ana_page.until(f"{width} === 145")
    ana_page.key(" ", code=32)
    ana_page.until("Number(document.getElementById('cursor').value) > 46000")
    ana_page.key(" ", code=32)
    assert text(ana_page, "#play") == "Play"
    for _ in range(80):
        ana_page.key("ArrowRight", code=39)
    assert text(ana_page, "#at").startswith("1:00")


def test_the_video_plays_from_its_offset(browser: Browser, tmp_path: Path, log: Path) -> None:
    """Its first frame is 5 s after the session's start, and it lasts 10 s."""
    with av.open(str(tmp_path / "s.webm"), "w") as container:
        stream = container.add_stream("libvpx", rate=5)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(50):
            pixels = np.full((48, 64, 3), 4 * number, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="bgr24")))
        container.mux(stream.encode(None))
    media = PlayerMedia(video=tmp_path / "s.webm", video_offset_ms=5000)
    coding = CodingServer(log, TOKENS, ReplayClock(START_NS), study=STUDY, media=media)
    with serving(coding) as served:
        browser.events.clear()
        browser.open(served.url("token-ana"))
        browser.until("document.getElementById('video').readyState > 1")
        seek(browser, 12)
        browser.until("Math.abs(document.getElementById('video').currentTime - 7) < .01")
        browser.key(" ", code=32)
        browser.until("Number(document.getElementById('cursor').value) > 16000")  # on beyond its end
        browser.key(" ", code=32)
        assert browser.run("document.getElementById('video').paused")
        assert faults(browser) == []


def test_an_unsaved_event_is_reported_and_not_shown(ana_page: Browser, server: CodingServer, log: Path) -> None:
    ana_page.run(
        "window.real = fetch;"
        "window.fetch = (path, ...more) =>"
        "  path === 'events' ? Promise.reject(new TypeError('gone')) : real(path, ...more)"
    )
    seek(ana_page, 4)
    ana_page.key("i")
    seek(ana_page, 6)
    ana_page.key("1")
    ana_page.until("!document.getElementById('unsaved').hidden")
    assert "Not saved: the server does not answer" in text(ana_page, "#unsaved")
    assert count_events(ana_page) == 0
    assert "In at 0:04.0" in text(ana_page, "#mark-text")
    ana_page.run("window.fetch = real")
    ana_page.key("1")
    ana_page.until("document.querySelectorAll('#rows [role=option]').length === 1")
    assert read_drafts(log) == [("error emotions", 4, 6, None)]
    assert ana_page.run("document.getElementById('unsaved').hidden")


@needs_axe
@pytest.mark.parametrize(("width", "is_dark"), [(1440, False), (390, True)])
def test_the_coding_page_is_accessible(ana_page: Browser, server: CodingServer, width: int, is_dark: bool) -> None:
    ana_page.size(width, 900)
    if is_dark:
        ana_page.run("document.getElementById('theme').click()")
    mark_event(ana_page, "1", 3, 5)
    ana_page.key("i")
    assert inaccessible(ana_page) == []
    assert fits_width(ana_page, width)
    ana_page.run("document.getElementById('finish-open').click()")
    assert inaccessible(ana_page) == []
    ana_page.key("Escape", code=27)
    finish_coding(ana_page)
    ana_page.open(server.url("token-bo"))
    finish_coding(ana_page)
    if is_dark:
        ana_page.run("document.getElementById('theme').click()")
    assert inaccessible(ana_page) == []
    assert fits_width(ana_page, width)
    ana_page.run("[...document.querySelectorAll('#compared td:last-child button')].at(-1).click()")
    assert inaccessible(ana_page) == []
    assert fits_width(ana_page, width)


def fits_width(browser: Browser, width: int) -> bool:
    return bool(browser.run(f"document.documentElement.scrollWidth <= {width}"))


def test_markup_in_words_is_not_run(browser: Browser, tmp_path: Path) -> None:
    write_log(tmp_path / "evil", condition=EVIL, length_s=60, flags=0)
    with StudyLog.resume(tmp_path / "evil", ReplayClock(START_NS)) as log:
        label = Label(
            start_ns=START_NS, end_ns=START_NS + NS_PER_S, polarity=Polarity.ERROR, attribute=Attribute.EMOTIONS,
            coder="C</script>", code=EVIL, comment=EVIL,
        )  # fmt: skip
        log.append(label, START_NS)
    served = CodingServer(tmp_path / "evil", {"t": "A<b>"}, ReplayClock(START_NS), study=STUDY)
    with serving(served):
        browser.open(served.url("t"))
        mark_event(browser, "j", 0)
        browser.run(
            f"{{ const f = document.querySelector('#details form'); f.elements.comment.value = {EVIL!r};"
            "f.requestSubmit(); }"
        )
        browser.until("document.querySelector('#details [name=comment]').value.includes('owned')")
        assert EVIL in text(browser, "#codes")
        finish_coding(browser)
        assert EVIL in text(browser, "#compared")
        assert "C</script>" in text(browser, "#compared thead")
        assert browser.run("window.owned") is None
