"""Measure the live view: from a flag's publication to the page, what the server takes, and a long session's memory.

Run it on a ROS domain of its own; it prints a Markdown table:
eval "$(./tactful env)"; ROS_DOMAIN_ID=88 python benchmarks/study/view.py
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import rclpy  # noqa: E402
from norm_nodes.convert import record_class, to_ros  # noqa: E402

from norm_core.bags.writer import BagWriter  # noqa: E402
from norm_core.records.flag import FlagState, SocialFlag  # noqa: E402
from norm_core.records.frame import Frame  # noqa: E402
from norm_core.records.json_codec import to_plain  # noqa: E402
from norm_core.records.presence import Presence  # noqa: E402
from norm_core.records.speech import Utterance  # noqa: E402
from norm_core.runtime.process_usage import read_usage  # noqa: E402
from norm_core.runtime.time import NS_PER_MS, NS_PER_S  # noqa: E402
from sim_replays.examples.study_session import START_NS, records  # noqa: E402
from study_desk.view.stills import LiveStills  # noqa: E402
from study_desk.view.timeline import SessionTimeline  # noqa: E402
from tactful_cli.graph_stream import GraphLine  # noqa: E402
from tactful_cli.view.live_feed import LiveFeed  # noqa: E402
from tests.node_records import camera_frame  # noqa: E402
from tests.study_desk.browser import Browser  # noqa: E402

FLAGS, FLAG_EVERY_S, FRAME_BYTES = 60, 1.0, 20_000
HOURS, FLAGS_PER_HOUR = 12, 1_000
VIEW = (sys.executable, "-m", "tactful_cli", "view")
# The page notes when a flag of each name first stands in the document.
NOTE_ROWS = """window.rows = {}; new MutationObserver(() => {
for (const each of document.querySelectorAll(".raised")) window.rows[each.lastChild.textContent] ??= Date.now();
}).observe(document.getElementById("raised"), { childList: true, subtree: true })"""
FLAG = next(record for _, record in records() if isinstance(record, SocialFlag))


def live() -> list[tuple[str, str]]:
    """Publish flags, presence and frames to a page that is open, and time each flag."""
    rclpy.init()
    node = rclpy.create_node("bench_view")
    kinds = {"flags": SocialFlag, "presence": Presence, "frames": Frame}
    publishers = {name: node.create_publisher(record_class(of), f"/tactful/{name}", 50) for name, of in kinds.items()}
    presence = next(record for _, record in records() if isinstance(record, Presence))
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(VIEW, stdout=subprocess.PIPE, text=True) as view:
        assert view.stdout
        with Browser(Path(folder, "profile")) as browser:
            browser.open(view.stdout.readline().strip())
            while not all(each.get_subscription_count() for each in publishers.values()):
                time.sleep(0.1)
            browser.run(NOTE_ROWS)
            published: dict[str, int] = {}
            used = read_usage(view.pid)
            begun_s = time.monotonic()
            for number in range(FLAGS):
                for tenth in range(10):
                    now_ns = time.time_ns()
                    publishers["presence"].publish(to_ros(replace(presence, stamp_ns=now_ns)))
                    if tenth == 0:
                        publishers["frames"].publish(to_ros(frame(now_ns)))
                    if tenth == 5:
                        name = f"flag {number}"
                        published[name] = time.time_ns()
                        publishers["flags"].publish(to_ros(flag(name, published[name])))
                    time.sleep(FLAG_EVERY_S / 10)
            took_s = time.monotonic() - begun_s
            after = read_usage(view.pid)
            shown = browser.run("window.rows")
        view.terminate()
    rclpy.shutdown()
    assert used
    assert after
    delays = sorted(shown[name] - at_ns / NS_PER_MS for name, at_ns in published.items() if name in shown)
    share = (after.cpu_ms - used.cpu_ms) / 1000 / took_s
    return [
        ("flags published, and shown", f"{len(published)}, {len(delays)}"),
        ("from a flag's publication to the document: median", f"{statistics.median(delays):.0f} ms"),
        ("the same: 95th percentile, most", f"{delays[int(0.95 * len(delays))]:.0f} ms, {delays[-1]:.0f} ms"),
        ("the server's share of a core, one page open", f"{100 * share:.1f} %"),
        ("the server's memory", f"{after.memory_kb / 1024:.0f} MB"),
    ]


def flag(name: str, now_ns: int) -> SocialFlag:
    """Return a flag that is raised now."""
    changes: dict[str, Any] = {"event_id": name, "rationale": name, "state": FlagState.OPENED}
    return replace(FLAG, **changes, stamp_ns=now_ns, onset_ns=now_ns - NS_PER_S, offset_ns=now_ns, decision_ns=now_ns)


def frame(now_ns: int) -> Frame:
    """Return a frame of noise, which is the hardest to decode."""
    import cv2
    import numpy as np

    pixels = np.random.default_rng(now_ns).integers(0, 255, (252, 448, 3), np.uint8)
    tile = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 20])[1].tobytes()
    return camera_frame(now_ns, tile, 448, 252)


def memory() -> list[tuple[str, str]]:
    """Feed hours of a synthetic stream as fast as it is taken."""
    timeline = SessionTimeline("/tactful", START_NS, keep_s=3 * 3600)
    feed = LiveFeed("/tactful", timeline, LiveStills(None))
    hour = list(records(length_s=3600, flags=FLAGS_PER_HOUR))
    kinds = {SocialFlag: "flag", Utterance: "utterance", Presence: "presence"}
    picture = replace(frame(START_NS), tile_jpeg=bytes(FRAME_BYTES))
    used_mb = []
    for number in range(HOURS):
        shift_ns = number * 3600 * NS_PER_S
        for known_ns, record in hour:
            kind = kinds.get(type(record))
            if kind:
                plain = moved(to_plain(record), shift_ns, number)
                feed.take(GraphLine(kind=kind, topic="", arrival_ns=known_ns + shift_ns, record=plain))
        for second in range(3600):
            at_ns = START_NS + shift_ns + second * NS_PER_S
            plain = to_plain(replace(picture, stamp_ns=at_ns))
            feed.take(GraphLine(kind="frame", topic="", arrival_ns=at_ns, record=plain))
        usage = read_usage()
        assert usage
        used_mb.append(usage.memory_kb / 1024)
    kept = timeline.changes()
    return [
        ("hours fed, flags an hour", f"{HOURS}, {FLAGS_PER_HOUR}"),
        ("memory of the process by hour", ", ".join(f"{each:.0f}" for each in used_mb) + " MB"),
        ("flags kept at the end", str(len(kept["flags"]))),
        ("size of what a page that opens then receives", f"{len(json.dumps(kept)) / 1e6:.1f} MB"),
    ]


def moved(plain: Any, by_ns: int, number: int) -> Any:
    """Move every time of a record, and rename it."""
    if isinstance(plain, dict):
        return {
            key: value + by_ns
            if key.endswith("_ns") and isinstance(value, int)
            else f"{value}-{number}"
            if key in {"event_id", "utterance_id"}
            else moved(value, by_ns, number)
            for key, value in plain.items()
        }
    return [moved(each, by_ns, number) for each in plain] if isinstance(plain, list) else plain


def paint() -> list[tuple[str, str]]:
    """Open the view over a bag of an hour while the bag is read."""
    with tempfile.TemporaryDirectory() as folder:
        bag = Path(folder, "bag")
        with BagWriter(bag) as writer:
            names = {SocialFlag: "flags", Utterance: "utterances", Presence: "presence"}
            for known_ns, record in records(length_s=3600, flags=FLAGS_PER_HOUR):
                if type(record) in names:
                    writer.write(f"/tactful/{names[type(record)]}", record, known_ns)
        painted, whole = [], []
        with Browser(Path(folder, "profile")) as browser:
            for _ in range(5):
                with subprocess.Popen((*VIEW, str(bag)), stdout=subprocess.PIPE, text=True) as view:
                    assert view.stdout
                    url = view.stdout.readline().strip()
                    begun_s = time.monotonic()
                    browser.open(url)
                    painted.append(browser.run("Number(document.documentElement.dataset.readyMs)"))
                    browser.until("!document.getElementById('meta').innerText.includes('so far')")
                    whole.append(time.monotonic() - begun_s)
                    view.terminate()
        return [
            ("first paint over a bag of an hour with 1,000 flags: median, most of 5",
             f"{statistics.median(painted):.0f} ms, {max(painted):.0f} ms"),
            ("until the whole bag is on the page: median", f"{statistics.median(whole):.1f} s"),
        ]  # fmt: skip


def main() -> None:
    """Print the figures."""
    parts = sys.argv[1:] or ["live", "memory", "paint"]
    print("| figure | value |\n|---|---|")
    for part in (live, memory, paint):
        if part.__name__ in parts:
            for name, value in part():
                print(f"| {name} | {value} |", flush=True)


if __name__ == "__main__":
    main()
