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


def still(stamp_ns: int) -> bytes:
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
    media = PlayerMedia(still_at=still)
    coding = CodingServer(log, TOKENS, ReplayClock(START_NS), study=STUDY, media=media)
    with serving(coding) as served:
        yield served


@pytest.fixture
def shown(browser: Browser, server: CodingServer) -> Browser:
    """Ana's page, freshly opened."""
    browser.size(1440, 900)
    browser.events.clear()
    browser.open(server.url("token-ana"))
    return browser


def goto(browser: Browser, second: int) -> None:
    """Move the player by its keys."""
    at = round(browser.run("Number(document.getElementById('cursor').value)") / 1000)
    for _ in range(abs(second - at)):
        browser.key("ArrowRight" if second > at else "ArrowLeft", code=39 if second > at else 37)


def coded(browser: Browser, key: str, second: int, until: int | None = None) -> None:
    """Mark an event with keys alone, and wait until it is in the log."""
    before = count(browser)
    goto(browser, second)
    if until is not None:
        browser.key("i")
        goto(browser, until)
        browser.key("o")
    browser.key(key)
    browser.until(f"document.querySelectorAll('#rows [role=option]').length === {before + 1}")


def count(browser: Browser) -> int:
    return int(browser.run("document.querySelectorAll('#rows [role=option]').length"))


def saved(browser: Browser) -> None:
    browser.until("document.getElementById('saved').innerText === 'Saved in the log.'")


def finish(browser: Browser) -> None:
    browser.run("document.getElementById('finish-open').focus()")
    browser.key("Enter", code=13)
    browser.until("document.getElementById('finish').open")
    browser.run("document.getElementById('finish-yes').click()")
    browser.until("document.documentElement?.dataset.ready === 'yes' && !document.getElementById('compare').hidden")


def drafts(log: Path) -> list[tuple[str, float, float, str | None]]:
    return [
        (
            label.code or f"{label.polarity} {label.attribute}",
            (label.start_ns - START_NS) / NS_PER_S,
            (label.end_ns - START_NS) / NS_PER_S,
            label.severity,
        )
        for label in open_recording(log).drafts
    ]


def test_the_keyboard_alone_codes_a_session(shown: Browser, log: Path) -> None:
    coded(shown, "3", 10, 13)
    coded(shown, "2", 20)
    shown.key("f")
    saved(shown)
    shown.until("document.querySelector('#details [name=severity]').value === 'severe'")
    assert drafts(log) == [
        ("error conversational_mechanics", 10, 13, None),
        ("error engagement", 20, 20, "severe"),
    ]
    shown.key("ArrowUp", code=38)
    assert text(shown, "#details .name") == "Error conversational mechanics"
    assert text(shown, "#at") == "0:10.0 of 1:00"
    shown.key("Delete", code=46)
    shown.until("document.querySelectorAll('#rows [role=option]').length === 1")
    assert drafts(log) == [("error engagement", 20, 20, "severe")]
    shown.run("document.querySelector('#saved button').click()")
    shown.until("document.querySelectorAll('#rows [role=option]').length === 2")
    assert len(drafts(log)) == 2
    assert faults(shown) == []


def test_an_event_is_changed_in_its_form_and_escape_closes_it(shown: Browser, log: Path) -> None:
    coded(shown, "1", 10, 12)
    goto(shown, 15)
    shown.run(
        "const form = document.querySelector('#details form'); form.elements.code.value = 'joke';"
        "form.elements.start.value = '0:09.5'; form.elements.comment.value = 'unsure'; form.elements.comment.focus()"
    )
    shown.key("Escape", code=27)
    assert shown.run("document.querySelector('#details [name=comment]').value") == ""
    assert shown.run("document.activeElement.id") == "list"
    shown.run(
        "{ const form = document.querySelector('#details form'); form.elements.code.value = 'joke';"
        "form.elements.start.value = '0:09.5'; form.elements.end.nextSibling.click();"
        "form.elements.comment.value = 'in two minds'; form.requestSubmit(); }"
    )
    shown.until("!document.querySelector('#details .name').innerText.startsWith('Error')")  # saved
    assert shown.run("document.querySelector('#details [name=comment]').value") == "in two minds"
    assert drafts(log) == [("joke", 9.5, 15, None)]
    for start, told in (
        ("0:16", "The end is before the start."),
        ("soon", "Write times as"),
        ("1:2:3:4", "Write times"),
    ):
        shown.run(
            f"{{ const f = document.querySelector('#details form'); f.elements.start.value = '{start}';"
            "f.requestSubmit(); }"
        )
        assert told in text(shown, "#details [role=alert]")
    assert drafts(log) == [("joke", 9.5, 15, None)]


