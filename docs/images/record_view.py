"""Record the page of a bag as an animated WebP: python docs/images/record_view.py BAG OUT.webp FROM_S TO_S.

At TO_S an error must stand. The first picture shows it, and the last ones its explanation.
"""

import contextlib
import signal
import subprocess
import sys
import tempfile
from base64 import b64decode
from pathlib import Path

import av
import cv2
import numpy as np

from tests.norm_monitor.view.browser import Browser

FLAGGED_WITHIN_S = 1800.0  # the monitor runs on a bag without flags
STEP_S = 0.5  # between two pictures
SPEED = 2
HOLD_S = {"first": 1.5, "last": 5.0}  # how long these pictures stay
WIDTH, HEIGHT = 1100, 720
SCRUB = "cursor.value = {}; cursor.dispatchEvent(new Event('input'))"
# A click goes to the flag's onset; the page then returns to the moment.
EXPLAIN = (
    f"document.querySelector('#raised .error').click(); {SCRUB};"
    "document.querySelector('.details-card').scrollIntoView({{block: 'end'}})"
)
# The page shows the camera's picture of the new moment, or that there is none.
BEFORE = "var cursor = document.getElementById('cursor'), still = document.getElementById('still'), old = still.src"
IS_SHOWN = (
    "still.hidden || still.src !== old && still.complete && still.alt.endsWith(cursor.getAttribute('aria-valuetext'))"
)


def main(bag: str, out: str, from_s: str, to_s: str) -> None:
    """Step through the page, and write what it shows."""
    command = [sys.executable, "-m", "tactful_cli", "view", bag]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as view,
        contextlib.ExitStack() as at_end,
        Browser(Path(folder, "profile"), width=WIDTH, height=HEIGHT) as browser,
        av.open(out, "w", format="webp", options={"loop": "0"}) as film,
    ):
        at_end.callback(view.send_signal, signal.SIGINT)
        stream = film.add_stream("libwebp_anim", rate=1000, options={"quality": "80"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        assert view.stdout is not None
        browser.open(view.stdout.readline().strip())
        browser.until("!document.getElementById('meta').innerText.includes('so far')", FLAGGED_WITHIN_S)
        shown_s = 0.0

        def add(script: str, for_s: float = STEP_S / SPEED) -> None:
            nonlocal shown_s
            browser.run(f"{BEFORE}; {script}")
            browser.until(IS_SHOWN)
            png = np.frombuffer(b64decode(browser.send("Page.captureScreenshot")["data"]), np.uint8)
            frame = av.VideoFrame.from_ndarray(
                np.asarray(cv2.imdecode(png, cv2.IMREAD_COLOR), np.uint8), format="bgr24"
            )
            for moment_s in (shown_s, shown_s + for_s - STEP_S / SPEED):
                frame.pts = round(moment_s * 1000)
                film.mux(stream.encode(frame))
            shown_s += for_s

        add(SCRUB.format(float(to_s) * 1000), HOLD_S["first"])
        for step in range(round((float(to_s) - float(from_s)) / STEP_S) + 1):
            add(SCRUB.format((float(from_s) + step * STEP_S) * 1000))
        add(EXPLAIN.format(float(to_s) * 1000), HOLD_S["last"])
        film.mux(stream.encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
