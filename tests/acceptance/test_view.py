"""`tactful view` of bags: why an encounter was flagged, what adds up to it, and what a decision answers."""

import json
import math
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from norm_core.bags.writer import BagWriter
from norm_core.files.data_files import shipped_file
from norm_core.records.decision import CandidateJudgement, Decision, Veto
from norm_core.records.flag import Attribute, Evidence, FlagState, Polarity, Severity, SocialFlag, Tier
from norm_core.records.outcome import Outcome
from tests.norm_monitor.view.browser import Browser, needs_chromium
from tests.patience import PATIENCE_S

SHIPPED = shipped_file("norm_monitor.encounters", "shipped")
START_NS = 1_700_000_000 * 10**9
SECOND_NS = 10**9
SITUATION = "The robot was silent for 4 s after a question."
ASKER = SocialFlag(
    stamp_ns=START_NS + 5 * SECOND_NS,
    event_id="late",
    state=FlagState.CLOSED,
    polarity=Polarity.ERROR,
    attributes=(Attribute.CONVERSATIONAL_MECHANICS,),
    severity=Severity.MINOR,
    probability=0.8,
    onset_ns=START_NS + SECOND_NS,
    offset_ns=START_NS + 5 * SECOND_NS,
    decision_ns=START_NS + 5 * SECOND_NS,
    tier=Tier.CUE,
    cue_id="response_delay",
    evidence=(Evidence(measure="silence", value=4, threshold=2, unit="s", start_ns=START_NS, end_ns=START_NS),),
    rationale=SITUATION,
    correction="Answer within two seconds.",
)
REPAIR = Decision(
    stamp_ns=START_NS + 6 * SECOND_NS,
    decision_id="late@6",
    query_id=ASKER.event_id,
    situation=SITUATION,
    outcome=Outcome.ANSWERED,
    chosen_index=2,
    candidates=(
        CandidateJudgement(index=0, action="Apologise.", veto=Veto.HOUSE_RULE, veto_reason="staff do so here"),
        CandidateJudgement(index=1, action="Take a hand.", veto=Veto.HARD_RULE, veto_reason="never touch a visitor"),
        CandidateJudgement(index=2, action="", probability=1, sensible=True),
    ),
    decided_ns=START_NS + 6 * SECOND_NS,
)


@contextmanager
def viewed(bag: Path, profile: Path) -> Iterator[Browser]:
    """Open the page over a bag, and wait until the bag is read."""
    command = [sys.executable, "-m", "tactful_cli", "view", str(bag)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as view:
        assert view.stdout is not None
        try:
            with Browser(profile) as browser:
                browser.open(view.stdout.readline().strip())
                browser.until("!document.getElementById('meta').innerText.includes('so far')", PATIENCE_S)
                yield browser
        finally:
            view.send_signal(signal.SIGINT)
            assert view.wait(PATIENCE_S) == 130


def inner(browser: Browser, selector: str) -> str:
    return str(browser.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))


def number_of(cell: str) -> float:
    """Read the first number of a cell, as a person does."""
    return float(cell.split(" ", maxsplit=1)[0].replace("\N{MINUS SIGN}", "-"))


def cells(browser: Browser, part: str) -> list[float]:
    """Return what each row of a part of the sum adds."""
    rows = f"[...document.querySelectorAll('.addition {part} tr')].map((row) => row.lastChild.innerText)"
    return [number_of(cell) for cell in browser.run(rows)]


def scrub(browser: Browser, second: float) -> None:
    browser.run(
        "(() => { const cursor = document.getElementById('cursor');"
        f"cursor.value = {1000 * second}; cursor.dispatchEvent(new Event('input')); }})()"
    )


@needs_chromium
def test_the_page_adds_up_each_flag_and_loses_who_left(tmp_path: Path) -> None:
    with viewed(SHIPPED / "zoo_keeper", tmp_path / "profile") as browser:
        count = browser.run("document.querySelectorAll('#rows [role=option]').length")
        sums: list[tuple[float, float, float]] = []
        for _ in range(count):
            browser.key("j")
            probability = float(inner(browser, "#details .facts").partition("probability ")[2].split(maxsplit=1)[0])
            total, threshold = cells(browser, "tfoot")
            sums.append((sum(cells(browser, "tbody")), total, math.log(probability / (1 - probability))))
            assert threshold <= total
        scrub(browser, 33)
        before = inner(browser, "#present")
        scrub(browser, 38)
        after = inner(browser, "#present")
    assert count == 5
    assert [added for added, _, _ in sums] == [pytest.approx(total, abs=0.02) for _, total, _ in sums]
    assert [total for _, total, _ in sums] == [pytest.approx(logit, abs=0.06) for _, _, logit in sums]
    assert before.startswith("1 person present")
    assert "person" not in after  # as in the picture: she went at 0:34


@needs_chromium
def test_a_decision_shows_request_asker_rules_and_none_of_the_above(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as bag:
        bag.write("/tactful/flags", ASKER, ASKER.stamp_ns)
        bag.write("/tactful/decisions", REPAIR, REPAIR.stamp_ns)
    with viewed(tmp_path / "bag", tmp_path / "profile") as browser:
        row = inner(browser, "#row-decision-late\\@6")
        browser.run("document.getElementById('row-decision-late@6').click()")
        details = inner(browser, "#details")
        browser.run("[...document.querySelectorAll('#details p button')].at(0).click()")
        asker = inner(browser, "#details .name")
    assert row.lower().count("decision") == 1
    assert "None of the above ✓ recommended" in details
    assert SITUATION in details
    assert "house rule of this situation: staff do so here" in details
    assert "hard rule: never touch a visitor" in details
    assert asker == "Response delay"
