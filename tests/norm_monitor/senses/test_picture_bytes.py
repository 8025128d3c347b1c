"""A picture read straight from a message's bytes is the one that a ROS library reads, or none."""

import struct
from dataclasses import fields
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from norm_core.bags.types import make, typestore
from norm_monitor.senses.camera.picture import Picture, make_picture, parse_picture

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
UINT32 = st.integers(0, 2**32 - 1)
HEADERS = st.builds(
    lambda sec, nanosec, frame_id: make(
        "std_msgs/msg/Header",
        {"stamp": make("builtin_interfaces/msg/Time", {"sec": sec, "nanosec": nanosec}), "frame_id": frame_id},
    ),
    st.integers(0, 2**31 - 1),
    st.integers(0, 999_999_999),
    TEXTS,
)
COMPRESSED = st.fixed_dictionaries({"header": HEADERS, "format": TEXTS, "data": st.binary(max_size=40)})
RAW = st.fixed_dictionaries(
    {
        "header": HEADERS,
        "height": UINT32,
        "width": UINT32,
        "encoding": TEXTS,
        "is_bigendian": st.integers(0, 1),
        "step": UINT32,
        "data": st.binary(max_size=40),
    }
)
MESSAGES = st.one_of(
    st.tuples(st.just("sensor_msgs/msg/CompressedImage"), COMPRESSED),
    st.tuples(st.just("sensor_msgs/msg/Image"), RAW),
)


def plain(picture: Picture) -> dict[str, Any]:
    named = {field.name: getattr(picture, field.name) for field in fields(picture)}
    return named | {"data": bytes(memoryview(picture.data))}


@given(MESSAGES, st.integers(0, 3))
def test_a_parsed_picture_equals_that_of_the_bag_library(stated: tuple[str, Any], padding: int) -> None:
    type_name, values = stated
    message = make(type_name, dict(values))
    data = bytes(typestore().serialize_cdr(message, type_name)) + bytes(padding)
    parsed = parse_picture(data, compressed=type_name.endswith("CompressedImage"))
    assert parsed is not None
    assert plain(parsed) == plain(make_picture(message))


def test_a_big_endian_message_is_parsed() -> None:
    data = b"\0\0\0\0" + struct.pack(">iII4sI5s3xI2s", 7, 9, 4, b"eye\0", 5, b"jpeg\0", 2, b"\xff\xd8")
    parsed = parse_picture(data, compressed=True)
    assert parsed is not None
    assert (parsed.stamp_ns, parsed.frame_id, parsed.encoding, bytes(parsed.data)) == (
        7_000_000_009,
        "eye",
        "jpeg",
        b"\xff\xd8",
    )


@given(MESSAGES, st.data())
def test_a_truncated_message_gives_no_picture(stated: tuple[str, Any], chance: st.DataObject) -> None:
    type_name, values = stated
    data = bytes(typestore().serialize_cdr(make(type_name, dict(values)), type_name))
    short = data[: chance.draw(st.integers(0, len(data) - 4))]
    assert parse_picture(short, compressed=type_name.endswith("CompressedImage")) is None
