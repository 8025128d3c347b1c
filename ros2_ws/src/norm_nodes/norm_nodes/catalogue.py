"""The nodes by name."""

from typing import Any

from norm_nodes.bag_player import BagPlayer
from norm_nodes.bag_recorder import BagRecorder
from norm_nodes.camera import CameraNode
from norm_nodes.ears import Ears
from norm_nodes.monitor import MonitorNode
from norm_nodes.norm_node import NormNode
from norm_nodes.people import PeopleNode
from norm_nodes.selector import SelectorNode
from norm_nodes.windows import WindowsNode

NODES: dict[str, type[NormNode[Any]]] = {
    "bag_player": BagPlayer,
    "bag_recorder": BagRecorder,
    "camera": CameraNode,
    "ears": Ears,
    "people": PeopleNode,
    "windows": WindowsNode,
    "monitor": MonitorNode,
    "selector": SelectorNode,
}
