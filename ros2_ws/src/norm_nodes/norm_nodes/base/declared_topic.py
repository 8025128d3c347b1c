"""The description of a published topic that a bag needs, read from publishers and installed packages."""

from collections.abc import Sequence
from functools import cache

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
    definition_digest,
    installed_digest,
    message_file,
)
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S
from norm_nodes.base.convert import TypeMissingError, message_class

# The names of IDL, where those of .msg files differ.
_MSG_NAMES = {"boolean": "bool", "octet": "byte", "float": "float32", "double": "float64"}


class NotRecordableError(TactfulError):
    """A topic's messages could not be read from a bag."""


def declared_topic(node: Node, topic: str, type_names: Sequence[str]) -> BagTopic:
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
    installed = installed_digest(type_name)
    if installed and digests - {installed}:
        raise NotRecordableError(
            f"a publisher has another definition of {type_name} than is installed here; "
            "build both from the same version of its package"
        )
    digest = installed or next(iter(digests), "")
    try:
        check_for_type_support(message_class(type_name))
        definition = _definition(type_name, digest)
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
        digest=digest or definition_digest(type_name, definition),
        qos=tuple(_bag_qos(publisher.qos_profile) for publisher in publishers),
    )


@cache
def _definition(type_name: str, digest: str) -> str:
    """Return the text of the package, or a description of its classes where the bag library would refuse the text.

    The bag library compares hashes, and hashes a `char` otherwise than ROS, for which it is a uint8.
    """
    written = complete_definition(type_name, message_file, described)
    if not digest or definition_digest(type_name, written) == digest:
        return written
    complete = complete_definition(type_name, described)
    return complete if definition_digest(type_name, complete) == digest else written


def described(type_name: str) -> str:
    """Describe the fields of an installed message class in the form of a `.msg` file."""
    class_ = message_class(type_name)
    fields = zip(class_.get_fields_and_field_types(), class_.SLOT_TYPES, strict=True)
    return "".join(f"{_field_type(kind)} {name}\n" for name, kind in fields) or "# no fields\n"


def _field_type(kind: object) -> str:
    if isinstance(kind, AbstractNestedType):
        item = _field_type(kind.value_type)
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


def _bag_qos(qos: QoSProfile) -> Qos:
    return Qos(
        QosHistory(qos.history.value),
        qos.depth,
        QosReliability(qos.reliability.value),
        QosDurability(qos.durability.value),
        _bag_time(qos.deadline),
        _bag_time(qos.lifespan),
        QosLiveliness(qos.liveliness.value),
        _bag_time(qos.liveliness_lease_duration),
        qos.avoid_ros_namespace_conventions,
    )


def _bag_time(duration: Duration) -> QosTime:
    return QosTime(*divmod(duration.nanoseconds, NS_PER_S))
