"""The sections of parameter files: which node each is for, and which match no node."""

import difflib
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from norm_core.runtime.config import load_yaml
from norm_nodes.base.parameters import flatten

# How alike a foreign name must be to be a typing error: files may hold sections and parameters of other packages.
MIN_FOREIGN_SIMILARITY = 0.8
# The same of a section in a namespace of Tactful's nodes.
_MIN_OWN_SIMILARITY = 0.6
# The key below which a section has its parameters.
_MARK = "ros__parameters"


def find_parameter_files(argv: Sequence[str]) -> list[Path]:
    """List the parameter files that ROS arguments name."""
    return [Path(value) for option, value in itertools.pairwise(argv) if option == "--params-file"]


def find_misplaced_sections(
    files: Sequence[Path], hosted: Collection[str], siblings: Collection[str]
) -> dict[str, list[str]]:
    """Return a complaint for each misplaced section, by the node that it probably means.

    `hosted` are the full names of nodes here, `siblings` those of all nodes that may run beside them.
    """
    sections = [(file, section) for file in files for section in _read_sections(load_yaml(file))]
    named = {node for node in hosted for _, section in sections if _is_match(section, node)}
    complaints: dict[str, list[str]] = {}
    for file, section in sections:
        if any(_is_match(section, node) for node in (*hosted, *siblings)):
            continue
        node = _find_nearest(section, [node for node in hosted if node not in named])
        if node is None:
            continue
        complaints.setdefault(node, []).append(
            f"{file}: the section {section} matches no node, so it has no effect; did you mean {node}? If it belongs "
            f"to another package, give {node} a section of its own"
        )
    return complaints


def find_robot_wide_parameters(files: Sequence[Path], hosted: Collection[str]) -> frozenset[str]:
    """List the parameters that a section with a wildcard sets and no section of a node hosted here."""
    wildcard_names: set[str] = set()
    own_names: set[str] = set()
    for file in files:
        for section, values in _read_sections(load_yaml(file)).items():
            if "*" in section:
                wildcard_names |= flatten(values).keys()
            elif section.rpartition("/")[2] in hosted:
                own_names |= flatten(values).keys()
    return frozenset(wildcard_names - own_names)


def _read_sections(tree: Any, above: str = "") -> dict[str, Any]:
    """Return the parameters of each section, which a file may also nest by namespace."""
    sections: dict[str, Any] = {}
    for key, value in tree.items() if isinstance(tree, Mapping) else ():
        name = f"{above}/{str(key).strip('/')}"
        if isinstance(value, Mapping) and _MARK in value:
            sections[name] = value[_MARK]
        else:
            sections |= _read_sections(value, name)
    return sections


def _is_match(section: str, node: str) -> bool:
    """Return whether ROS applies the section to the node: * stands for one name, and ** for any number."""
    pattern = re.escape(section).replace(r"/\*\*", "(/[^/]+)*").replace(r"\*", "[^/]+")
    return re.fullmatch(pattern, node) is not None


def _find_nearest(section: str, nodes: Sequence[str]) -> str | None:
    """Return the node whose name is most like that of the section; the namespace does not count."""
    namespace, _, name = section.rpartition("/")
    names = {node.rpartition("/")[2]: node for node in nodes}
    is_ours = any(node.rpartition("/")[0] == namespace for node in nodes)
    close = difflib.get_close_matches(name, names, 1, _MIN_OWN_SIMILARITY if is_ours else MIN_FOREIGN_SIMILARITY)
    return names[close[0]] if close else None
