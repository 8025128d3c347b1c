"""Play a bag as `ros2 bag play` does, with its options; for machines without it. It shares no code with Tactful.

Unlike `ros2 bag play`, it needs no --delay: it waits until each topic that it plays has a subscriber.
"""

import argparse
import importlib
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import rclpy
import yaml
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import Connection
from rosbags.rosbag2 import Reader
from rosgraph_msgs.msg import Clock

NS_PER_S = 1_000_000_000
DEFAULT = QoSProfile(depth=10)
CLOCK_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
SPIN_S = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(prog="play_bag", description=__doc__)
    parser.add_argument("bag", type=Path)
    parser.add_argument("--clock", type=float, default=40.0, help="how often a second /clock is published")
    parser.add_argument("--rate", type=float, default=1.0, help="how many times faster than recorded")
    parser.add_argument("--topics", nargs="+", required=True, help="topics to play")
    parser.add_argument("--qos-profile-overrides-path", type=Path, help="YAML of QoS by topic")
    options = parser.parse_args()
    overrides = yaml.safe_load(options.qos_profile_overrides_path.read_text("utf-8"))
    rclpy.init()
    node = rclpy.create_node("rosbag2_player")
    with Reader(options.bag) as bag:
        connections = [one for one in bag.connections if one.topic in options.topics]
        publishers = {one.id: publisher_of(node, one, overrides) for one in connections}
        clock = node.create_publisher(Clock, "/clock", CLOCK_QOS)
        while not all(one.get_subscription_count() for one in publishers.values()):
            rclpy.spin_once(node, timeout_sec=SPIN_S)
        play(bag, connections, publishers, clock, rate=options.rate, clock_hz=options.clock)
    for publisher in publishers.values():
        publisher.wait_for_all_acked()
    rclpy.shutdown()


def play(
    bag: Reader,
    connections: Collection[Connection],
    publishers: Mapping[int, Publisher],
    clock: Publisher,
    *,
    rate: float,
    clock_hz: float,
) -> None:
    """Publish every message in the order and at the times of its recording, and the time of the bag in between."""
    started_s, tick_s = time.monotonic(), 1 / clock_hz
    next_tick_s = started_s

    def tell_time_until(due_s: float) -> None:
        nonlocal next_tick_s
        while next_tick_s <= due_s:
            time.sleep(max(0.0, next_tick_s - time.monotonic()))
            now_s = min(time.monotonic(), due_s)
            message = Clock()
            bag_ns = bag.start_time + round((now_s - started_s) * rate * NS_PER_S)
            message.clock.sec, message.clock.nanosec = divmod(bag_ns, NS_PER_S)
            clock.publish(message)
            next_tick_s = max(next_tick_s, now_s) + tick_s
        time.sleep(max(0.0, due_s - time.monotonic()))

    for connection, recorded_ns, data in bag.messages(connections):
        tell_time_until(started_s + (recorded_ns - bag.start_time) / rate / NS_PER_S)
        publishers[connection.id].publish(bytes(data))


def publisher_of(node: Node, connection: Connection, overrides: Mapping[str, Mapping[str, Any]]) -> Publisher:
    """A publisher with the QoS given for the topic, else with the QoS recorded, else with the default of ROS."""
    package, _, name = connection.msgtype.split("/")
    recorded = getattr(connection.ext, "offered_qos_profiles", [])
    qos = DEFAULT
    if connection.topic in overrides:
        given = overrides[connection.topic]
        qos = QoSProfile(
            history=HistoryPolicy[given["history"].upper()],
            depth=given.get("depth", DEFAULT.depth),
            reliability=ReliabilityPolicy[given["reliability"].upper()],
        )
    elif recorded:
        qos = QoSProfile(
            depth=DEFAULT.depth,
            reliability=ReliabilityPolicy[recorded[0].reliability.name],
            durability=DurabilityPolicy[recorded[0].durability.name],
        )
    return node.create_publisher(getattr(importlib.import_module(f"{package}.msg"), name), connection.topic, qos)


if __name__ == "__main__":
    main()
