"""No message ends a node: every type that a graph subscribes to, with its fields at their extremes."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from norm_core.records.messages import RECORDS
from tests.patience import comes_true
from tests.records import records

pytestmark = pytest.mark.ros

NODES = ("camera", "ears", "monitor", "selector")
PARAMETERS = """
/tactful/ears:
  ros__parameters: {words_from: topic, words_type: std_msgs/msg/String}
/tactful/monitor:
  ros__parameters: {windows: {sources: [frames, presence, utterances]}}
"""
# Not of our nodes: rclpy's own.
OTHERS = ("/clock", "/parameter_events")
FLOATS = (0.0, -1.0, 1e38, -1e38, math.inf, -math.inf, math.nan)
TEXTS = ("", "a", "no, stop it", "x" * 33_000, "\u202e再见", "../../etc", "/")


@pytest.fixture
def graph(domain_id: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    """The active nodes of a graph in the test's own process."""
    import rclpy
    from norm_nodes.catalogue import import_node_class

    file = tmp_path_factory.mktemp("graph") / "parameters.yaml"
    file.write_text(PARAMETERS)
    rclpy.init(args=["--ros-args", "--params-file", str(file)], domain_id=domain_id)
    try:
        nodes = [import_node_class(name)() for name in NODES]
        for node in nodes:
            assert "SUCCESS" in str(node.trigger_configure()), node.status().reasons
            assert "SUCCESS" in str(node.trigger_activate()), node.status().reasons
        yield nodes
        for node in nodes:
            node.end()
            node.destroy_node()
    finally:
        rclpy.try_shutdown()


def extremes_of(slot: Any) -> st.SearchStrategy[Any]:  # noqa: PLR0911 one line a kind of field
    """The least, the greatest and the odd values of a field of a message."""
    from rosidl_parser.definition import AbstractNestedType, AbstractString, BasicType

    if isinstance(slot, AbstractNestedType):
        if isinstance(slot.value_type, BasicType) and slot.value_type.typename in {"uint8", "octet"}:
            return st.binary(max_size=20)
        return st.lists(extremes_of(slot.value_type), max_size=2)
    if isinstance(slot, AbstractString):
        return st.sampled_from(TEXTS)
    if not isinstance(slot, BasicType):
        from norm_nodes.base.convert import message_class

        return messages_of(message_class("/".join((*slot.namespaces, slot.name))))
    if slot.typename == "boolean":
        return st.booleans()
    if slot.typename in {"float", "double"}:
        return st.sampled_from(FLOATS)
    bits = int(slot.typename.lstrip("uint"))
    low, high = (0, 2**bits - 1) if slot.typename[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return st.sampled_from(sorted({low, max(low, -1), 0, 1, min(high, 999_999_999), high}))


def messages_of(type_: Any) -> st.SearchStrategy[Any]:
    """Messages of a type with every field at an extreme."""
    names = type_.get_fields_and_field_types()
    fields = dict(zip(names, map(extremes_of, type_.SLOT_TYPES), strict=True))
    return st.fixed_dictionaries(fields).map(lambda values: type_(**values))


@st.composite
def nearly_valid(draw: st.DrawFn, cls: type) -> Any:
    """A message of a valid record in which at most two fields are at an extreme."""
    from norm_nodes.base.convert import to_ros

    message = to_ros(draw(records(cls)))
    fields = dict(zip(message.get_fields_and_field_types(), message.SLOT_TYPES, strict=True))
    for name in draw(st.lists(st.sampled_from(sorted(fields)), max_size=2, unique=True)):
        setattr(message, name, draw(extremes_of(fields[name])))
    return message


def inputs_of(type_: Any) -> st.SearchStrategy[Any]:
    record = RECORDS.get(f"{type_.__module__.split('.')[0]}/msg/{type_.__name__}")
    return messages_of(type_) | nearly_valid(record) if record else messages_of(type_)


# Not shrunk: the nodes keep what earlier messages left.
@settings(max_examples=40, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_message_of_any_type_fails_a_callback_or_a_thread(graph: list[Any], data: st.DataObject) -> None:
    from rclpy.serialization import serialize_message

    for node in graph:
        for subscription in node.subscriptions:
            if subscription.topic_name not in OTHERS:
                message = data.draw(inputs_of(subscription.msg_type), label=subscription.topic_name)
                subscription.callback(serialize_message(message) if subscription.raw else message)
        for service in node.services:
            if service.srv_name.startswith("/tactful/") and service.srv_name.count("/") == 2:
                request = data.draw(messages_of(service.srv_type.Request), label=service.srv_name)
                service.callback(request, service.srv_type.Response())
    for node in graph:
        assert comes_true(node.health_log.is_idle)
        node.beat()
        counters = {counter.name: counter.count for counter in node.health_log.counters}
        assert not counters.keys() & {"callbacks_failed", "records_failed"}, node.status().reasons
