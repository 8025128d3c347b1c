"""Measure `./tactful watch`: delay of a flag, processor time beside a session, and memory over many hours of messages.

A publisher of this script plays a busy session, first in real time and then as fast as the stream takes it. One watch
prints JSON to a pipe, another draws on a terminal of 160 columns. Run it in the environment:
eval "$(./tactful env)"; python benchmarks/nodes/watch.py --hours 10
"""

import argparse
import fcntl
import json
import os
import pty
import signal
import statistics
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from typing import Any

import rclpy
from norm_interfaces.msg import Evidence, MonitorStatus, Presence, RobotSpeech, SocialFlag, Utterance
from rclpy.qos import QoSProfile

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from sim_replays.drivers.ros_domain import claimed_domain  # noqa: E402

NODES = ("camera", "ears", "people", "monitor", "selector")
FLAG_EVERY_S, TURN_EVERY_S = 4, 3
WATCH = [sys.executable, "-m", "tactful_cli", "watch"]
PATIENCE_S = 60.0


class Session:
    """Publish what the nodes of a robot publish in a busy session, one second at a time."""

    def __init__(self) -> None:
        rclpy.init()
        self.node = rclpy.create_node("session")
        topics = {
            "status": MonitorStatus, "flags": SocialFlag, "utterances": Utterance, "robot_speech": RobotSpeech,
            "presence": Presence,
        }  # fmt: skip
        self._publishers = {
            topic: self.node.create_publisher(type_, f"/tactful/{topic}", QoSProfile(depth=1000))
            for topic, type_ in topics.items()
        }
        self.published_s: dict[str, float] = {}

    def wait_for(self, readers: int) -> None:
        """Wait until each topic has its readers."""
        until_s = time.monotonic() + PATIENCE_S
        while any(each.get_subscription_count() < readers for each in self._publishers.values()):
            assert time.monotonic() < until_s, "the watches did not subscribe"
            time.sleep(0.1)

    def publish(self, second: int) -> None:
        """Publish what one second holds."""
        for name in NODES:
            self._send("status", MonitorStatus(node=f"/tactful/{name}", state=2, instance_id=name, notes=["note"] * 3))
        self._send("presence", Presence(state=second // 60 % 2))
        if second % TURN_EVERY_S == 0:
            words = {"text": f"This is turn {second} of a long conversation.", "end_ns": second * 10**9 + 1}
            times = {"utterance_id": f"u{second}", "start_ns": second * 10**9}
            self._send("utterances", Utterance(**words, **times, speaker=2, final=True))
            self._send("robot_speech", RobotSpeech(speech_id=f"s{second}", state=0, text=f"Answer {second}."))
        if second % FLAG_EVERY_S == 0:
            for number, state in ((second, 0), (second - 30 // FLAG_EVERY_S * FLAG_EVERY_S, 2)):
                self._flag(f"{number}", state)

    def _flag(self, event_id: str, state: int) -> None:
        evidence = [Evidence(measure="silence", value=4.0, threshold=2.0, weight=0.5, unit="s", end_ns=1)] * 5
        about = {"event_id": event_id, "state": state, "attributes": [1], "severity": 1, "probability": 0.6}
        words = {"rationale": f"The robot left event {event_id} without an answer.", "correction": "Answer."}
        self.published_s[f"{event_id} {state}"] = time.monotonic()
        self._send("flags", SocialFlag(**about, **words, offset_ns=-1, decision_ns=10**9, evidence=evidence))

    def _send(self, topic: str, message: Any) -> None:
        message.header.stamp = self.node.get_clock().now().to_msg()
        self._publishers[topic].publish(message)


class JsonReader:
    """Note when each flag is read from the JSON of a watch."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process, self._changed = process, Condition()
        self.read_s: dict[str, float] = {}
        self.lost = 0
        Thread(target=self._read, daemon=True).start()

    def wait_for(self, flag: str) -> None:
        """Wait until a flag was read."""
        with self._changed:
            assert self._changed.wait_for(lambda: flag in self.read_s, PATIENCE_S), f"flag {flag} did not come"

    def _read(self) -> None:
        assert self._process.stdout
        for text in self._process.stdout:
            now_s, line = time.monotonic(), json.loads(text)
            with self._changed:
                self.lost += line["record"]["count"] if line["kind"] == "lost" else 0
                if line["kind"] == "flag":
                    states = {"opened": 0, "closed": 2}
                    self.read_s[f"{line['record']['event_id']} {states[line['record']['state']]}"] = now_s
                    self._changed.notify_all()


def open_terminal() -> "subprocess.Popen[bytes]":
    """Start a watch that draws on a terminal, which is read and thrown away."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    process = subprocess.Popen(WATCH, stdin=slave, stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"})
    os.close(slave)

    def discard() -> None:
        with suppress(OSError):  # as the end of a terminal is read
            while os.read(master, 65536):
                pass

    Thread(target=discard, daemon=True).start()
    return process


def processes(pid: int) -> list[int]:
    """Return a watch and its process that has ROS."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return [pid, *map(int, children)]


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1000


def measure(hours: float, real_s: int) -> None:
    """Print delays and processor time in real time, and then memory while hours go by."""
    session = Session()
    with (
        subprocess.Popen([*WATCH, "--json"], stdout=subprocess.PIPE, text=True) as printing,
        open_terminal() as drawing,
    ):
        reader = JsonReader(printing)
        session.wait_for(readers=2)
        pids = {name: processes(each.pid) for name, each in (("--json", printing), ("terminal", drawing))}
        session.publish(-FLAG_EVERY_S)  # the first message may find its reader still starting
        reader.wait_for(list(session.published_s)[-1])
        session.published_s.clear()
        before_s = {name: sum(map(cpu_s, each)) for name, each in pids.items()}
        began_s = time.monotonic()
        for second in range(real_s):
            time.sleep(max(0.0, began_s + second - time.monotonic()))
            session.publish(second)
        reader.wait_for(list(session.published_s)[-1])
        lasted_s = time.monotonic() - began_s
        delays_ms = sorted((reader.read_s[flag] - session.published_s[flag]) * 1000 for flag in session.published_s)
        print(f"in {lasted_s:.0f} s, with a load of {os.getloadavg()[0]:.1f}, {len(delays_ms)} flags")
        median_ms = statistics.median(delays_ms)
        print(f"a flag in --json after {median_ms:.1f} ms in the median, at most {delays_ms[-1]:.1f} ms")
        for name, each in pids.items():
            print(f"{name}: {(sum(map(cpu_s, each)) - before_s[name]) / lasted_s:.1%} of a core")
        for second in range(real_s, round(hours * 3600) + 1):
            session.publish(second)
            if second % 200 == 0:
                reader.wait_for(f"{second} 0")
            if second == real_s or second % 3600 == 0:
                used = {name: " + ".join(f"{memory_mb(pid):.1f}" for pid in each) for name, each in pids.items()}
                print(f"after {second / 3600:.1f} h: {used} MB, {reader.lost} messages lost", flush=True)
        printing.send_signal(signal.SIGINT)
        drawing.send_signal(signal.SIGINT)


def main() -> None:
    """Measure on a domain of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--hours", type=float, default=1.0, help="of a session, in the messages for the memory")
    parser.add_argument("--real-s", type=int, default=60, help="seconds in real time")
    options = parser.parse_args()
    with claimed_domain() as domain_id:
        os.environ["ROS_DOMAIN_ID"] = str(domain_id)
        measure(options.hours, options.real_s)
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
