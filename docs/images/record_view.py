"""Record the page of a bag as an animated WebP: python docs/images/record_view.py BAG OUT.webp FROM_S TO_S."""

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

STEP_S = 0.5  # between two pictures
SPEED = 2
HOLD_S = 3  # for which the last picture stays
WIDTH, HEIGHT = 1100, 720
SCRUB = (
    "(async () => {{ const c = document.getElementById('cursor'); c.value = {};"
    "c.dispatchEvent(new Event('input')); await new Promise((r) => setTimeout(r, 300)); }})()"
)


def main(bag: str, out: str, from_s: str, to_s: str) -> None:
    """Step through the page, and write what it shows."""
    command = [sys.executable, "-m", "tactful_cli", "view", bag]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as view,
        Browser(Path(folder, "profile"), width=WIDTH, height=HEIGHT) as browser,
        av.open(out, "w", format="webp", options={"loop": "0"}) as film,
    ):
        stream = film.add_stream("libwebp_anim", rate=1000, options={"quality": "80"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        picture = np.empty(0, np.uint8)
        steps = round((float(to_s) - float(from_s)) / STEP_S)
        times_s = [float(from_s) + step * STEP_S for step in range(steps)]
        assert view.stdout is not None
        browser.open(view.stdout.readline().strip())
        browser.until("!document.getElementById('meta').innerText.includes('so far')")
        for index, time_s in enumerate([*times_s, *[times_s[-1]] * round(HOLD_S * SPEED / STEP_S)]):
            if index < len(times_s):
                browser.run(SCRUB.format(time_s * 1000))
                png = np.frombuffer(b64decode(browser.send("Page.captureScreenshot")["data"]), np.uint8)
                picture = np.asarray(cv2.imdecode(png, cv2.IMREAD_COLOR), np.uint8)
            frame = av.VideoFrame.from_ndarray(picture, format="bgr24")
            frame.pts = round(index * STEP_S * 1000 / SPEED)
            film.mux(stream.encode(frame))
        film.mux(stream.encode())
        view.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main(*sys.argv[1:])
