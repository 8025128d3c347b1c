"""Records to and from the message classes of rclpy."""

from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from norm_core.records.messages import from_message, message_type, to_message

T = TypeVar("T")


class TypeMissingError(ImportError):
    """A message type whose package is not installed here."""


@cache
def message_class(type_name: str) -> Any:
    """The class of a type such as std_msgs/msg/Header."""
    package, kind, name = type_name.split("/")
    try:
        return getattr(import_module(f"{package}.{kind}"), name)
    except (ImportError, AttributeError) as error:
        apt = f"ros-jazzy-{package.replace('_', '-')}"
        raise TypeMissingError(f"{type_name} is not installed; install {package} (as {apt})") from error


def record_class(record_type: type) -> Any:
    """The message class that carries a record."""
    return message_class(message_type(record_type))


def to_ros(record: object) -> Any:
    """The message of a record."""
    return to_message(record, lambda type_name, values: message_class(type_name)(**values))


def from_ros(record_type: type[T], message: Any) -> T:
    """The record of a message, or a MessageError."""
    return from_message(record_type, message)
