"""`./tactful up --init` and `--check` against publishers that Tactful did not make."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from norm_core.runtime.errors import TactfulError
from tactful_cli.up.up import app
from tests.acceptance.tactful_up import run_up

pytestmark = pytest.mark.ros

EVERY_S = 0.1


@contextmanager
def foreign_robot(domain_id: int, *topics: tuple[Any, str, bool]) -> Iterator[None]:
    """A robot's drivers: a publisher of empty messages for each type, topic and reliability."""
    import rclpy
    from rclpy.qos import QoSProfile, ReliabilityPolicy

    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain_id)
    node = rclpy.create_node("driver", context=context)
    kinds = {True: ReliabilityPolicy.RELIABLE, False: ReliabilityPolicy.BEST_EFFORT}
    publishers = [
        (type_, node.create_publisher(type_, topic, QoSProfile(depth=5, reliability=kinds[reliable])))
        for type_, topic, reliable in topics
    ]
    halt = Event()

    def publish() -> None:
        while not halt.wait(EVERY_S):
            for type_, publisher in publishers:
                publisher.publish(type_())

    thread = Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        halt.set()
        thread.join()
        node.destroy_node()
        rclpy.shutdown(context=context)


@pytest.fixture
def sensors() -> list[tuple[Any, str, bool]]:
    from sensor_msgs.msg import CompressedImage
    from std_msgs.msg import String, UInt8MultiArray

    return [
        (CompressedImage, "/head/eye/compressed", False),
        (UInt8MultiArray, "/head/microphone", False),
        (String, "/head/say", True),
    ]


def profile(path: Path, **nodes: dict[str, Any]) -> str:
    tree = {f"/tactful/{node}": {"ros__parameters": parameters} for node, parameters in nodes.items()}
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return str(path)


def test_a_profile_that_init_writes_passes_the_check(tmp_path: Path, domain_id: int, sensors: Any) -> None:
    path = tmp_path / "robot.yaml"
    with foreign_robot(domain_id, *sensors):
        written = run_up(str(path), "--init", "--context", "home")
        checked = run_up(str(path), "--check")
    assert (written.returncode, checked.returncode) == (0, 0), written.stderr + checked.stdout
    assert "fusion.answer_within_s: 4" in path.read_text("utf-8")
    nodes = {name: section["ros__parameters"] for name, section in yaml.safe_load(path.read_text("utf-8")).items()}
    assert nodes["/tactful/camera"] == {"topic": "/head/eye/compressed", "transport": "compressed"}
    assert nodes["/tactful/ears"] == {
        "audio_topic": "/head/microphone",
        "audio_type": "std_msgs/msg/UInt8MultiArray",
        "robot_speech_topic": "/head/say",
        "robot_speech_type": "std_msgs/msg/String",
    }
    assert nodes["/tactful/monitor"]["judge"] == {"deployment_context": "home"}


def test_init_where_nothing_is_published_says_what_to_mend(tmp_path: Path, domain_id: int) -> None:
    written = run_up(str(tmp_path / "robot.yaml"), "--init")
    assert written.returncode == 1
    assert "fix what the table names" in written.stdout
    assert "deployment_context: is unspecified, so no model infers emotions" in written.stdout


def test_the_check_names_wrong_types_and_missing_topics(tmp_path: Path, domain_id: int, sensors: Any) -> None:
    path = profile(
        tmp_path / "robot.yaml",
        camera={"topic": "/head/ey/compressed"},
        ears={
            "audio_topic": "/head/say",
            "audio_type": "std_msgs/msg/UInt8MultiArray",
            "robot_speech_topic": "/head/eye/compressed",
        },
    )
    with foreign_robot(domain_id, *sensors):
        checked = run_up(path, "--check")
    assert checked.returncode == 1
    assert "carries nothing about the robot's speech" in checked.stdout
    assert "set topic of camera to /head/eye/compressed" in checked.stdout
    assert "but read as std_msgs/msg/UInt8MultiArray" in checked.stdout
    assert "set audio_topic of ears to /head/microphone" in checked.stdout
    assert "3 inputs of 3 cannot be read" in checked.stdout


def test_the_check_refuses_parameters_that_exclude_each_other(tmp_path: Path, domain_id: int) -> None:
    checked = run_up(profile(tmp_path / "robot.yaml", ears={"words_from": "topic", "publish_hri": True}), "--check")
    assert checked.returncode == 2
    assert "ears: publish_hri: it is for words_from: whisper alone; set it to false" in checked.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["mine.yaml", "--init"], "mine.yaml: exists already"),
        (["peper"], "did you mean pepper?"),
    ],
)
def test_a_wrong_call_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("# mine\n", encoding="utf-8")
    with pytest.raises(TactfulError, match=re.escape(complaint)):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert Path("mine.yaml").read_text("utf-8") == "# mine\n"
