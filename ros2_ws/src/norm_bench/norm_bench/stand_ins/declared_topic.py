"""Describe a published topic for a bag, from its publishers and the installed packages."""

from collections.abc import Sequence
from functools import cache

from norm_nodes.base.convert import TypeMissingError, message_class
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.topic_endpoint_info import TopicEndpointInfo
from rclpy.type_support import NoTypeSupportImportedException, check_for_type_support
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosidl_parser.definition import (
    AbstractNestedType,
    AbstractString,
    AbstractWString,
    Array,
    BasicType,
    NamespacedType,
)

from norm_core.bags.topic import BagError, BagTopic
from norm_core.bags.types import (
    complete_definition,
    compute_definition_digest,
    read_installed_digest,
    read_message_file,
)
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S

# The names of IDL, where those of .msg files differ.
_MSG_NAMES = {"boolean": "bool", "octet": "byte", "float": "float32", "double": "float64"}


class NotRecordableError(TactfulError):
    """A topic's messages could not be read from a bag."""


def describe_published_topic(node: Node, topic: str, type_names: Sequence[str]) -> BagTopic:
    """Describe a topic that has a publisher. Raises NotRecordableError with the reason and the remedy."""
    type_name = type_names[0]
    if len(type_names) > 1:
        raise NotRecordableError(
            f"its publishers use the types {' and '.join(type_names)}; rename the topic of one of them"
        )
    if "/srv/" in type_name:
        raise NotRecordableError(f"{type_name} is an event of a service; record the topics of its node instead")
    publishers: list[TopicEndpointInfo] = node.get_publishers_info_by_topic(topic)
    digests = {text for text in (str(publisher.topic_type_hash) for publisher in publishers) if text != "INVALID"}
    installed = read_installed_digest(type_name)
    if installed and digests - {installed}:
        raise NotRecordableError(
            f"a publisher has another definition of {type_name} than is installed here; "
            "build both from the same version of its package"
        )
    digest = installed or next(iter(digests), "")
    try:
        check_for_type_support(message_class(type_name))
        definition = _find_definition(type_name, digest)
    except TypeMissingError as error:
        raise NotRecordableError(f"{error}, or source the workspace that holds it") from error
    except NoTypeSupportImportedException as error:
        raise NotRecordableError(f"the libraries of {type_name} cannot be loaded; rebuild its package") from error
    except BagError as error:
        raise NotRecordableError(f"{error}; rebuild the package that holds it") from error
    return BagTopic(
        topic=topic,
        type_name=type_name,
        definition=definition,
        digest=digest or compute_definition_digest(type_name, definition),
        qos=tuple(_convert_qos(publisher.qos_profile) for publisher in publishers),
    )


@cache
def _find_definition(type_name: str, digest: str) -> str:
    """Return the text of the package, or a description of its classes if the bag library would refuse the text.

    The bag library compares hashes, and hashes a `char` otherwise than ROS, for which it is a uint8.
    """
    package_text = complete_definition(type_name, read_message_file, describe_class)
    if not digest or compute_definition_digest(type_name, package_text) == digest:
        return package_text
    class_text = complete_definition(type_name, describe_class)
    return class_text if compute_definition_digest(type_name, class_text) == digest else package_text


def describe_class(type_name: str) -> str:
    """Describe the fields of an installed message class in the form of a `.msg` file."""
    class_ = message_class(type_name)
    fields = zip(class_.get_fields_and_field_types(), class_.SLOT_TYPES, strict=True)
    return "".join(f"{_describe_field_type(kind)} {name}\n" for name, kind in fields) or "# no fields\n"


def _describe_field_type(kind: object) -> str:
    """Return the type of a field as a `.msg` file writes it."""
    if isinstance(kind, AbstractNestedType):
        item = _describe_field_type(kind.value_type)
        if isinstance(kind, Array):
            return f"{item}[{kind.size}]"
        return f"{item}[<={kind.maximum_size}]" if kind.has_maximum_size() else f"{item}[]"
    if isinstance(kind, NamespacedType):
        return "/".join((*kind.namespaces, kind.name))
    if isinstance(kind, AbstractString | AbstractWString):
        name = "string" if isinstance(kind, AbstractString) else "wstring"
        return f"{name}<={kind.maximum_size}" if kind.has_maximum_size() else name
    assert isinstance(kind, BasicType)
    return _MSG_NAMES.get(kind.typename, str(kind.typename))


def _convert_qos(qos: QoSProfile) -> Qos:
    return Qos(
        QosHistory(qos.history.value),
        qos.depth,
        QosReliability(qos.reliability.value),
        QosDurability(qos.durability.value),
        _convert_duration(qos.deadline),
        _convert_duration(qos.lifespan),
        QosLiveliness(qos.liveliness.value),
        _convert_duration(qos.liveliness_lease_duration),
        qos.avoid_ros_namespace_conventions,
    )


def _convert_duration(duration: Duration) -> QosTime:
    return QosTime(*divmod(duration.nanoseconds, NS_PER_S))
