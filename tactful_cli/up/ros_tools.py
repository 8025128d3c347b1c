"""What only a process with ROS can say: the topics of the domain, and the parameters that nodes would have."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from tactful_cli.up.profile import Profile

TIMEOUT_S = 120.0


@record
class Topic:
    """A published topic; a rate of None means that its type is not installed on this machine."""

    name: str
    types: tuple[str, ...]
    publishers: tuple[str, ...] = ()
    reliable: bool = True
    rate_hz: float | None = None


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


def survey_topics() -> Survey:
    """Look at the ROS domain for some seconds."""
    found = _run("norm_nodes.topic_survey")
    topics = tuple(
        Topic(
            name=each["topic"],
            types=tuple(each["types"]),
            publishers=tuple(each["publishers"]),
            reliable=each["reliable"],
            rate_hz=each["rate_hz"],
        )
        for each in found["topics"]
    )
    return Survey(topics=topics, actions=found["actions"])


def node_names() -> tuple[str, ...]:
    """Return the full names of the nodes on the ROS domain."""
    return tuple(_run("norm_nodes.graph_listing")["nodes"])


def effective_parameters(profile: Profile) -> EffectiveParameters:
    """Return the parameters that the nodes of a profile would have."""
    with tempfile.TemporaryDirectory(prefix="tactful-up-") as folder:
        path = Path(folder, "parameters.json")
        path.write_text(json.dumps(profile.parameters), encoding="utf-8")
        found = _run("norm_nodes.effective_parameters", str(path))
    return EffectiveParameters(
        parameters=found["parameters"], problems=tuple(found["problems"]), missing_types=found["missing_types"]
    )


def _run(module: str, *arguments: str) -> Any:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise TactfulError(f"{module} failed: {why}; run {PROGRAM} doctor")
    return json.loads(done.stdout)
