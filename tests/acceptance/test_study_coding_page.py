"""Two coders code a session of a study in the page, blind, and agree on a consensus, through the commands alone."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from norm_core.runtime.time import NS_PER_S
from tests.acceptance.coded_study import read_labels, study
from tests.command_line import tactful
from tests.norm_monitor.view.browser import Browser, faults, needs_chromium, text
from tests.patience import PATIENCE_S
from tests.study_session import START_NS, write_bag, write_log

pytestmark = needs_chromium

OWN_CODE = "codes:\n  - {id: joke, name: joke, polarity: competence, attribute: engagement, key: j}\n"


@contextmanager
def serve_page(log: Path, *arguments: str | Path) -> Iterator[dict[str, str]]:
    """Run `study code`, and yield the link of each person."""
    command = [sys.executable, "-m", "tactful_cli", "study", "code", str(log), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            people = sum(argument == "--coder" for argument in arguments)
            yield dict(process.stdout.readline().split() for _ in range(people))
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def study_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with one session of a minute, its bag, and a code of its own."""
    folder = tmp_path_factory.mktemp("study") / "library-2026"
    study("init", folder, "--condition", "apology", "--coder", "C-1", "--coder", "C-2")
    study("participant", folder, "P-7K3MX", "--coders")
    (folder / "study.yaml").write_text((folder / "study.yaml").read_text().replace("codes: []\n", OWN_CODE))
    (folder / "bags").mkdir()
    write_log(folder.parent / "S1", session="S1", length_s=60, flags=3, bag=write_bag(folder / "bags/S1"))
    study("add", folder, folder.parent / "S1")
    plan = (folder / "study.yaml").read_text()
    (folder / "study.yaml").write_text(plan.replace("condition: apology", "condition: apology, bag: bags/S1", 1))
    return folder


def seek(browser: Browser, second: int) -> None:
    browser.run(
        f"(box => {{ box.value = {second * 1000}; box.dispatchEvent(new Event('input')); }})"
        "(document.getElementById('cursor'))"
    )


def mark(browser: Browser, key: str, start_s: int, end_s: int | None = None) -> None:
    """Mark an event with the keys, and wait until the page says that it is in the log."""
    before = browser.run("document.querySelectorAll('#rows [role=option]').length")
    seek(browser, start_s)
    if end_s is not None:
        browser.key("i")
        seek(browser, end_s)
        browser.key("o")
    browser.key(key)
    browser.until(f"document.querySelectorAll('#rows [role=option]').length === {before + 1}")


def finish_coding(browser: Browser) -> None:
    browser.run("document.getElementById('finish-open').click()")
    browser.run("document.getElementById('finish-yes').click()")
    browser.until("document.documentElement?.dataset.ready === 'yes' && !document.getElementById('compare').hidden")


def test_two_coders_code_a_session_and_settle_a_consensus(study_folder: Path, tmp_path: Path) -> None:
    log = study_folder / "sessions" / "S1"
    flags = read_labels(log, "monitor")
    with serve_page(log, "--coder", "C-1", "--coder", "C-2") as links, Browser(tmp_path / "profile") as browser:
        browser.open(links["C-1"])
        browser.until("document.getElementById('still').naturalWidth > 0")
        data = browser.run("document.getElementById('data').textContent")
        assert [flag.event_id for flag in flags if flag.event_id in data or flag.code in data] == []
        browser.key(" ", code=32)
        browser.until("document.getElementById('sound').currentTime > 0")
        browser.key(" ", code=32)
        mark(browser, "1", 10, 12)
        mark(browser, "j", 20)
        mark(browser, "2", 40, 41)
        assert list_owing_coders(study_folder) == ["C-1", "C-2"]  # a coding under way is none
        finish_coding(browser)
        assert "Not done yet: C-2." in text(browser, "#compare-text")
        browser.open(links["C-2"])
        assert "C-1" not in browser.run("document.getElementById('data').textContent")
        mark(browser, "1", 10, 13)
        mark(browser, "w", 20)
        finish_coding(browser)
        assert list_owing_coders(study_folder) == []
        browser.run("document.getElementById('adopt').click()")
        browser.until("document.getElementById('compare-count')?.innerText.startsWith('1 of 3')")
        for settled in (2, 3):
            browser.run("document.querySelector('#compared td:last-child button').click()")
            browser.until(f"document.getElementById('compare-count').innerText.startsWith('{settled} of 3')")
        assert faults(browser) == []
    assert [(label.start_ns - START_NS) / NS_PER_S for label in read_labels(log, "C-1")] == [10, 20, 40]
    assert [(label.polarity, label.attribute) for label in read_labels(log, "consensus")] == [
        ("error", "emotions"),
        ("competence", "engagement"),
        ("error", "engagement"),
    ]
    agreement = json.loads(study("agreement", study_folder, "--json", "--resamples", "5"))
    assert sorted(agreement["coders"]) == ["C-1", "C-2", "monitor"]
    (f1,) = [
        row["estimate"]["value"]
        for row in agreement["rows"]
        if (row["measure"], row["tolerance_s"], row["attribute"]) == ("event F1", 1.0, "all")
        and row["coders"] == ["C-1", "C-2"]
    ]
    assert f1 == pytest.approx(2 * 2 / (3 + 2))  # two of three and of two match
    checked = json.loads(study("status", log, "--json"))
    assert (checked["sound"], checked["sealed"]) == (True, True)


def list_owing_coders(folder: Path) -> list[str]:
    status = tactful("study", "status", folder, "--json")
    sessions: list[dict[str, Any]] = json.loads(status.stdout)["sessions"]
    return list(sessions[0]["owed_by"])


def test_code_refuses_strangers(study_folder: Path) -> None:
    other = study_folder.parent / "S2"
    write_log(other, session="S2", length_s=60, flags=1)
    study("add", study_folder, other)
    log = study_folder / "sessions" / "S2"
    assert "unknown coder C-9" in study("code", log, "--coder", "C-9", code=2)
    for name in ("monitor", "consensus", " "):
        assert "give a pseudonym" in study("code", log, "--coder", name, code=2)
    assert "given twice" in study("code", log, "--coder", "C-1", "--coder", "C-1", code=2)
