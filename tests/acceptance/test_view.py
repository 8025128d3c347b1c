"""`tactful view` over a shipped encounter, as a person opens it."""

import signal
import subprocess
import sys
from pathlib import Path

from norm_core.runtime.data_files import shipped_file
from tests.command_line import tactful
from tests.patience import PATIENCE_S
from tests.study_desk.browser import Browser, needs_chromium

BAG = shipped_file("sim_replays.scenarios", "shipped") / "kiosk_directions"


@needs_chromium
def test_the_page_tells_why_an_encounter_was_flagged(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tactful_cli", "view", str(BAG)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as view:
        assert view.stdout is not None
        try:
            with Browser(tmp_path / "profile") as browser:
                browser.open(view.stdout.readline().strip())
                browser.until("!document.getElementById('meta').innerText.includes('so far')")
                browser.key("j")
                browser.until("document.getElementById('still').naturalWidth > 0")
                details = browser.run("document.getElementById('details').innerText")
                line = (
                    "[...document.querySelectorAll('#lines button')].find((b) => b.textContent.includes('old bridge'))"
                )
                browser.run(f"{line}.click()")
                said = browser.run("document.getElementById('said').innerText")
                moment = browser.run("document.getElementById('at').innerText")
                when = browser.run(f"{line}.firstChild.textContent")
        finally:
            view.send_signal(signal.SIGINT)
            code = view.wait(PATIENCE_S)
    assert "Response delay" in details
    assert "threshold of 2 s" in details
    assert "old bridge" in details
    assert "flagged at" in details
    assert "old bridge" in said
    assert moment.startswith(when)
    assert code == 130


def test_a_folder_that_is_no_bag_is_refused(tmp_path: Path) -> None:
    result = tactful("view", tmp_path, "--json")
    assert result.returncode == 2
    assert str(tmp_path) in result.stderr
    assert result.stdout == ""
