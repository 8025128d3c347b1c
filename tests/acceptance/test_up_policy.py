"""`./tactful up --policy`: the least access of a profile's nodes, which is all that they use."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
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


def allowed(policy: ElementTree.Element, node: str, rule: str) -> list[str]:
    (profile,) = policy.iterfind(f".//profile[@node='{node}']")
    names = [name.text or "" for group in profile if rule in group.attrib for name in group]
    return [name.replace("~", f"{profile.get('ns')}/{node}", 1) if name[0] == "~" else name for name in names]


def is_there(observer: Observer, node: str) -> bool:
    return node in observer.node.get_node_names()


def used(observer: Observer, node: str) -> Iterator[tuple[str, str]]:
    ask = observer.node
    for rule, names in {
        "publish": ask.get_publisher_names_and_types_by_node(node, "/tactful"),
        "subscribe": ask.get_subscriber_names_and_types_by_node(node, "/tactful"),
        "reply": ask.get_service_names_and_types_by_node(node, "/tactful"),
        "request": ask.get_client_names_and_types_by_node(node, "/tactful"),
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
