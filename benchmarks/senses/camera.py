"""Measure the camera node's cost and lost frames, beside a plain rclpy subscriber that decodes every frame.

Both subscribe to one publisher of images at 30 Hz at the same time, so the ratio holds on a busy machine. A third
subscriber takes the serialized messages and does nothing: the floor of any process that receives them.
`python -m benchmarks --only camera` runs it.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import rclpy
from norm_nodes.convert import from_ros, record_class
from norm_nodes.endpoint import EVENTS, SENSOR, STATUS_QOS
from norm_nodes.executors import fastest_executor
from norm_nodes.node_host import keep_freed_memory
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import CompressedImage, Image

from benchmarks.runner import ROOT, Figure, Report
from norm_core.records.frame import Frame
from norm_core.records.status import MonitorStatus
from norm_core.runtime.node_watch import read_usage
from sim_replays.drivers.node_process import NodeProcess, claimed_domain

RATE_HZ = 30
TOPIC = "/camera/image"
PATIENCE_S = 60.0
RUN_S = 5.0
SIZES = {"jpeg": (640, 480), "rgb8": (640, 480), "720p": (1280, 720)}  # by transport, the last as rgb8
SUBSCRIBERS = ("plain", "floor")


def picture(width_px: int, height_px: int) -> np.ndarray:
    """Load scikit-image's photograph, or make noise on a gradient without it."""
    package = find_spec("skimage")
    path = Path(package.origin).parent / "data/astronaut.png" if package and package.origin else None
    image = cv2.imread(str(path)) if path else None
    if image is None:
        slope = np.add.outer(np.arange(height_px), np.arange(width_px)) // 5
        image = np.repeat((slope % 256).astype(np.uint8)[:, :, None], 3, 2)
    return np.asarray(cv2.resize(image, (width_px, height_px)), np.uint8)


def message(transport: str) -> Any:
    """Build the image message of a transport: CompressedImage for jpeg, Image otherwise."""
    width_px, height_px = SIZES[transport]
    bgr = picture(width_px, height_px)
    if transport == "jpeg":
        data = cv2.imencode(".jpg", bgr, (cv2.IMWRITE_JPEG_QUALITY, 85))[1].tobytes()
        return CompressedImage(format="jpeg", data=data)
    data = np.ascontiguousarray(bgr[:, :, ::-1]).tobytes()
    return Image(encoding="rgb8", width=width_px, height=height_px, step=3 * width_px, data=data)


def publish(transport: str, seconds: float) -> None:
    """Publish to the camera and the other subscribers, and print the number of messages."""
    node = rclpy.create_node("benchmark_camera")
    publisher = node.create_publisher(type(message(transport)), TOPIC, SENSOR)
    image, deadline_s = message(transport), time.monotonic() + PATIENCE_S
    while publisher.get_subscription_count() <= len(SUBSCRIBERS):
        if time.monotonic() > deadline_s:
            sys.exit("the subscribers were not discovered")
        time.sleep(0.05)
    time.sleep(1.0)  # time for the subscribers to match
    print("started", flush=True)
    started_s = time.monotonic()
    for index in range(round(seconds * RATE_HZ)):
        time.sleep(max(0.0, started_s + index / RATE_HZ - time.monotonic()))
        image.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(image)
    print(json.dumps({"sent": round(seconds * RATE_HZ), "took_s": time.monotonic() - started_s}), flush=True)
    time.sleep(1.0)  # time for the last messages to leave


def receive(role_: str, transport: str) -> None:
    """Run a subscriber: plain decodes every frame, floor none. Prints the number of frames at the end."""
    node, received, is_plain = rclpy.create_node(f"benchmark_{role_}"), [0], role_ == "plain"
    if not is_plain:
        keep_freed_memory()

    def take(image: Any) -> None:
        received[0] += 1
        if not is_plain:
            return
        if transport == "jpeg":
            cv2.imdecode(np.frombuffer(image.data, np.uint8), cv2.IMREAD_COLOR)
        else:
            rows = np.frombuffer(image.data, np.uint8).reshape(image.height, image.width, 3)
            cv2.cvtColor(rows, cv2.COLOR_RGB2BGR)

    node.create_subscription(type(message(transport)), TOPIC, take, SENSOR, raw=not is_plain)
    executor, ended = (SingleThreadedExecutor if is_plain else fastest_executor)(), []
    executor.add_node(node)
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    while not ended:
        executor.spin_once(timeout_sec=0.2)
    print(json.dumps(received[0]), flush=True)


@contextmanager
def role(name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run this file in another process in a role, and end it after the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.senses.camera", "--role", name, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def busy_s(pid: int) -> float:
    """Return the time that a running process has computed, more finely than by ticks."""
    stats = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(stat.read_text(encoding="ascii").split()[0]) for stat in stats) / 1e9


