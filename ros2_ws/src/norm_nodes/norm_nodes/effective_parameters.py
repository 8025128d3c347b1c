"""Print the parameters that nodes would have with a file of parameters, as JSON, and what is wrong with the file.

No node is started. The file is JSON: for each node, its parameters by their full names.
"""

import json
import sys
from pathlib import Path
from typing import Any

from norm_core.runtime.config import Config, ConfigError, check_config
from norm_nodes.catalogue import NODES, node_class
from norm_nodes.convert import TypeMissingError, message_class
from norm_nodes.parameters import OF_EVERY_NODE, nested


def main() -> int:
    """Print {"parameters": ..., "problems": ..., "missing_types": ...}."""
    given: dict[str, dict[str, Any]] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    parameters: dict[str, Any] = {}
    problems: list[str] = []
    for node, values in given.items():
        try:
            parameters[node] = effective(node, values)
        except ConfigError as error:
            problems += str(error).splitlines()
    types = {
        value
        for values in parameters.values()
        for name, value in values.items()
        if name.endswith("_type") and isinstance(value, str) and value
    }
    print(json.dumps({"parameters": parameters, "problems": problems, "missing_types": missing(types)}))
    return 0


def effective(node: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return all parameters of a node. Raises ConfigError for one that does not fit."""
    if node not in NODES:
        raise ConfigError(f"there is no node {node!r}; name one of {', '.join(NODES)}")
    ours = {key: value for key, value in values.items() if not key.startswith(OF_EVERY_NODE)}
    model: type[Config] = node_class(node).config_model  # type: ignore[attr-defined]
    return check_config(model, nested(ours), f"parameters of {node}").model_dump(mode="json")


def missing(types: set[str]) -> dict[str, str]:
    """Return why each type that cannot be used cannot be used."""
    found = {}
    for type_name in sorted(types):
        try:
            message_class(type_name)
        except (TypeMissingError, ValueError) as error:
            found[type_name] = str(error)
    return found


if __name__ == "__main__":
    sys.exit(main())
