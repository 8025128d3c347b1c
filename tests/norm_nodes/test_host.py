"""The host process: how it starts, ends, fails and survives what is done to it."""

import os
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from norm_core.bags.reader import BagReader
from norm_core.bags.types import make
from norm_core.bags.writer import BagWriter
from norm_core.records.messages import to_message
from norm_core.records.status import MonitorStatus, NodeState
from norm_monitor.replay.node_process import NodeProcess
from tests.node_records import node_status
from tests.norm_core.bags.bag_files import cdr, write_rosbags
from tests.observer import Observer
from tests.patience import PATIENCE_S, ends_in_time

pytestmark = pytest.mark.ros


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_recorder_with_complete_bag(number: int, domain_id: int, tmp_path: Path) -> None:
    with recorder(tmp_path / "bag", domain_id) as process:
        os.kill(process.pid, number)
        assert process.wait(PATIENCE_S) == 0
    with BagReader(tmp_path / "bag") as bag:
        assert bag.message_count == 0


@pytest.mark.parametrize(
    ("arguments", "environment", "complaint"),
    [
        ("bag_player --ros-args -p speed:=2", {}, "bag_player: speed: unknown key"),
        ("bag_player --ros-args -p rate:=[fast]", {}, "rate: input should be a valid number"),
        ("bag_player --autostart --ros-args -p bag:=/none", {}, "/none: there is no such folder"),
        ("bag_player --ros-args --params-file corrupt.yaml", {}, "tactful: corrupt.yaml"),
        ("bag_player bag_player", {}, "would be called /tactful/bag_player; name each node once"),
        (
            "camera bag_player --ros-args -r __node:=x",
            {},
            "called /tactful/x; name each node once",
        ),
        ("camra", {}, "nodes: there is no node 'camra'; did you mean camera?"),
        ("bag_player", {"ROS_DOMAIN_ID": "233"}, "ROS_DOMAIN_ID is '233'"),
        ("bag_player", {"ROS_LOG_DIR": "/proc/nowhere"}, "set ROS_LOG_DIR"),
    ],
)
def test_host_reports_bad_input_without_traceback(  # noqa: PLR0917
    domain_id: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: str,
    environment: dict[str, str],
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corrupt.yaml").write_text("/tactful/bag_player: [")
    ended = host(*arguments.split(), **environment)
    assert ended.returncode == 2
    assert complaint in ended.stderr
    assert "Traceback" not in ended.stderr


def test_last_heartbeat_is_finalized(domain_id: int, observer: Observer, tmp_path: Path) -> None:
    statuses = observer.watch_status()
    with recorder(tmp_path / "bag", domain_id):
        observer.meet("bag_recorder")
    observer.until(lambda: statuses[-1].state is NodeState.FINALIZED, "the last heartbeat")


def test_younger_of_two_hosts_gives_way(domain_id: int, tmp_path: Path) -> None:
    with recorder(tmp_path / "first", domain_id) as elder:
        younger = host(*command("bag_recorder", bag=tmp_path / "second")[3:])
        assert younger.returncode == 4
        assert "/tactful/bag_recorder: another node of this name runs on this ROS domain" in younger.stderr
        assert elder.is_running()


def test_replayed_status_of_an_elder_ends_no_node(domain_id: int, observer: Observer, tmp_path: Path) -> None:
    from norm_nodes.base.convert import record_class, to_ros
    from norm_nodes.base.endpoint import STATUS_QOS

    with recorder(tmp_path / "first", domain_id) as process:
        statuses = observer.watch_status()
        player = observer.node.create_publisher(record_class(MonitorStatus), "/tactful/status", STATUS_QOS)
        observer.until(lambda: statuses and player.get_subscription_count() == 2, "the recorder's heartbeat")
        running = statuses[0].instance_id
        player.publish(to_ros(replace(statuses[0], instance_id="elder", started_ns=1)))
        observer.until(lambda: any(status.instance_id == "elder" for status in statuses), "the repeated status")
        statuses.clear()
        observer.until(lambda: len(statuses) > 2 or not process.is_running(), "the recorder's next heartbeats")
        assert {status.instance_id for status in statuses} == {running}
        assert observer.counted("duplicate_node_heartbeats") == 0


def test_the_health_of_a_recording_s_nodes_is_not_played(domain_id: int, observer: Observer, tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as bag:
        bag.write_message("/tactful/status", to_message(node_status(1), make), 1)
    statuses = observer.watch_status()
    played = host(*command("bag_player", bag=tmp_path / "bag")[3:])
    assert (played.returncode, "/tactful/status: not played" in played.stderr) == (0, True)
    observer.until(lambda: statuses[-1:] and statuses[-1].state is NodeState.FINALIZED, "the player's end")
    assert {status.node for status in statuses} == {"/tactful/bag_player"}


def test_a_player_ends_though_its_subscriber_hangs(domain_id: int, tmp_path: Path) -> None:
    with recorder(tmp_path / "recorded", domain_id) as hanging, player(words(tmp_path, 200), domain_id) as playing:
        os.kill(hanging.pid, signal.SIGSTOP)
        try:
            os.kill(playing.pid, signal.SIGTERM)
            assert playing.wait(PATIENCE_S) == 0
        finally:
            os.kill(hanging.pid, signal.SIGCONT)


def test_nothing_is_lost_however_fast_it_is_played(domain_id: int, tmp_path: Path) -> None:
    from norm_bench.stand_ins.bag_recorder import QUEUE_LENGTH

    # More than that waits for no disk.
    bag = words(tmp_path, QUEUE_LENGTH)
    parameters = {"bag_player": {"bag": str(bag), "rate": 1000.0}}
    with recorder(tmp_path / "recorded", domain_id), NodeProcess(["bag_player"], parameters, domain_id) as playing:
        assert playing.wait(PATIENCE_S) == 0
    with BagReader(tmp_path / "recorded") as recorded:
        assert [recorded.decode(m).data for m in recorded.messages()] == [str(n) for n in range(QUEUE_LENGTH)]


def test_a_second_subscriber_of_a_topic_misses_nothing(domain_id: int, observer: Observer, tmp_path: Path) -> None:
    from norm_bench.stand_ins.bag_player import PLAYED
    from std_msgs.msg import String

    player = {"bag": str(words(tmp_path, 20)), "rate": 1000.0, "wait_for_subscribers_s": 30.0}
    first = observer.collect(String, "/words", PLAYED)
    with NodeProcess(["bag_player"], {"bag_player": player}, domain_id) as playing:
        observer.until(lambda: observer.node.count_publishers("/words"), "the player")
        second = observer.collect(String, "/words", PLAYED)
        observer.until(lambda: not playing.is_running(), "the bag's end")
        observer.until(lambda: len(second) == len(first) == 20, "all of it, twice")


def test_a_latched_topic_reaches_whoever_comes_later(domain_id: int, observer: Observer, tmp_path: Path) -> None:
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from std_msgs.msg import String

    messages = [("/map", 1_000_000_000, cdr("ground floor")), ("/end", 3_600_000_000_000, cdr(""))]
    bag = write_rosbags(tmp_path / "bag", messages=messages, latched=("/map",))
    observer.watch_status()
    with NodeProcess(["bag_player"], {"bag_player": {"bag": str(bag), "wait_for_subscribers_s": 0.0}}, domain_id):
        observer.until(lambda: observer.counted("messages_played"), "the map")
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        late = observer.collect(String, "/map", latched)
        assert observer.until(lambda: late, "the map again")[0].data == "ground floor"


def test_a_bag_that_turns_out_damaged_is_an_error(domain_id: int, tmp_path: Path) -> None:
    bag = words(tmp_path, 5)
    storage = next(bag.glob("*.mcap"))
    data = bytearray(storage.read_bytes())
    data[data.rindex(b"\x05\x20\0\0\0\0\0\0\0")] = 0x7F  # the last message becomes a record of no known kind
    storage.write_bytes(data)
    damaged = host(*command("bag_player", bag=bag)[3:], "-p", "wait_for_subscribers_s:=0.0")
    assert damaged.returncode == 1
    assert "4 of 5 messages could be read" in damaged.stderr
    assert "Traceback" not in damaged.stderr


def test_a_full_disk_ends_the_recorder_with_an_error_not_a_traceback(domain_id: int, tmp_path: Path) -> None:
    # The middleware's shared memory is a file as well, and with room for replays larger than what is allowed here.
    roomless = {name: value for name, value in os.environ.items() if not name.endswith("DEFAULT_PROFILES_FILE")}
    limited = subprocess.Popen(
        ["bash", "-c", f"ulimit -f 4000; exec {shlex.join(command('bag_recorder', bag=tmp_path / 'recorded'))}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**roomless, "ROS_LOG_DIR": str(tmp_path / "log")},
    )
    try:
        assert limited.stdout
        assert limited.stdout.readline().startswith("running")
        with player(words(tmp_path, 20, size=500_000), domain_id) as playing:
            assert playing.wait(PATIENCE_S) == 0
        limited.send_signal(signal.SIGTERM)
        _, errors = limited.communicate(timeout=PATIENCE_S)
    finally:
        limited.kill()
    assert limited.returncode == 1
    assert "File too large" in errors
    assert "Traceback" not in errors


def test_nodes_end_with_their_starter(domain_id: int, tmp_path: Path) -> None:
    code = (
        "import time; from norm_monitor.replay.node_process import NodeProcess\n"
        f"with NodeProcess(['bag_recorder'], {{'bag_recorder': {{'bag': {str(tmp_path / 'bag')!r}}}}}) as node:\n"
        "    print(node.pid, flush=True); time.sleep(3600)\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert starter.stdout
    pid = int(starter.stdout.readline())
    starter.kill()
    starter.wait()
    assert ends_in_time(pid)


def test_node_of_an_ended_starter_ends(domain_id: int, tmp_path: Path) -> None:
    ended = host("--parent=1", *command("bag_recorder", bag=tmp_path / "bag")[3:])
    assert (ended.returncode, ended.stdout) == (0, "running /tactful/bag_recorder\n")


def words(tmp_path: Path, count: int, size: int = 0) -> Path:
    """A bag with the numbers up to count, padded to size, a millisecond apart."""
    path = tmp_path / "words"
    with BagWriter(path) as bag:
        for number in range(count):
            message = make("std_msgs/msg/String", {"data": str(number).ljust(size)})
            bag.write_message("/words", message, number * 1_000_000)
    return path


def recorder(bag: Path, domain_id: int) -> NodeProcess:
    return NodeProcess(["bag_recorder"], {"bag_recorder": {"bag": str(bag), "topics": ["/words"]}}, domain_id)


def player(bag: Path, domain_id: int) -> NodeProcess:
    return NodeProcess(["bag_player"], {"bag_player": {"bag": str(bag)}}, domain_id)


def command(node: str, bag: Path) -> list[str]:
    return [sys.executable, "-m", "norm_nodes.node_host", node, "--autostart", "--ros-args", "-p", f"bag:={bag}"]


def host(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "norm_nodes.node_host", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
