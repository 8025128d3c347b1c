"""Time the report in headless Chromium: 3 h with 2,000 flags, 10 min with 200, and an empty page of equal size.

Run `python benchmarks/study/page.py`; it prints a Markdown table. The pages take turns, so that other load affects all
equally. Only ratios within one run are meaningful.
"""

import statistics
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from sim_replays.examples.study_session import write_log  # noqa: E402
from study_desk.log.recording import open_recording  # noqa: E402
from study_desk.report.report import page  # noqa: E402
from tests.study_desk.browser import Browser  # noqa: E402

ROUNDS = 9
SESSIONS = {"3 h, 2,000 flags": (3 * 3600, 2000), "10 min, 200 flags": (600, 200)}
EMPTY = "empty page of its weight"
READY_MS = "Number(document.documentElement.dataset.readyMs)"
# A page without a script reports ready after its first painted frame.
BARE = """<!doctype html><html lang="en"><title>empty</title><script>
const told = document.documentElement.dataset;
requestAnimationFrame(() => { told.readyMs = performance.now(); told.ready = "yes"; });</script>
<script type="application/json">%s</script></html>"""
# Time from the key press to the frame that shows its effect.
SELECT_MS = """new Promise((done) => { const begun = performance.now();
document.dispatchEvent(new KeyboardEvent("keydown", { key: "j" }));
requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun))); })"""


def pages(folder: Path) -> dict[str, Path]:
    """Return the pages to open, by content."""
    found: dict[str, Path] = {}
    for number, (name, (length_s, flags)) in enumerate(SESSIONS.items()):
        log = folder / f"log{number}"
        with patch("os.fsync"):  # the log's own speed does not matter here
            write_log(log, length_s=length_s, flags=flags)
        found[name] = folder / f"page{number}.html"
        found[name].write_text(page(open_recording(log)), encoding="utf-8")
    weight = next(iter(found.values())).stat().st_size
    found[EMPTY] = folder / "empty.html"
    found[EMPTY].write_text(BARE % ('"' + "x" * (weight - len(BARE)) + '"'), encoding="utf-8")
    return found


def main() -> None:
    """Print the medians and their ratios to the empty page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = pages(folder)
        ready: dict[str, list[float]] = {each: [] for each in found}
        selected: dict[str, list[float]] = {each: [] for each in SESSIONS}
        with Browser(folder / "profile") as browser:
            for _ in range(ROUNDS):
                for each, path in found.items():
                    browser.open(path.as_uri())
                    ready[each].append(browser.run(READY_MS))
                    if each in selected:
                        selected[each] += [browser.run(SELECT_MS) for _ in range(3)]
        empty = statistics.median(ready[EMPTY])
        print("| page | MB | ready, ms (least to most) | of the empty page | a flag selected, ms |")
        print("|---|---|---|---|---|")
        for each, path in found.items():
            middle, low, high = statistics.median(ready[each]), min(ready[each]), max(ready[each])
            keys = f"{statistics.median(selected[each]):.0f}" if each in selected else ""
            size = path.stat().st_size / 1e6
            print(f"| {each} | {size:.2f} | {middle:.0f} ({low:.0f} to {high:.0f}) | {middle / empty:.1f} | {keys} |")


if __name__ == "__main__":
    main()
