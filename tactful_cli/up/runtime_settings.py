"""Parameters that were set while nodes ran, so that a node that starts again has them too."""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from tactful_cli.up.profile import Profile


class RuntimeSettings:
    """What was set of each node of a profile since it was started; the profile's file stays as it is."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._set: dict[str, dict[str, Any]] = {}

    def take(self, line: str) -> bool:
        """Take a line about changed parameters of a node; return whether it is one."""
        try:
            change = json.loads(line)
            node, settings = str(change["node"]), dict(change["settings"])
        except (ValueError, TypeError, KeyError):
            return False
        prefix, _, name = node.rpartition("/")
        if prefix == self._profile.node_namespace and name in self._profile.nodes:
            self._set.setdefault(name, {}).update(settings)
        return True

    def keeping(self, node: str) -> str:
        """Say what a node that starts again keeps; nothing if nothing was set."""
        return f"{node}: keeps {_listed(self._set[node])}; {self._remedy}" if self._set.get(node) else ""

    def drop(self, nodes: Iterable[str]) -> str:
        """Forget what was set of nodes that refuse to start so; say what is lost, or nothing."""
        lost = {node: settings for node in nodes if (settings := self._set.pop(node, None))}
        return "; ".join(f"{node}: cannot start with {_listed(names)}, and loses it" for node, names in lost.items())

    def write_parameters(self, nodes: Sequence[str], path: Path) -> None:
        """Write the parameters of some nodes as a file for ROS, what was set among them."""
        parameters = {**self._profile.parameters}
        for node in nodes:
            parameters[node] = merged(parameters[node], self._set.get(node, {}))
        replace(self._profile, parameters=parameters).write_parameters(nodes, path)

    @property
    def _remedy(self) -> str:
        return f"write it into {self._profile.source} to keep it after up ends"


def merged(parameters: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a file, nested or dotted, with others in place; an empty list leaves the default."""
    found = deepcopy(dict(parameters))
    for name, value in settings.items():
        _remove(found, name)
        if value != []:  # a file for ROS gives an empty list no type
            found[name] = value
    return found


def _remove(parameters: dict[str, Any], name: str) -> None:
    parameters.pop(name, None)
    part, _, rest = name.partition(".")
    if rest and isinstance(inner := parameters.get(part), dict):
        _remove(inner, rest)
        if not inner:
            del parameters[part]


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in settings.items())
