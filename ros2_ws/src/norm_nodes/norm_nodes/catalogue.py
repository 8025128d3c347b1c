"""The nodes by name. Each is imported only where it is started: a player needs no speech recognizer."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from norm_nodes.norm_node import NormNode

# Each node lives in the module of the same name.
NODES = {
    "bag_player": "BagPlayer",
    "bag_recorder": "BagRecorder",
    "camera": "CameraNode",
    "ears": "EarsNode",
    "people": "PeopleNode",
    "monitor": "MonitorNode",
    "selector": "SelectorNode",
    # What stands in for a robot.
    "encounter_player": "EncounterPlayer",
    "microphone": "MicrophoneNode",
    "typed_robot": "TypedRobotNode",
    "webcam": "WebcamNode",
}


def node_class(name: str) -> Callable[[], NormNode[Any]]:
    """Import the class of a node in NODES."""
    node: Callable[[], NormNode[Any]] = getattr(import_module(f"norm_nodes.{name}"), NODES[name])
    return node