def measure(transport: str, runs: int, faces: bool) -> dict[str, Any]:
    """Run the camera node beside the subscribers; return the percents of a core of each run of five seconds."""
    statuses: list[MonitorStatus] = []
    late_ms: list[float] = []
    parameters = {
        "camera": {"topic": TOPIC, "transport": "compressed" if transport == "jpeg" else "raw", "faces": faces}
    }
    with claimed_domain() as domain_id, ExitStack() as stack:
        os.environ["ROS_DOMAIN_ID"] = str(domain_id)
        rclpy.init(domain_id=domain_id)
        stack.callback(rclpy.try_shutdown)
        node, executor = rclpy.create_node("benchmark"), SingleThreadedExecutor()
        executor.add_node(node)

        def take_frame(frame: Any) -> None:
            stamp_ns = from_ros(Frame, frame).stamp_ns
            late_ms.append((node.get_clock().now().nanoseconds - stamp_ns) / 1e6)

        def take_status(status: Any) -> None:
            statuses.append(from_ros(MonitorStatus, status))

        node.create_subscription(record_class(MonitorStatus), "/tactful/status", take_status, STATUS_QOS)
        node.create_subscription(record_class(Frame), "/tactful/frames", take_frame, EVENTS)
        shared = ("--transport", transport, "--seconds", str(runs * RUN_S + 0.5))
        camera = stack.enter_context(NodeProcess(["camera"], parameters, domain_id))
        others = {name: stack.enter_context(role(name, *shared)) for name in SUBSCRIBERS}
        publisher = stack.enter_context(role("publish", *shared))
        assert publisher.stdout
        if publisher.stdout.readline().strip() != "started":
            raise RuntimeError("the publisher did not start")
        pids = {"camera": camera.pid} | {name: process.pid for name, process in others.items()}
        percents: dict[str, list[float]] = {name: [] for name in pids}
        before = read_usage(camera.pid)
        for _ in range(runs):
            before_s, began_s = {name: busy_s(pid) for name, pid in pids.items()}, time.monotonic()
            while time.monotonic() < began_s + RUN_S:
                executor.spin_once(timeout_sec=0.5)
            took_s = time.monotonic() - began_s
            for name, pid in pids.items():
                percents[name].append(100 * (busy_s(pid) - before_s[name]) / took_s)
        sent = json.loads(publisher.stdout.readline())["sent"]
        after, status_count = read_usage(camera.pid), len(statuses)
        while len(statuses) < status_count + 2:
            executor.spin_once(timeout_sec=0.5)
        lost = {}
        for name, process in others.items():
            process.terminate()
            assert process.stdout
            lost[f"{name}_lost"] = sent - json.loads(process.stdout.readline())
    counted = {counter.name: counter.count for counter in statuses[-1].counters}
    return {
        "percents": percents,
        "sent": sent,
        "camera_lost": sent - counted.get("images_received", 0),
        **lost,
        "frame_late_ms": round(statistics.median(late_ms), 1),
        "mb_at_start": before and before.memory_kb // 1024,
        "mb_at_end": after and after.memory_kb // 1024,
        "counted": counted,
    }


def run(report: Report, *, quick: bool) -> None:
    """Report loss, processor time and memory of the camera node per transport."""
    runs = 3 if quick else 6
    rows = [(f"camera_{transport}", transport, runs, False) for transport in SIZES]
    if not quick:
        rows += [("camera_faces", "jpeg", runs, True), ("camera_ten_minutes", "jpeg", 120, True)]
    for name, transport, count, faces in rows:
        row = measure(transport, count, faces)
        percents = row.pop("percents")
        for figure, mine, peer, against in (
            (name, "camera", "plain", "a plain rclpy subscriber that decodes every frame"),
            (f"{name}_floor", "floor", "plain", "the same, for a subscriber that does nothing"),
        ):
            # For a frame that was received: on a busy machine the plain subscriber loses most.
            share = (row["sent"] - row[f"{peer}_lost"]) / max(row["sent"] - row[f"{mine}_lost"], 1)
            ratios = [share * part / whole for part, whole in zip(percents[mine], percents[peer], strict=True)]
            report.add(Figure.of_runs(figure, "% of a core", percents[mine], against, ratios))
        report.note(**{name: row})


def play_role() -> None:
    """Publish, or subscribe plainly, in a process of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--role", choices=("publish", *SUBSCRIBERS), required=True)
    parser.add_argument("--transport")
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    rclpy.init()
    if options.role == "publish":
        publish(options.transport, options.seconds)
    else:
        receive(options.role, options.transport)
    rclpy.try_shutdown()


if __name__ == "__main__":
    play_role()
