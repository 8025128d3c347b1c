"""The view in a real browser: the replay of a session, with its reasons."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from norm_core.records.decision import Decision
from norm_core.records.flag import Evidence, FlagState, SocialFlag
from norm_core.records.presence import Person, Presence, PresenceState
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import NS_PER_S
from sim_replays.examples.study_session import START_NS, records
from study_desk.view.timeline import SessionTimeline
from tactful_cli.view.verb import NO_SPEECH
from tests.study_desk.browser import Browser, faults, inaccessible, needs_axe, needs_chromium, text
from tests.study_desk.view_pages import REMEDY, page_of, status

pytestmark = needs_chromium


@pytest.fixture
def timeline() -> SessionTimeline:
    """Return the timeline of the generated session, in which the ears go deaf at 300 s."""
    filled = SessionTimeline("library_s07", START_NS)
    for known_ns, record in records():
        filled.take(record, known_ns)
    filled.take(status(0), START_NS)
    filled.take(status(300, REMEDY), START_NS + 300 * NS_PER_S)
    return filled


@pytest.fixture
def url(browser: Browser, timeline: SessionTimeline) -> Iterator[str]:
    with page_of(browser, timeline) as address:
        yield address


def at_s(second: float) -> int:
    """Return the time of a second of the session."""
    return START_NS + round(second * NS_PER_S)


def of(kind: type[Any]) -> list[Any]:
    """Return the session's records of a kind."""
    return [record for _, record in records() if isinstance(record, kind)]


def scrub(browser: Browser, at_ns: int) -> None:
    """Move the scrubber, as a finger would."""
    browser.run(
        "(() => { const c = document.getElementById('cursor');"
        f"c.value = {(at_ns - START_NS) / 1e6}; c.dispatchEvent(new Event('input')); }})()"
    )


def test_it_sums_up_the_session_and_asks_only_its_own_server(shown: Browser, url: str) -> None:
    flags = {flag.event_id: flag for flag in of(SocialFlag)}
    errors = sum(flag.polarity == "error" for flag in flags.values())
    assert text(shown, "h1") == "library_s07"
    assert f"{errors} errors, {len(flags) - errors} competences, {len(of(Decision))} decisions" in text(shown, "#meta")
    asked = [e["params"]["request"]["url"] for e in shown.events if e.get("method") == "Network.requestWillBeSent"]
    assert [one for one in asked if not one.startswith((url.split("?", maxsplit=1)[0], "data:", "blob:"))] == []
    assert faults(shown) == []


