"""Photograph the page of a bag as a WebP: python docs/images/record_view.py BAG OUT.webp AT_S [HEIGHT].

At AT_S an error must stand. The picture shows that moment and the explanation of the error.
"""

import contextlib
import signal
import subprocess
import sys
import tempfile
from base64 import b64decode
from pathlib import Path

from tests.norm_monitor.view.browser import Browser

FLAGGED_WITHIN_S = 1800.0  # the monitor runs on a bag without flags
WIDTH = 1100
SCRUB = "var cursor = document.getElementById('cursor'), still = document.getElementById('still'); cursor.value = {}"
SHOW = "cursor.dispatchEvent(new Event('input'))"
# A click on the flag chooses it and goes to its onset, so the moment is set again.
TOP = "scrollTo(0, document.querySelector('.moment-card').offsetTop - 12)"
EXPLAIN = f"document.querySelector('#raised .error').click(); {TOP}"
IS_SHOWN = "still.complete && still.naturalWidth && still.alt.endsWith(cursor.getAttribute('aria-valuetext'))"


def main(bag: str, out: str, at_s: str, height: str = "1420") -> None:
    """Open the page, choose the error and write what the page shows."""
    command = [sys.executable, "-m", "tactful_cli", "view", bag]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as view,
        contextlib.ExitStack() as at_end,
        Browser(Path(folder, "profile"), width=WIDTH, height=int(height)) as browser,
    ):
        at_end.callback(view.send_signal, signal.SIGINT)
        assert view.stdout is not None
        browser.open(view.stdout.readline().strip())
        browser.until("!document.getElementById('meta').innerText.includes('so far')", FLAGGED_WITHIN_S)
        moment = f"{SCRUB.format(float(at_s) * 1000)}; {SHOW}"
        browser.run(f"{moment}; {EXPLAIN}; cursor.value = {float(at_s) * 1000}; {SHOW}")
        browser.until(IS_SHOWN)
        picture = browser.send("Page.captureScreenshot", format="webp", quality=80)["data"]
        Path(out).write_bytes(b64decode(picture))


if __name__ == "__main__":
    main(*sys.argv[1:])