def test_letters_typed_into_a_comment_are_no_events(shown: Browser, log: Path) -> None:
    coded(shown, "1", 5)
    shown.run("document.querySelector('#details [name=comment]').focus()")
    for key in "quit 1":
        shown.key(key)
    assert shown.run("document.querySelector('#details [name=comment]').value") == "quit 1"
    shown.run("document.querySelector('#details form').requestSubmit()")
    shown.until("document.querySelector('#details [name=comment]').getAttribute('value') === 'quit 1'")
    assert [label.comment for label in open_recording(log).drafts] == ["quit 1"]
    assert len(drafts(log)) == 1


def test_the_picture_is_that_of_the_moment_however_it_is_sought(shown: Browser) -> None:
    width = "document.getElementById('still').naturalWidth"
    shown.until(f"{width} === 100")
    goto(shown, 7)
    shown.until(f"{width} === 107")
    at = shown.run(
        "(({ left, top, width }) => [left, top, width])(document.getElementById('canvas').getBoundingClientRect())"
    )
    shown.click(at[0] + at[2] / 2, at[1] + 80)
    shown.until(f"{width} === 130")
    assert text(shown, "#at") == "0:30.0 of 1:00"
    shown.run("const c = document.getElementById('cursor'); c.value = 45000; c.dispatchEvent(new Event('input'))")
    shown.until(f"{width} === 145")
    shown.key(" ", code=32)
    shown.until("Number(document.getElementById('cursor').value) > 46000")
    shown.key(" ", code=32)
    assert text(shown, "#play") == "Play"
    for _ in range(80):
        shown.key("ArrowRight", code=39)
    assert text(shown, "#at").startswith("1:00")


def test_a_video_is_played_from_where_the_session_begins_in_it(browser: Browser, tmp_path: Path, log: Path) -> None:
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
        goto(browser, 12)
        browser.until("Math.abs(document.getElementById('video').currentTime - 7) < .01")
        browser.key(" ", code=32)
        browser.until("Number(document.getElementById('cursor').value) > 16000")  # on beyond its end
        browser.key(" ", code=32)
        assert browser.run("document.getElementById('video').paused")
        assert faults(browser) == []


def test_what_could_not_be_saved_is_told_and_not_shown(shown: Browser, server: CodingServer, log: Path) -> None:
    shown.run(
        "window.real = fetch;"
        "window.fetch = (path, ...more) =>"
        "  path === 'events' ? Promise.reject(new TypeError('gone')) : real(path, ...more)"
    )
    goto(shown, 4)
    shown.key("i")
    goto(shown, 6)
    shown.key("1")
    shown.until("!document.getElementById('unsaved').hidden")
    assert "Not saved: the server does not answer" in text(shown, "#unsaved")
    assert count(shown) == 0
    assert "In at 0:04.0" in text(shown, "#mark-text")
    shown.run("window.fetch = real")
    shown.key("1")
    shown.until("document.querySelectorAll('#rows [role=option]').length === 1")
    assert drafts(log) == [("error emotions", 4, 6, None)]
    assert shown.run("document.getElementById('unsaved').hidden")


@needs_axe
@pytest.mark.parametrize(("width", "is_dark"), [(1440, False), (900, True), (390, False)])
def test_axe_finds_nothing_inaccessible(shown: Browser, server: CodingServer, width: int, is_dark: bool) -> None:
    shown.size(width, 900)
    if is_dark:
        shown.run("document.getElementById('theme').click()")
    coded(shown, "1", 3, 5)
    shown.key("i")
    assert inaccessible(shown) == []
    assert fits(shown, width)
    shown.run("document.getElementById('finish-open').click()")
    assert inaccessible(shown) == []
    shown.key("Escape", code=27)
    finish(shown)
    shown.open(server.url("token-bo"))
    finish(shown)
    if is_dark:
        shown.run("document.getElementById('theme').click()")
    assert inaccessible(shown) == []
    assert fits(shown, width)
    shown.run("[...document.querySelectorAll('#compared td:last-child button')].at(-1).click()")
    assert inaccessible(shown) == []
    assert fits(shown, width)


def fits(browser: Browser, width: int) -> bool:
    return bool(browser.run(f"document.documentElement.scrollWidth <= {width}"))


def test_words_of_people_and_coders_are_never_run(browser: Browser, tmp_path: Path) -> None:
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
        coded(browser, "j", 0)
        browser.run(
            f"{{ const f = document.querySelector('#details form'); f.elements.comment.value = {EVIL!r};"
            "f.requestSubmit(); }"
        )
        browser.until("document.querySelector('#details [name=comment]').value.includes('owned')")
        assert EVIL in text(browser, "#codes")
        finish(browser)
        assert EVIL in text(browser, "#compared")
        assert "C</script>" in text(browser, "#compared thead")
        assert browser.run("window.owned") is None
