"""Declare a node's ROS parameters from its configuration model, and validate them against it.

A parameter in a part of the model has the part's name as a prefix, as in windows.length_s.
"""

import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from norm_core.records.record import record
from norm_core.records.status import NodeState
from norm_core.runtime.config import Config, ConfigError, UnusableFileError, check_config

C = TypeVar("C", bound=Config)

# rclpy declares these itself. Every other parameter must be in the model.
OF_EVERY_NODE = ("use_sim_time", "start_type_description_service", "qos_overrides.")
# The environment variable that names further folders of files that a running node may be set to use.
FILE_FOLDERS = "TACTFUL_FILE_FOLDERS"
OUTSIDE = (
    "it lies in no folder that this node may use; move it beside the files that the node was started with, set it in "
    f"the parameter file of the node, or start the node with {FILE_FOLDERS}"
)
# The steps before a parameter that is not live can change, by the state of the node.
_STEPS_BEFORE_CHANGE = {NodeState.INACTIVE: "clean up", NodeState.ACTIVE: "deactivate and clean up"}


@record
class ParameterSpec:
    """One parameter of a configuration model."""

    name: str
    default: Any
    schema: Mapping[str, Any]

    @property
    def description(self) -> str:
        """The description from the model, empty where it has none."""
        return str(self.schema.get("description", ""))

    @property
    def is_live(self) -> bool:
        """Return whether the parameter may change while the node runs."""
        return bool(self.schema.get("live"))

    @property
    def names_file(self) -> bool:
        """Return whether the parameter names a file or folder, which other machines must not choose freely."""
        return bool(self.schema.get("file"))

    def make_parameter(self, value: Any) -> Parameter:
        """Give a value the type of the parameter: a whole number may be a double, and an empty list has no type."""
        if value == [] and self.schema.get("type") == "array":
            return Parameter(self.name, Parameter.Type.STRING_ARRAY, value)
        is_double = self.schema.get("type") == "number" and type(value) is int
        return Parameter(self.name, value=float(value) if is_double else value)

    def make_descriptor(self) -> ParameterDescriptor:
        """Describe the parameter for ROS tools: its meaning, range and allowed values."""
        low = self._read_bound("minimum")
        high = self._read_bound("maximum")
        descriptor = ParameterDescriptor(
            name=self.name,
            description=self.description,
            additional_constraints=self._describe_constraints(),
        )
        if self.schema.get("type") == "number" and (low, high) != (None, None):
            bounds = {"from_value": -math.inf if low is None else low, "to_value": math.inf if high is None else high}
            descriptor.floating_point_range = [FloatingPointRange(**bounds)]
        elif self.schema.get("type") == "integer" and (low, high) != (None, None):
            first = -(2**63) if low is None else int(low)
            last = 2**63 - 1 if high is None else int(high)
            descriptor.integer_range = [IntegerRange(from_value=first, to_value=last)]
        return descriptor

    def _read_bound(self, name: str) -> float | None:
        """Return the bound `minimum` or `maximum`, inclusive or exclusive, if there is one."""
        bound = self.schema.get(name, self.schema.get(f"exclusive{name.capitalize()}"))
        return None if bound is None else float(bound)

    def _describe_constraints(self) -> str:
        values = self.schema.get("items", self.schema).get("enum", ())
        constraints = [f"one of {', '.join(map(str, values))}"] if values else []
        constraints += [f"above {self.schema['exclusiveMinimum']}"] if "exclusiveMinimum" in self.schema else []
        constraints += [] if self.is_live else ["changes only in state unconfigured"]
        return "; ".join(constraints)


@cache
def list_specs(model: type[Config]) -> Mapping[str, ParameterSpec]:
    """List the parameters of a model by name, those of its parts with a dot."""
    return {spec.name: spec for spec in _generate_specs(model)}


def declare(
    node: Node, model: type[Config], overrides: Mapping[str, Parameter], robot_wide: Collection[str] = ()
) -> None:
    """Declare every parameter of `model` with its override or default.

    Raises ConfigError for an override that the model lacks, unless it is meant for all nodes of a robot.
    """
    others = set(robot_wide) - list_specs(model).keys()
    values = {
        name: parameter.value
        for name, parameter in overrides.items()
        if not name.startswith(OF_EVERY_NODE) and name not in others
    }
    defaults = {name: spec.default for name, spec in list_specs(model).items()}
    # An empty YAML list has no type in ROS, and so no value.
    values |= {name: [] for name, value in values.items() if value is None and isinstance(defaults.get(name), list)}
    _check_values(node, model, defaults | values)  # before rclpy checks ranges, as its errors name no remedy
    for name, spec in list_specs(model).items():
        parameter = spec.make_parameter(values.get(name, spec.default))
        # By its type, because rclpy would take an empty list for bytes.
        node.declare_parameter(name, parameter.type_, spec.make_descriptor(), ignore_override=True)
        node.set_parameters([parameter])


def convert_types(model: type[Config], changes: list[Parameter]) -> list[Parameter]:
    """Give values their parameters' types; `ros2 param set NODE NAME 5` sends an integer for a double."""
    by_name = list_specs(model)
    return [
        by_name[change.name].make_parameter(change.value) if change.name in by_name else change for change in changes
    ]


