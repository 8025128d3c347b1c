"""What is told of a message type that cannot be used."""

import pytest

pytestmark = pytest.mark.ros


@pytest.mark.parametrize(
    ("type_name", "told"),
    [
        ("std_msgs/msg/Strng", "does not exist in std_msgs; did you mean std_msgs/msg/String?"),
        ("std_msgs/msg/Qqqqq", "does not exist in std_msgs; name a type of std_msgs, or update it"),
        ("bolt_msgs/msg/Say", "is not installed; install bolt_msgs (as ros-jazzy-bolt-msgs)"),
    ],
)
def test_a_type_that_is_missing_names_what_mends_it(type_name: str, told: str) -> None:
    from norm_nodes.convert import TypeMissingError, message_class

    with pytest.raises(TypeMissingError) as raised:
        message_class(type_name)
    assert str(raised.value) == f"{type_name} {told}"
