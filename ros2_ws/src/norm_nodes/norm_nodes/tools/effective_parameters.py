"""Print the parameters that nodes would have with a file of parameters, as JSON, and what is wrong with the file.

No node is started. The file is JSON: for each node, its parameters by their full names.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from norm_core.runtime.config import ConfigError, check_config
from norm_nodes.base.convert import TypeMissingError, message_class
from norm_nodes.base.parameters import OF_EVERY_NODE, list_specs, nest
from norm_nodes.catalogue import NODES, describe_unknown, find_mistyped, import_config_model


def main() -> int:
    """Print {"parameters": ..., "problems": ..., "warnings": ..., "missing_types": ...}."""
    sections: dict[str, dict[str, Any]] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    robot_wide = sections.pop("/**", {})
    parameters: dict[str, Any] = {}
    problems: list[str] = []
    warnings = find_mistyped(robot_wide, [import_config_model(node) for node in sections if node in NODES])
    for node, values in sections.items():
        try:
            parameters[node] = compute_parameters(node, values, robot_wide)
        except ConfigError as error:
            problems += str(error).splitlines()
    types = {
        value
        for values in parameters.values()
        for name, value in values.items()
        if name.endswith("_type") and isinstance(value, str) and value
    }
    report = {
        "parameters": parameters,
        "problems": problems,
        "warnings": warnings,
        "missing_types": find_missing_types(types),
    }
    print(json.dumps(report))
    return 0


def compute_parameters(node: str, values: dict[str, Any], robot_wide: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a node, with the robot-wide ones that it has. Raises ConfigError for a bad one."""
    if node not in NODES:
        raise ConfigError(describe_unknown(node))
    model = import_config_model(node)
    shared = {name: value for name, value in robot_wide.items() if name in list_specs(model)}
    checked = {name: value for name, value in (shared | values).items() if not name.startswith(OF_EVERY_NODE)}
    return check_config(model, nest(checked), f"parameters of {node}").model_dump(mode="json")


def find_missing_types(types: set[str]) -> dict[str, str]:
    """Return the problem of each type that cannot be used."""
    missing_types = {}
    for type_name in sorted(types):
        try:
            message_class(type_name)
        except (TypeMissingError, ValueError) as error:
            missing_types[type_name] = str(error)
    return missing_types


if __name__ == "__main__":
    sys.exit(main())
