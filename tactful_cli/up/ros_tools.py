"""What only a process with ROS can say: the topics of the domain, and the parameters that nodes would have."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from norm_core.records.json_codec import from_json
from norm_core.records.record import record
from norm_core.records.speech import SpeechContent
from norm_core.records.status import MonitorStatus
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from tactful_cli.up.profile import ROBOT_WIDE, Profile

TIMEOUT_S = 120.0
HEARTBEATS_S = 4.0  # until every node that runs has sent a heartbeat


@record
class Topic:
    """A published topic; a rate or content of None means that its type is not installed on this machine."""

    name: str
    types: tuple[str, ...]
    publishers: tuple[str, ...] = ()  # as DDS lists them, with those that were killed of late
    several_send: bool = True
    reliable: bool = True
    rate_hz: float | None = None
    speech_content: SpeechContent | None = None
    sound_values: int = 0  # that came in `sound_s`: bytes, or samples of messages that are no bytes
    sound_s: float = 0.0


@record
class Survey:
    """The published topics of the domain, and the actions with their types."""

    topics: tuple[Topic, ...] = ()
    actions: Mapping[str, Sequence[str]]

    def topic(self, name: str) -> Topic | None:
        """Return a topic by its name."""
        return next((topic for topic in self.topics if topic.name == name), None)


@record
class EffectiveParameters:
    """All parameters of a profile's nodes with their defaults, and what is wrong with it."""

    parameters: Mapping[str, Mapping[str, Any]]
    problems: tuple[str, ...]
    missing_types: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def survey_topics() -> Survey:
    """Look at the ROS domain for some seconds."""
    return from_json(Survey, _run("norm_nodes.topic_survey"))


def node_names() -> tuple[str, ...]:
    """Return the full names of the nodes on the ROS domain."""
    return tuple(json.loads(_run("norm_nodes.topic_survey", "graph"))["nodes"])


def set_parameter(node: str, name: str, value: str) -> tuple[Any, Any]:
    """Set a parameter of a running node; return its values before and after. Raises TactfulError if it is refused."""
    answer = _remote_parameters(node, name, value)
    return answer["before"], answer["values"][name]


def get_parameters(node: str, name: str = "") -> dict[str, Any]:
    """Return a parameter of a running node, or all. Raises TactfulError if no such node answers."""
    return dict(_remote_parameters(node, name)["values"])


def _remote_parameters(*arguments: str) -> Any:
    answer = json.loads(_run("norm_nodes.remote_parameters", *arguments))
    if problem := answer.get("problem"):
        raise TactfulError(f"param: {problem}")
    return answer


def running_nodes(profile: Profile) -> tuple[str, ...]:
    """Return the nodes of a profile that run already, if one sends heartbeats; DDS lists killed ones for a while."""
    own = {f"{profile.node_namespace}/{node}": node for node in profile.nodes}
    beating = {status.node for status in heartbeats(profile)} & own.keys()
    running = beating | set(node_names() if beating else ())  # a busy machine may miss some in either
    return tuple(node for name, node in own.items() if name in running)


def heartbeats(profile: Profile) -> list[MonitorStatus]:
    """Return what the nodes of a profile state of themselves within some seconds; nothing if none runs."""
    own = {f"{profile.node_namespace}/{node}" for node in profile.nodes}
    if not own & set(node_names()):
        return []
    command = [sys.executable, "-m", "norm_nodes.status_lines", f"{profile.node_namespace}/status"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as watcher:
        try:
            lines = watcher.communicate(timeout=HEARTBEATS_S)[0]
        except subprocess.TimeoutExpired:
            watcher.terminate()
            lines = watcher.communicate()[0]
    return [from_json(MonitorStatus, line) for line in lines.splitlines()]


def effective_parameters(profile: Profile) -> EffectiveParameters:
    """Return the parameters that the nodes of a profile would have."""
    with tempfile.TemporaryDirectory(prefix="tactful-up-") as folder:
        path = Path(folder, "parameters.json")
        path.write_text(json.dumps({ROBOT_WIDE: profile.robot_wide, **profile.parameters}), encoding="utf-8")
        return from_json(EffectiveParameters, _run("norm_nodes.effective_parameters", str(path)))


def node_access(nodes: Sequence[str]) -> dict[str, dict[str, set[str]]]:
    """Return the topics, services and actions of nodes, by what each does with them."""
    told = json.loads(_run("norm_nodes.reference_pages", "access", *nodes))
    return {node: {rule: set(names) for rule, names in access.items()} for node, access in told.items()}


def _run(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise TactfulError(f"{module} failed: {why}; run {PROGRAM} doctor")
    return done.stdout
