"""Convert records to rclpy messages and back."""

import difflib
import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from norm_core.records.messages import from_message, message_type, to_message

T = TypeVar("T")


class TypeMissingError(ImportError):
    """A message type is not installed."""


@cache
def message_class(type_name: str) -> Any:
    """Import the class of a message type, such as std_msgs/msg/Header.

    Raises TypeMissingError if its package is not installed or lacks the type, ValueError if the name has another form.
    """
    try:
        package, kind, name = type_name.split("/")
    except ValueError as error:
        raise ValueError(f"{type_name!r} is not a message type; write it as package/msg/Name") from error
    try:
        module = import_module(f"{package}.{kind}")
    except ImportError as error:
        apt = f"ros-{os.environ.get('ROS_DISTRO', 'jazzy')}-{package.replace('_', '-')}"
        raise TypeMissingError(f"{type_name} is not installed; install {package} (as {apt})") from error
    try:
        if kind == "action":  # its topics have types that the package does not export
            action, _, part = name.rpartition("_")
            parts = getattr(module, action)
            return parts.Impl.FeedbackMessage if part == "FeedbackMessage" else getattr(parts, part)
        return getattr(module, name)
    except AttributeError as error:
        names = [type_ for type_ in vars(module) if not type_.startswith("_")]
        similar = difflib.get_close_matches(name, names, 1)
        remedy = (
            f"did you mean {package}/{kind}/{similar[0]}?" if similar else f"name a type of {package}, or update it"
        )
        raise TypeMissingError(f"{type_name} does not exist in {package}; {remedy}") from error


def record_class(record_type: type) -> Any:
    """Import the message class that carries a record type."""
    return message_class(message_type(record_type))


def to_ros(record: object) -> Any:
    """Convert a record to its message."""
    return to_message(record, lambda type_name, values: message_class(type_name)(**values))


def from_ros(record_type: type[T], message: Any, on_cut: Callable[[int], None] = lambda count: None) -> T:
    """Convert a message to its record; `on_cut` gets the number of texts cut. Raises MessageError if it is invalid."""
    return from_message(record_type, message, on_cut)