def read(node: Node, model: type[C]) -> C:
    """Read the configuration from the current parameters. Raises ConfigError if it is invalid."""
    return _check_values(node, model, _read_values(node, model))


def find_file_folders(node: Node, model: type[Config]) -> tuple[Path, ...]:
    """List the folders that a node may be set to use: those of its files at the start, and further named ones."""
    named = filter(None, os.environ.get(FILE_FOLDERS, "").split(os.pathsep))
    values = (node.get_parameter(spec.name).value for spec in list_specs(model).values() if spec.names_file)
    started_with = [Path(value).expanduser().resolve().parent for value in values if _is_path(value)]
    return (*(Path(folder).expanduser().resolve() for folder in named), *started_with)


def review(
    node: Node,
    model: type[C],
    changes: list[Parameter],
    state: NodeState,
    *,
    check: Callable[[C], None] = lambda config: None,
    folders: Collection[Path] = (),
) -> SetParametersResult:
    """Check that changes are valid, by the model and by `check`, and allowed in the node's state.

    Anyone on the network may set a parameter and read the result, so it reveals nothing of a file.
    """
    changes = [change for change in changes if not change.name.startswith(OF_EVERY_NODE)]
    if not changes:
        return SetParametersResult(successful=True)  # rclpy checks its own parameters
    values = _read_values(node, model)
    for change in changes:
        spec = list_specs(model).get(change.name)
        if (
            state in _STEPS_BEFORE_CHANGE
            and spec is not None
            and not spec.is_live
            and change.value != values[change.name]
        ):
            reason = (
                f"{change.name}: it changes only in state unconfigured, and the node is {state}; "
                f"{_STEPS_BEFORE_CHANGE[state]} the node first, and configure it again afterwards"
            )
            return SetParametersResult(successful=False, reason=reason)
        if spec is not None and spec.names_file and change.value != values[change.name] and _is_path(change.value):
            path = Path(change.value).expanduser().resolve()
            if not any(path.is_relative_to(folder) for folder in folders):
                return SetParametersResult(successful=False, reason=f"{change.name}: {OUTSIDE}")
        values[change.name] = change.value
    try:
        check(_check_values(node, model, values))
    except UnusableFileError as error:
        node.get_logger().warning(str(error))
        files = [name for name, spec in list_specs(model).items() if spec.names_file and values[name]]
        names = " or ".join([change.name for change in changes if change.name in files] or files)
        reason = f"{names}: the file is not usable; the log of {node.get_name()} says why"
        return SetParametersResult(successful=False, reason=reason)
    except ConfigError as error:
        return SetParametersResult(successful=False, reason=str(error))
    return SetParametersResult(successful=True)


def _is_path(value: Any) -> bool:
    """Return whether a value is a path, not the bare name of an artefact of the site."""
    return isinstance(value, str) and ("/" in value or value.startswith("~") or (bool(value) and Path(value).exists()))


def nest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Move values with dotted names into nested dictionaries."""
    tree: dict[str, Any] = {}
    for name, value in values.items():
        *parts, key = name.split(".")
        branch = tree
        for part in parts:
            if not isinstance(branch.get(part), dict):
                branch[part] = {}  # if a value of that name is also set, validation reports it
            branch = branch[part]
        branch[key] = value
    return tree


def flatten(values: Any, prefix: str = "") -> dict[str, Any]:
    """Flatten nested values to names with dots; return {} for anything but a mapping."""
    names: dict[str, Any] = {}
    for key, value in values.items() if isinstance(values, Mapping) else ():
        names |= flatten(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return names


def _generate_specs(model: type[BaseModel], defaults: BaseModel | None = None) -> Iterator[ParameterSpec]:
    """Generate the parameters of a model and its parts; `defaults` replaces the defaults of the model."""
    whole = model.model_json_schema()
    schema = {name: _resolve_reference(part, whole.get("$defs", {})) for name, part in whole["properties"].items()}
    for name, field in model.model_fields.items():
        default = getattr(defaults, name) if defaults else field.get_default(call_default_factory=True)
        if isinstance(default, BaseModel):
            for inner in _generate_specs(type(default), default):
                yield ParameterSpec(name=f"{name}.{inner.name}", default=inner.default, schema=inner.schema)
        else:
            yield ParameterSpec(name=name, default=to_jsonable_python(default), schema=schema[name])


def _resolve_reference(schema: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Put the definition in place of a reference to an enumeration."""
    inner = {key: _resolve_reference(value, definitions) for key, value in schema.items() if key == "items"}
    resolved: dict[str, Any] = definitions.get(str(schema.get("$ref", "")).rpartition("/")[2], {}) | schema | inner
    return resolved


def _check_values(node: Node, model: type[C], values: Mapping[str, Any]) -> C:
    return check_config(model, nest(values), f"parameters of {node.get_name()}")


def _read_values(node: Node, model: type[Config]) -> dict[str, Any]:
    return {name: node.get_parameter(name).value for name in list_specs(model)}
