"""Measure the camera node's cost and lost frames, beside a plain rclpy subscriber that decodes every frame.

Both subscribe to one publisher of 640x480 images at 30 Hz at the same time, so the ratio holds on a busy machine.
`./tactful benchmark --only camera` runs it.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import rclpy
from norm_nodes.convert import from_ros, record_class
from norm_nodes.endpoint import SENSOR, STATUS_QOS
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import CompressedImage, Image

from benchmarks.runner import ROOT, Figure, Report
from norm_core.records.status import MonitorStatus
from norm_core.runtime.node_watch import ProcessUsage, read_usage
from sim_replays.drivers.node_process import NodeProcess, claimed_domain

WIDTH_PX, HEIGHT_PX, RATE_HZ = 640, 480, 30
TOPIC = "/camera/image"
PATIENCE_S = 60.0


def picture() -> np.ndarray:
    """Load scikit-image's photograph, or make noise on a gradient without it."""
    package = find_spec("skimage")
    path = Path(package.origin).parent / "data/astronaut.png" if package and package.origin else None
    image = cv2.imread(str(path)) if path else None
    if image is None:
        slope = np.add.outer(np.arange(HEIGHT_PX), np.arange(WIDTH_PX)) // 5
        image = np.repeat((slope % 256).astype(np.uint8)[:, :, None], 3, 2)
    return np.asarray(cv2.resize(image, (WIDTH_PX, HEIGHT_PX)), np.uint8)


def jpeg() -> bytes:
    """Encode the test picture as JPEG of quality 85."""
    return bytes(cv2.imencode(".jpg", picture(), (cv2.IMWRITE_JPEG_QUALITY, 85))[1])


def message(transport: str) -> Any:
    """Build the image message of a transport: CompressedImage for jpeg, Image otherwise."""
    if transport == "jpeg":
        return CompressedImage(format="jpeg", data=jpeg())
    rgb = np.ascontiguousarray(picture()[:, :, ::-1])
    return Image(encoding="rgb8", width=WIDTH_PX, height=HEIGHT_PX, step=3 * WIDTH_PX, data=rgb.tobytes())


def publish(transport: str, seconds: float) -> None:
    """Publish to two subscribers, and print the number of messages."""
    node = rclpy.create_node("benchmark_camera")
    publisher = node.create_publisher(type(message(transport)), TOPIC, SENSOR)
    image, deadline_s = message(transport), time.monotonic() + PATIENCE_S
    while publisher.get_subscription_count() < 2:
        if time.monotonic() > deadline_s:
            sys.exit("the two subscribers were not discovered")
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


def decode_all(transport: str) -> None:
    """Run the plain subscriber. Prints its number of decoded frames at the end."""
    node, decoded = rclpy.create_node("benchmark_plain"), [0]

    def take(image: Any) -> None:
        if transport == "jpeg":
            cv2.imdecode(np.frombuffer(image.data, np.uint8), cv2.IMREAD_COLOR)
        else:
            cv2.cvtColor(np.frombuffer(image.data, np.uint8).reshape(HEIGHT_PX, WIDTH_PX, 3), cv2.COLOR_RGB2BGR)
        decoded[0] += 1

    node.create_subscription(type(message(transport)), TOPIC, take, SENSOR)
    executor, ended = SingleThreadedExecutor(), []
    executor.add_node(node)
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    while not ended:
        executor.spin_once(timeout_sec=0.2)
    print(json.dumps({"decoded": decoded[0]}), flush=True)


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


def usage_of(pid: int) -> ProcessUsage:
    """Return what a running process takes."""
    usage = read_usage(pid)
    assert usage
    return usage


def measure(transport: str, seconds: float, faces: bool) -> dict[str, Any]:
    """Run the camera node beside the plain subscriber for `seconds` seconds."""
    statuses: list[MonitorStatus] = []
    ros_transport = "compressed" if transport == "jpeg" else "raw"
    parameters = {"camera": {"topic": TOPIC, "transport": ros_transport, "faces": faces}}
    with claimed_domain() as domain_id:
        os.environ["ROS_DOMAIN_ID"] = str(domain_id)
        rclpy.init(domain_id=domain_id)
        node = rclpy.create_node("benchmark")
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        node.create_subscription(
            record_class(MonitorStatus),
            "/tactful/status",
            lambda status: statuses.append(from_ros(MonitorStatus, status)),
            STATUS_QOS,
        )
        shared = ("--transport", transport, "--seconds", str(seconds))
        with NodeProcess(["camera"], parameters, domain_id) as camera, role("plain", *shared) as plain:
            with role("publish", *shared) as publisher:
                assert publisher.stdout
                assert plain.stdout
                if publisher.stdout.readline().strip() != "started":
                    raise RuntimeError("the publisher did not start")
                pids = {"camera": camera.pid, "plain": plain.pid}
                before, began_s = {name: usage_of(pid) for name, pid in pids.items()}, time.monotonic()
                while publisher.poll() is None:
                    executor.spin_once(timeout_sec=0.5)
                took_s = time.monotonic() - began_s
                used = {name: (usage_of(pid).cpu_ms - before[name].cpu_ms) / 10 / took_s for name, pid in pids.items()}
                sent = json.loads(publisher.stdout.readline())["sent"]
            memory_kb, told = usage_of(camera.pid).memory_kb, len(statuses)
            while len(statuses) < told + 2:
                executor.spin_once(timeout_sec=0.5)
            plain.terminate()
            decoded = json.loads(plain.stdout.readline())["decoded"]
        rclpy.try_shutdown()
    counted = {counter.name: counter.count for counter in statuses[-1].counters}
    return {
        "transport": transport,
        "faces": faces,
        "seconds": seconds,
        "camera_percent": round(used["camera"], 2),
        "plain_percent": round(used["plain"], 2),
        "ratio": round(used["camera"] / used["plain"], 3),
        "sent": sent,
        "camera_lost": sent - counted.get("images_received", 0),
        "plain_lost": sent - decoded,
        "mb_at_start": round(before["camera"].memory_kb / 1024),
        "mb_at_end": round(memory_kb / 1024),
        "counted": counted,
    }


def run(report: Report, *, quick: bool) -> None:
    """Report loss, processor time and memory of the camera node per transport."""
    seconds = 10.0 if quick else 30.0
    rows = [("camera_jpeg", "jpeg", seconds, False), ("camera_rgb8", "rgb8", seconds, False)]
    if not quick:
        rows += [("camera_faces", "jpeg", seconds, True), ("camera_ten_minutes", "jpeg", 600.0, True)]
    for name, transport, length_s, faces in rows:
        row = measure(transport, length_s, faces)
        against = "a plain rclpy subscriber that decodes every frame"
        report.add(Figure(name, row["camera_percent"], "% of a core", against, row["ratio"]))
        report.note(**{name: row})


def play_role() -> None:
    """Publish, or subscribe plainly, in a process of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--role", choices=("publish", "plain"), required=True)
    parser.add_argument("--transport")
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    rclpy.init()
    if options.role == "publish":
        publish(options.transport, options.seconds)
    else:
        decode_all(options.transport)
    rclpy.try_shutdown()


if __name__ == "__main__":
    play_role()
