"""Time the coding page in headless Chromium: to the first picture, and after a seek, for 3 h and for 10 min.

Run `python benchmarks/study/coding.py`; it prints a Markdown table. The sessions take turns, so that other load affects
both equally. Only ratios within one run are meaningful. Each has a picture a second, whose faces are searched and
blurred when it is asked for.
"""

import random
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from norm_core.runtime.time import ReplayClock  # noqa: E402
from sim_replays.examples.session_bag import write_session_bag  # noqa: E402
from sim_replays.examples.study_session import START_NS, write_log  # noqa: E402
from study_desk.report.coding_server import PlayerMedia  # noqa: E402
from study_desk.report.review_server import ReviewServer  # noqa: E402
from study_desk.study.study_file import StudyFile  # noqa: E402
from study_desk.view.stills import BagStills  # noqa: E402
from tactful_cli.study.pages import face_finder  # noqa: E402
from tests.study_desk.browser import Browser  # noqa: E402

ROUNDS, SEEKS = 7, 6
LENGTHS_S = {"3 h": 3 * 3600, "10 min": 600}
# Time from the navigation, and from a seek, to the picture.
ON_PICTURE = """document.addEventListener("load", (event) => {
  if (event.target.id !== "still") return;
  window.pictureMs ??= performance.now();
  window.shown?.();
}, true);"""
SEEK_MS = """new Promise((done) => { const begun = performance.now(), cursor = document.getElementById("cursor");
window.shown = () => done(performance.now() - begun);
cursor.value = %d; cursor.dispatchEvent(new Event("input")); })"""


@contextmanager
def served(folder: Path, length_s: int) -> Iterator[str]:
    """Serve a session with a coder, and yield the link."""
    with patch("os.fsync"):  # the speed of writing does not matter here
        bag = write_session_bag(folder / "bag", length_s=length_s, flags=length_s // 6, has_sound=False)
        write_log(folder / "log", length_s=length_s, flags=length_s // 6, bag=bag)
    media = PlayerMedia(still_at=BagStills(folder / "bag", face_finder()).at)
    codes = StudyFile(study="benchmark").codebook
    server = ReviewServer(folder / "log", {}, ReplayClock(START_NS), coders={"t": "C-1"}, codebook=codes, media=media)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server.url("t")
    finally:
        server.close()
        thread.join()


def main() -> None:
    """Print the medians, and their ratio between the sessions."""
    chance = random.Random(0)
    first: dict[str, list[float]] = {name: [] for name in LENGTHS_S}
    sought: dict[str, list[float]] = {name: [] for name in LENGTHS_S}
    with tempfile.TemporaryDirectory() as name:
        long, short = (Path(name, f"session{number}") for number in range(2))
        for folder in (long, short):
            folder.mkdir()
        with (
            served(long, LENGTHS_S["3 h"]) as long_url,
            served(short, LENGTHS_S["10 min"]) as short_url,
            Browser(Path(name, "profile")) as browser,
        ):
            browser.send("Page.addScriptToEvaluateOnNewDocument", source=ON_PICTURE)
            for _ in range(ROUNDS):
                for each, url in zip(LENGTHS_S, (long_url, short_url), strict=True):
                    browser.open(url)
                    first[each].append(browser.until("window.pictureMs"))
                    for _ in range(SEEKS):
                        at_ms = chance.randrange(1, LENGTHS_S[each]) * 1000
                        sought[each].append(browser.run(SEEK_MS % at_ms))
    print("| session | first picture, ms (least to most) | picture after a seek, ms (median, most) |")
    print("|---|---|---|")
    for each in LENGTHS_S:
        spread = f"{statistics.median(first[each]):.0f} ({min(first[each]):.0f} to {max(first[each]):.0f})"
        print(f"| {each} | {spread} | {statistics.median(sought[each]):.0f}, {max(sought[each]):.0f} |")
    ratios = [statistics.median(of["3 h"]) / statistics.median(of["10 min"]) for of in (first, sought)]
    print(f"| 3 h to 10 min | {ratios[0]:.2f} | {ratios[1]:.2f} |")


if __name__ == "__main__":
    main()
