"""The nodes by name. Each is imported only when it is started: a player needs no speech recognizer."""

import difflib
from collections.abc import Callable, Collection
from contextlib import suppress
from importlib import import_module
from typing import Any

from norm_core.runtime.config import Config
from norm_nodes.base.norm_node import NormNode
from norm_nodes.base.parameter_sections import MIN_FOREIGN_SIMILARITY
from norm_nodes.base.parameters import OF_EVERY_NODE, list_specs

# The module and the class of each.
NODES = {
    "camera": "norm_nodes.camera_node.CameraNode",
    "ears": "norm_nodes.ears_node.EarsNode",
    "monitor": "norm_nodes.monitor_node.MonitorNode",
    "people": "norm_nodes.people_node.PeopleNode",
    "selector": "norm_nodes.selector_node.SelectorNode",
}
_OF_ROBOT = len(NODES)
with suppress(ModuleNotFoundError):  # a robot does without them
    NODES |= import_module("norm_bench.stand_ins").NODES


def import_node_class(name: str) -> Callable[[], NormNode[Any]]:
    """Import the class of a node in NODES."""
    module, _, class_name = NODES[name].rpartition(".")
    node: Callable[[], NormNode[Any]] = getattr(import_module(module), class_name)
    return node


def import_config_model(name: str) -> type[Config]:
    """Import the configuration model of a node in NODES."""
    model: type[Config] = import_node_class(name).config_model  # type: ignore[attr-defined]
    return model


def describe_unknown(name: str) -> str:
    """Describe a name that is not in NODES, with the remedy."""
    close = difflib.get_close_matches(name, NODES, 1)
    remedy = f"did you mean {close[0]}?" if close else f"name one of {', '.join(NODES)}"
    absent = "" if len(NODES) > _OF_ROBOT else "; players, microphone and webcam come with the ROS package norm_bench"
    return f"there is no node {name!r}; {remedy}{absent}"


def find_mistyped(names: Collection[str], models: Collection[type[Config]]) -> list[str]:
    """Report robot-wide parameters that no node has and that resemble one of these models."""
    own = {parameter for model in models for parameter in list_specs(model)}
    unknown = [name for name in names if name not in own and not name.startswith(OF_EVERY_NODE)]
    close = {
        name: match for name in unknown for match in difflib.get_close_matches(name, own, 1, MIN_FOREIGN_SIMILARITY)
    }
    # Only for a suspect, because importing all nodes takes memory.
    others = {parameter for node in NODES for parameter in list_specs(import_config_model(node))} if close else set()
    return [
        f"/**: {name}: no node has this parameter; did you mean {match}?"
        for name, match in close.items()
        if name not in others
    ]