def test_the_scrubber_shows_who_speaks_and_what_was_raised(shown: Browser) -> None:
    said = next(one for one in of(Utterance) if one.final)
    scrub(shown, said.end_ns - 1)
    assert said.text in text(shown, "#said .speaking")
    flag = of(SocialFlag)[0]
    scrub(shown, flag.decision_ns - NS_PER_S // 10)
    assert flag.rationale not in text(shown, "#raised")
    scrub(shown, flag.decision_ns + NS_PER_S)
    assert flag.rationale in text(shown, "#raised")


def test_a_flag_says_when_it_is_of_and_when_it_was_flagged(shown: Browser, timeline: SessionTimeline) -> None:
    times = {"onset_ns": at_s(40.96), "offset_ns": at_s(44.02), "decision_ns": at_s(47.28)}
    flag = replace(of(SocialFlag)[0], event_id="timed", state=FlagState.OPENED, **times)
    timeline.take(flag, at_s(47.28))
    shown.until("document.getElementById('row-timed') !== null")
    scrub(shown, at_s(45))
    assert "Grey: not yet flagged" in text(shown, "#later-note")
    shown.run("document.getElementById('row-timed').click()")
    assert text(shown, "#row-timed .when") == "0:41"
    for place in ("#details .facts", "#raised"):
        assert "0:41.0 to 0:44.0 (3.0 s)" in text(shown, place)
        assert "flagged at 0:47.3, 3.3 s after it ended" in text(shown, place)
    assert "when the monitor raised it" in text(shown, ".now")


def line_of(said: Utterance) -> str:
    return (
        f"[...document.querySelectorAll('#lines button')].find((b) => b.textContent.includes({json.dumps(said.text)}))"
    )


def test_a_line_of_the_transcript_leads_to_its_moment(shown: Browser) -> None:
    lines = [said for said in of(Utterance) if said.final and said.text]
    assert text(shown, "#line-count") == f"{len(lines)} lines"
    said = lines[2]
    shown.run(f"{line_of(said)}.click()")
    assert shown.run("Number(document.getElementById('cursor').value)") == round((said.start_ns - START_NS) / 1e6)
    assert shown.run(f"{line_of(said)}.ariaCurrent") == "true"


def test_the_transcript_is_searched_and_walked_by_keyboard(shown: Browser) -> None:
    shown.run("document.getElementById('line-words').focus()")
    for letter in "reading room":
        shown.key(letter)
    found = shown.run("document.querySelectorAll('#lines li').length")
    assert 1 < found < len(of(Utterance))
    assert text(shown, "#line-count").startswith(f"{found} of")
    shown.key("Tab", code=9)
    first = shown.run("document.activeElement.textContent")
    shown.key("ArrowDown", code=40)
    second = shown.run("document.activeElement.textContent")
    assert "reading room" in first.lower()
    assert "reading room" in second.lower()
    assert first != second
    shown.run("document.activeElement.click()")
    assert shown.run("document.querySelector('#lines [aria-current]').textContent") == second
    for letter in "zebra":
        shown.run(f"document.getElementById('line-words').value += '{letter}'")
    shown.run("document.getElementById('line-words').dispatchEvent(new Event('input'))")
    assert text(shown, "#no-lines") == "No line holds these words."


def test_two_users_are_told_apart_in_the_transcript(shown: Browser, timeline: SessionTimeline) -> None:
    for number, name in enumerate(("Ana", "Bo")):
        said = replace(
            of(Utterance)[0], utterance_id=name, speaker=Speaker.USER, speaker_id=name, text=f"It is {name}."
        )
        timeline.take(replace(said, start_ns=at_s(590 + number), end_ns=at_s(590.5 + number)), at_s(600))
    shown.until("document.getElementById('lines').textContent.includes('It is Bo.')")
    spoken = shown.run("[...document.querySelectorAll('#lines button')].map((b) => b.children[1].textContent)")
    assert spoken[-2:] == ["user 2", "user 3"]
    assert set(spoken) == {"robot", "user 1", "user 2", "user 3"}


def test_a_bag_without_speech_is_no_silence(browser: Browser) -> None:
    timeline = SessionTimeline("library_s07", START_NS)
    flag = of(SocialFlag)[0]
    timeline.take(flag, flag.decision_ns)
    timeline.set_state("speech_missing", NO_SPEECH)
    timeline.complete()
    with page_of(browser, timeline) as address:
        browser.open(address)
        browser.key("j")
        for where in ("#details", "#said", "#no-lines"):
            assert NO_SPEECH in text(browser, where)
        assert "Nobody sp" not in text(browser, "main")


def test_health_is_that_of_the_moment_with_its_remedy(shown: Browser) -> None:
    scrub(shown, START_NS + 10 * NS_PER_S)
    assert "/tactful/ears: ok" in text(shown, "#health")
    scrub(shown, START_NS + 301 * NS_PER_S)
    assert REMEDY in text(shown, "#health")
    assert text(shown, "#health-sum") == "1 of 1 nodes need attention"
    assert text(shown, "#health-at") == "at 5:01"


def test_a_flag_gives_measure_threshold_and_reason(shown: Browser) -> None:
    flag = next(one for one in of(SocialFlag) if one.cue_id == "response_delay")
    scrub(shown, flag.decision_ns + NS_PER_S)
    raised = "[...document.querySelectorAll('.raised')]"
    shown.run(f"{raised}.find((each) => each.innerText.includes({json.dumps(flag.rationale)})).click()")
    fact = flag.evidence[0]
    details = text(shown, "#details")
    assert flag.rationale in details
    assert f"threshold of {fact.threshold:g} s" in details
    assert f"{fact.value:g} s" in details
    assert shown.run("Number(document.getElementById('cursor').value)") == round((flag.onset_ns - START_NS) / 1e6)


def test_a_decision_gives_its_candidates_and_vetoes(shown: Browser) -> None:
    decision = of(Decision)[0]
    scrub(shown, decision.decided_ns)
    shown.run("document.querySelector('.raised.decision').click()")
    table = text(shown, "#details table")
    assert all(candidate.action in table for candidate in decision.candidates)
    assert "the reader holds the book" in table


def test_filters_narrow_the_list_and_the_timeline(shown: Browser) -> None:
    flags = {flag.event_id: flag for flag in of(SocialFlag)}.values()
    shown.run("(b => { b.value = 2; b.dispatchEvent(new Event('change')); })(document.getElementById('severity'))")
    kept = [flag for flag in flags if flag.polarity == "competence" or flag.severity in {"major", "severe"}]
    assert text(shown, "#count") == f"{len(kept)} of {len(flags)}"
    decision = of(Decision)[0]
    shown.run("document.getElementById('canvas').scrollIntoView({ block: 'end' })")
    shown.run("window.requestAnimationFrame = () => 1")  # no frame is painted: a click must not meet what was filtered
    shown.run("document.querySelector('[data-kind=decision]').click()")
    box = shown.run("(b => [b.left, b.bottom, b.width])(document.getElementById('canvas').getBoundingClientRect())")
    share = (decision.decided_ns - START_NS) / (at_s(600) - START_NS)
    shown.click(box[0] + box[2] * share, box[1] - 18)
    assert text(shown, "#details .name") == ""
    shown.run("document.querySelector('[data-kind=decision]').click()")
    shown.click(box[0] + box[2] * share, box[1] - 18)
    assert text(shown, "#details .name") == decision.chosen


def window(shown: Browser) -> list[float]:
    """Return the seconds at the two ends of the timeline."""
    shown.until("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
    ends = text(shown, "#window").split(" of ")[0].split(" to ")
    return [60 * float(minutes) + float(seconds) for minutes, seconds in (end.split(":") for end in ends)]


def test_the_timeline_zooms_at_the_pointer_or_at_the_moment(shown: Browser) -> None:
    scrub(shown, at_s(120))
    for _ in range(3):
        shown.run("document.getElementById('zoom-in').click()")
    begin, end = window(shown)
    assert begin == pytest.approx(105, abs=1)
    assert end == pytest.approx(180, abs=1)
    shown.run("document.getElementById('zoom-all').click(); document.getElementById('timeline').focus()")
    box = shown.run("(b => [b.left, b.top, b.width])(document.getElementById('canvas').getBoundingClientRect())")
    shown.point(box[0] + box[2] * 0.75, box[1] + 100)
    for _ in range(4):
        shown.key("+")
    begin, end = window(shown)
    assert begin + 0.75 * (end - begin) == pytest.approx(450, abs=3)
    assert end - begin == pytest.approx(600 * 0.6**4, abs=3)


@pytest.mark.parametrize(("width", "height"), [(900, 800), (1280, 720), (1440, 900)])
def test_a_key_leaves_the_picture_and_its_flag_in_view(shown: Browser, width: int, height: int) -> None:
    shown.size(width, height)
    shown.until(f"document.documentElement.clientWidth === {width}")
    for _ in range(3):
        shown.key("j")
    picture, details = (
        shown.run(f"(b => [b.top, b.bottom])(document.querySelector('{each}').getBoundingClientRect())")
        for each in (".still", "#details .name")
    )
    assert picture[0] >= 0
    assert picture[1] <= details[0]
    assert details[1] <= height
    shown.size(1440, 900)


def test_who_left_is_not_present_any_more(shown: Browser, timeline: SessionTimeline) -> None:
    person = Presence(
        stamp_ns=at_s(601), source_topic="/people", state=PresenceState.PRESENT, persons=(Person(person_id="u"),)
    )
    for second, persons in ((601, person.persons), (602, person.persons), (603, ()), (604, ())):
        timeline.take(replace(person, stamp_ns=at_s(second), persons=persons), at_s(second))
    timeline.take(status(605), at_s(605))
    shown.until("Number(document.getElementById('cursor').max) >= 605000")
    scrub(shown, at_s(601.5))
    assert text(shown, "#present") == "1 person present"
    scrub(shown, at_s(602.6))
    assert text(shown, "#present") == "nobody present"


def test_the_keyboard_alone_replays_a_session(shown: Browser) -> None:
    at = "Number(document.getElementById('cursor').value)"
    shown.key(".")
    assert shown.run(at) == 1000
    shown.key(",")
    assert shown.run(at) == 0
    shown.key("j")
    assert text(shown, "#details .name") != ""
    before = shown.run(at)
    shown.key(" ")
    shown.until(f"{at} > {before} + 100")
    assert text(shown, "#play") == "Pause"
    shown.key(" ")
    assert text(shown, "#play") == "Play"


def test_what_comes_while_it_is_open_appears_by_itself(shown: Browser, timeline: SessionTimeline) -> None:
    flag = replace(of(SocialFlag)[0], event_id="new", state=FlagState.OPENED, rationale="It came late.")
    timeline.take(flag, START_NS + 601 * NS_PER_S)
    shown.until("document.getElementById('row-new') !== null")
    shown.run("document.getElementById('row-new').click()")
    gone = replace(flag, state=FlagState.WITHDRAWN, rationale="Withdrawn, as the person went on.")
    timeline.take(gone, START_NS + 602 * NS_PER_S)
    shown.until("document.getElementById('row-new') === null")
    assert "Withdrawn, as the person went on." in text(shown, "#details")
    assert faults(shown) == []


def test_what_people_said_is_never_run(browser: Browser, timeline: SessionTimeline, url: str) -> None:
    evil = "</script><script>window.owned=1</script><img src=x onerror='window.owned=1'>{{data}}"
    said = replace(next(iter(of(Utterance))), utterance_id="evil", text=evil, locale='en" onclick="')
    fact = Evidence(measure=evil, value=1.0, start_ns=0, end_ns=0, quote=evil)
    flag = replace(of(SocialFlag)[0], event_id='x"><b>', rationale=evil, correction=evil, cue_id=evil, evidence=(fact,))
    timeline.take(said, said.end_ns)
    timeline.take(flag, flag.decision_ns)
    timeline.take(status(1, evil), START_NS + NS_PER_S)
    timeline.note(evil)
    browser.open(url)
    scrub(browser, flag.decision_ns + NS_PER_S)
    assert evil in text(browser, "#notes")
    assert evil in text(browser, "#raised")
    assert evil in text(browser, "#health")
    scrub(browser, said.end_ns - 1)
    assert evil in text(browser, "#said")
    assert browser.run("window.owned") is None


def test_a_phone_needs_no_sideways_scrolling(shown: Browser) -> None:
    shown.size(360, 740, 2)
    shown.until("document.documentElement.clientWidth === 360")
    shown.key("j")
    assert shown.run("document.documentElement.scrollWidth") == 360


def test_an_empty_bag_says_so(browser: Browser) -> None:
    empty = SessionTimeline("empty", 0)
    empty.complete()
    browser.events.clear()
    with page_of(browser, empty) as url:
        browser.open(url)
        browser.key("j")
        browser.key(" ")
        assert "Nothing was flagged" in text(browser, "#list-empty")
        assert "no camera" in text(browser, "#no-still")
    assert faults(browser) == []


@needs_axe
@pytest.mark.parametrize("state", ["light", "dark", "phone"])
def test_axe_finds_nothing_inaccessible(shown: Browser, state: str) -> None:
    shown.key("j")
    scrub(shown, START_NS + 301 * NS_PER_S)
    if state == "dark":
        shown.run("document.getElementById('theme').click()")
    if state == "phone":
        shown.size(360, 740, 2)
    assert inaccessible(shown) == []
