"""A node's ROS parameters, declared from its configuration model and checked against it."""

from collections.abc import Mapping
from typing import Any

from pydantic.fields import FieldInfo
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.exceptions import ParameterUninitializedException
from rclpy.node import Node
from rclpy.parameter import Parameter

from norm_core.runtime.config import Config, ConfigError, check

# What rclpy itself declares; every other parameter must be in the model.
_OF_RCLPY = ("use_sim_time", "start_type_description_service", "qos_overrides.")


def is_live(field: FieldInfo) -> bool:
    """True where the parameter may be changed while the node runs."""
    extra = field.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("live"))


def declare(node: Node, model: type[Config], overrides: Mapping[str, Parameter]) -> None:
    """Declare every field of model at its override or default; an override that is no field is an error."""
    given = {name: parameter.value for name, parameter in overrides.items() if not name.startswith(_OF_RCLPY)}
    for name, field in model.model_fields.items():
        default = _plain(field.get_default(call_default_factory=True))
        value = given.pop(name, default)
        if value is None and isinstance(default, list):
            value = []  # ROS gives an empty list in YAML no type, and so no value
        descriptor = ParameterDescriptor(
            name=name, description=field.description or "", dynamic_typing=True, read_only=False
        )
        node.declare_parameter(name, value, descriptor, ignore_override=True)
    check(model, {**_values(node, model), **given}, f"parameters of {node.get_name()}")


def read(node: Node, model: type[Config]) -> Config:
    """The configuration that the parameters hold now, or a ConfigError."""
    return check(model, _values(node, model), f"parameters of {node.get_name()}")


def review(node: Node, model: type[Config], changes: list[Parameter], running: bool) -> SetParametersResult:
    """Whether changes are valid, and allowed in the node's present state."""
    values = _values(node, model)
    for change in changes:
        if change.name.startswith(_OF_RCLPY):
            continue
        field = model.model_fields.get(change.name)
        if running and field is not None and not is_live(field) and change.value != values[change.name]:
            reason = f"{change.name} is read when the node is configured: clean it up, set it, configure again"
            return SetParametersResult(successful=False, reason=reason)
        values[change.name] = change.value
    try:
        check(model, values, f"parameters of {node.get_name()}")
    except ConfigError as error:
        return SetParametersResult(successful=False, reason=str(error))
    return SetParametersResult(successful=True)


def _values(node: Node, model: type[Config]) -> dict[str, Any]:
    return {name: _value(node, name) for name in model.model_fields}


def _value(node: Node, name: str) -> Any:
    try:
        value = node.get_parameter(name).value
    except ParameterUninitializedException:
        return None
    return list(value) if hasattr(value, "typecode") else value


def _plain(default: Any) -> Any:
    return list(default) if isinstance(default, tuple) else default
