"""`./tactful up --policy`: the least access of a profile's nodes, which is all that they use."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from xml.etree import ElementTree

import pytest

from tactful_cli.up import up
from tactful_cli.up.access import enclave_environment
from tests.acceptance.tactful_up import running_up
from tests.command_line import tactful, tactful_process
from tests.observer import Observer

PROFILE = """\
/tactful/camera: {ros__parameters: {topic: /eye}}
/tactful/ears: {ros__parameters: {words_from: topic, words_topic: /heard, words_type: std_msgs/msg/String}}
/tactful/monitor: {ros__parameters: {reader: none}}
/tactful/selector: {ros__parameters: {}}
"""
NODES = ("camera", "ears", "monitor", "selector")
# What the schema of sros2 (policy.xsd, 0.2.0) allows: the attributes and the elements of an element.
SCHEMA = {
    "policy": ({"version"}, {"enclaves"}),
    "enclaves": (set(), {"enclave"}),
    "enclave": ({"path"}, {"profiles"}),
    "profiles": (set(), {"profile"}),
    "profile": ({"ns", "node"}, {"topics", "services", "actions"}),
    "topics": ({"publish", "subscribe"}, {"topic"}),
    "services": ({"reply", "request"}, {"service"}),
    "actions": ({"call", "execute"}, {"action"}),
}


# Policies of a robot's own node, and of one that may do nothing with Tactful. Each process here is a node of its name.
OTHERS = """<policy version="0.2.0"><enclaves>
<enclave path="/robot"><profiles><profile ns="/" node="robot">
  <topics publish="ALLOW"><topic>/heard</topic><topic>/rosout</topic><topic>/parameter_events</topic></topics>
  <topics subscribe="ALLOW"><topic>/tactful/utterances</topic></topics>
  <services reply="ALLOW"><service>/robot/*</service></services>
</profile></profiles></enclave>
<enclave path="/guest"><profiles><profile ns="/" node="guest">
  <topics publish="ALLOW"><topic>/rosout</topic><topic>/parameter_events</topic></topics>
  <services reply="ALLOW"><service>/guest/*</service></services>
</profile></profiles></enclave>
</enclaves></policy>
"""
# Says its name again and again, until it is heard or the standard input ends; prints what it saw.
CLIENT = """
import json, select, sys
import rclpy
from norm_interfaces.msg import Utterance
from std_msgs.msg import String
name, heard, refused = sys.argv[1], [], []
rclpy.init()
node = rclpy.create_node(name)
try:
    words = node.create_publisher(String, "/heard", 10)
except RuntimeError:
    refused.append("publish")
try:
    node.create_subscription(Utterance, "/tactful/utterances", lambda said: heard.append(said.text), 50)
except RuntimeError:
    refused.append("subscribe")
print("ready", flush=True)
while not refused and name not in heard and not select.select([sys.stdin], [], [], 0)[0]:
    words.publish(String(data=name))
    rclpy.spin_once(node, timeout_sec=0.2)
print(json.dumps({"heard": sorted(set(heard) - {""}), "refused": refused, "nodes": sorted(node.get_node_names())}))
"""


# What a DDS says that is built without security: Fast DDS, and Cyclone DDS.
WITHOUT_SECURITY = ("-DSECURITY=ON", "does not have security support")


@contextmanager
def client(name: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Start a client in its enclave; it is ready, and killed at the end."""
    command = [sys.executable, "-c", CLIENT, name]
    environment = {**os.environ, "ROS_SECURITY_ENCLAVE_OVERRIDE": f"/{name}", **environment}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout
        output = ""
        while (line := process.stdout.readline()) != "ready\n":
            output += line
            if not line and any(text in output for text in WITHOUT_SECURITY):
                pytest.skip(f"DDS is built without security here: {output}")
            assert line, output
        yield process
    finally:
        process.kill()
        process.wait()


def seen_by(process: subprocess.Popen[str]) -> dict[str, list[str]]:
    """Read what a client saw, once it ends; the middleware may log beside."""
    assert process.stdout
    seen: dict[str, list[str]] = json.loads(next(line for line in process.stdout if line.startswith("{")))
    return seen


def allowed(policy: ElementTree.Element, node: str, rule: str) -> list[str]:
    (profile,) = policy.iterfind(f".//profile[@node='{node}']")
    names = [name.text or "" for group in profile if rule in group.attrib for name in group]
    return [name.replace("~", f"{profile.get('ns')}/{node}", 1) if name[0] == "~" else name for name in names]


def is_there(observer: Observer, node: str) -> bool:
    return node in observer.node.get_node_names()


def used(observer: Observer, node: str, namespace: str = "/tactful") -> Iterator[tuple[str, str]]:
    ask = observer.node
    for rule, names in {
        "publish": ask.get_publisher_names_and_types_by_node(node, namespace),
        "subscribe": ask.get_subscriber_names_and_types_by_node(node, namespace),
        "reply": ask.get_service_names_and_types_by_node(node, namespace),
        "request": ask.get_client_names_and_types_by_node(node, namespace),
    }.items():
        for name, _ in names:
            action, _, part = name.partition("/_action/")
            yield ("execute", action) if part else (rule, name)


@pytest.mark.ros
def test_the_nodes_use_what_the_policy_allows_and_it_allows_little_else(tmp_path: Path, observer: Observer) -> None:
    path = tmp_path / "robot.yaml"
    path.write_text(PROFILE, encoding="utf-8")
    done = tactful_process("up", str(path), "--policy")
    policy = ElementTree.fromstring(done.stdout)
    for element in policy.iter():
        attributes, children = SCHEMA.get(element.tag, (set(), set()))
        assert element.attrib.keys() <= attributes
        assert {child.tag for child in element} <= children
        assert set(element.attrib.values()) <= {"ALLOW"} or element.tag in {"policy", "enclave", "profile"}
    assert [node for node in NODES if "/tactful/flags" in allowed(policy, node, "publish")] == ["monitor"]
    assert [node for node in NODES if "/clock" in allowed(policy, node, "subscribe")] == list(NODES)
    assert [node for node in NODES if "/eye" in allowed(policy, node, "subscribe")] == ["camera"]
    with running_up(tmp_path / "log", str(path)) as up:
        up.wait_for("all nodes are active")
        for node in NODES:
            observer.until(partial(is_there, observer, node), f"the node {node}")
            uses = set(used(observer, node))
            surplus = {(rule, name) for rule, name in uses if name not in allowed(policy, node, rule)}
            assert surplus == set(), node
        (printer,) = observer.until(lambda: [n for n in observer.node.get_node_names() if "stream" in n], "its printer")
        uses = set(used(observer, printer, "/"))
        denied = {(r, name) for r, name in uses if not any(fnmatch(name, rule) for rule in allowed(policy, "tools", r))}
        assert denied == set()
        assert ("subscribe", "/parameter_events") in uses


@pytest.mark.ros
def test_under_an_enforced_policy_the_nodes_work_and_strangers_do_not(
    tmp_path: Path, domain_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts = pytest.importorskip("sros2.api._artifact_generation", reason="sros2 is not importable")
    profile, policy, others, keys = (tmp_path / name for name in ("robot.yaml", "policy.xml", "others.xml", "keys"))
    profile.write_text(PROFILE, encoding="utf-8")
    others.write_text(OTHERS, encoding="utf-8")
    printed = tactful_process("up", str(profile), "--policy")
    assert printed.returncode == 0, printed.stderr
    policy.write_text(printed.stdout, encoding="utf-8")
    artifacts.generate_artifacts(keys, [], [policy, others])
    monkeypatch.setenv("ROS_SECURITY_KEYSTORE", str(keys))
    monkeypatch.setenv("ROS_SECURITY_STRATEGY", "Enforce")
    with client("stranger", ROS_SECURITY_ENABLE="false") as stranger:
        monkeypatch.setenv("ROS_SECURITY_ENABLE", "true")
        with client("guest") as guest:
            assert seen_by(guest)["refused"] == ["publish", "subscribe"]
        with running_up(tmp_path / "log", str(profile)) as up:
            up.wait_for("all nodes are active")
            with client("robot") as robot:
                seen = seen_by(robot)
            assert (seen["heard"], seen["refused"]) == (["robot"], [])
            assert {*NODES, "robot"} <= set(seen["nodes"])
            checked = tactful_process("up", str(profile), "--check", "--json")
            assert "/heard" in {row["input"]["topic"] for row in json.loads(checked.stdout)}, checked.stderr
        assert stranger.stdin
        stranger.stdin.close()
        assert seen_by(stranger) == {"heard": [], "refused": [], "nodes": ["stranger"]}


@pytest.mark.ros
def test_a_denied_topic_is_not_counted() -> None:
    from norm_nodes.tools.topic_survey import TopicSurvey
    from rclpy.qos import QoSProfile

    def subscribe(_type: Any, topic: str, *_: Any, **__: Any) -> None:
        if topic == "/denied":
            raise RuntimeError  # as rclpy does

    node, end = Mock(), Mock(topic_type="std_msgs/msg/String", qos_profile=QoSProfile(depth=1))
    node.get_topic_names_and_types.return_value = [("/denied", [end.topic_type]), ("/heard", [end.topic_type])]
    node.get_publishers_info_by_topic.return_value = [end]
    node.create_subscription.side_effect = subscribe
    survey = TopicSurvey(node)
    assert survey.subscribe_to_new()
    assert [(topic["name"], topic["rate_hz"]) for topic in survey.describe_topics()] == [
        ("/denied", None),
        ("/heard", 0.0),
    ]


@pytest.mark.ros
def test_bonds_and_published_faces_and_voices_are_in_the_policy(tmp_path: Path) -> None:
    path = tmp_path / "robot.yaml"
    path.write_text(
        "/**: {ros__parameters: {publish_hri: true, bond: true}}\n"
        "/tactful/camera: {ros__parameters: {topic: /eye}}\n"
        "/tactful/ears: {ros__parameters: {audio_type: std_msgs/msg/UInt8MultiArray, humans: /people}}\n",
        encoding="utf-8",
    )
    policy = ElementTree.fromstring(tactful_process("up", str(path), "--policy").stdout)
    for node, topic in (("camera", "/humans/faces/*"), ("ears", "/people/voices/*")):
        assert {topic, "/tactful/bond"} <= set(allowed(policy, node, "publish"))
        assert "/tactful/bond" in allowed(policy, node, "subscribe")


def test_each_process_has_its_enclave_where_security_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROS_SECURITY_ENABLE", raising=False)
    assert enclave_environment("/tactful", "camera") == {}
    monkeypatch.setenv("ROS_SECURITY_ENABLE", "true")
    assert enclave_environment("/tactful", "camera") == {"ROS_SECURITY_ENCLAVE_OVERRIDE": "/tactful/camera"}
    monkeypatch.setenv("ROS_SECURITY_ENCLAVE_OVERRIDE", "/tactful/tools")  # of `up` itself
    assert enclave_environment("/tactful", "camera") == {"ROS_SECURITY_ENCLAVE_OVERRIDE": "/tactful/camera"}
    monkeypatch.setenv("ROS_SECURITY_ENCLAVE_OVERRIDE", "/mine")
    assert enclave_environment("/tactful", "camera") == {}


def test_what_looks_at_the_graph_before_the_nodes_run_has_an_enclave(monkeypatch: pytest.MonkeyPatch) -> None:
    enclaves = list[str]()
    monkeypatch.setattr(up, "run", lambda *_: enclaves.append(os.environ["ROS_SECURITY_ENCLAVE_OVERRIDE"]))
    done = tactful("up", "nao", "--namespace", "left", ROS_SECURITY_ENABLE="true")
    assert (done.returncode, enclaves) == (0, ["/left/tactful/tools"]), done.stderr
