"""What unpacks to too much is refused before its memory is taken; the rest is unpacked as it was."""

import struct
from collections.abc import Callable
from pathlib import Path

import cv2
import lz4.frame
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from rosbags.rosbag2 import CompressionMode

from norm_core.bags.reader import BagError, BagReader
from norm_core.decoding import unpacking
from norm_core.decoding.picture_decoding import check_packed_picture, decode_picture
from norm_core.decoding.unpacking import UnpackError, unpack_lz4, unpack_zstd
from tests.norm_core.bags.bag_files import write_rosbags

ZEROS = bytes(1 << 20)
PACKERS: dict[str, tuple[Callable[[bytes], bytes], Callable[..., bytes]]] = {
    "zstd": (zstandard.compress, unpack_zstd),
    "lz4": (lz4.frame.compress, unpack_lz4),
}


def picture(extension: str, width_px: int | None = None) -> bytes:
    """A picture of 16 x 8 px, or one that states another width."""
    data = bytearray(cv2.imencode(extension, np.full((8, 16, 3), 90, np.uint8))[1].tobytes())
    if width_px is not None:
        at, form = (data.index(b"\xff\xc0") + 7, ">H") if extension == ".jpg" else (16, ">I")
        struct.pack_into(form, data, at, width_px)
        struct.pack_into(form, data, at + (-2 if extension == ".jpg" else 4), 30_000)
    return bytes(data)


@pytest.mark.parametrize("packer", PACKERS)
def test_data_is_unpacked_up_to_its_limit(packer: str) -> None:
    pack, unpack = PACKERS[packer]
    packed = pack(ZEROS)
    assert unpack(packed) == unpack(packed, len(ZEROS)) == ZEROS
    assert ZEROS.startswith(unpack(packed[: len(packed) // 2]))
    with pytest.raises(UnpackError, match="unpacks to more than the 1048575 bytes that it may have"):
        unpack(packed, len(ZEROS) - 1)


@pytest.mark.parametrize("packer", PACKERS)
@settings(max_examples=50)
@given(st.binary(max_size=200), st.integers(0, 60))
def test_damaged_data_is_an_unpack_error_or_bounded(packer: str, damage: bytes, at: int) -> None:
    pack, unpack = PACKERS[packer]
    packed = pack(ZEROS)
    try:
        unpacked = unpack(packed[:at] + damage + packed[at + len(damage) :], 1 << 21)
    except UnpackError:
        return
    assert len(unpacked) <= 1 << 21


@pytest.mark.parametrize("mode", [CompressionMode.MESSAGE, CompressionMode.FILE, CompressionMode.STORAGE])
def test_a_bag_that_unpacks_to_too_much_is_an_error(
    tmp_path: Path, mode: CompressionMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rosbags(tmp_path / "bag", mode=mode, messages=[("/a", 1, ZEROS)])
    monkeypatch.setattr(unpacking, "MAX_UNPACKED_BYTES", 1 << 16)
    monkeypatch.setattr(unpacking, "MAX_FILE_RATIO", 10)
    with pytest.raises(BagError, match="unpacks to more than"), BagReader(tmp_path / "bag") as reader:
        list(reader.messages())


@pytest.mark.parametrize("extension", [".jpg", ".png"])
def test_a_picture_is_decoded_if_its_header_states_a_size_that_can_be(extension: str) -> None:
    pixels = decode_picture(picture(extension))
    assert pixels is not None
    assert pixels.shape == (8, 16, 3)
    for width_px in (30_000, 65_000):
        with pytest.raises(UnpackError, match=f"a picture of {width_px} x 30000 px is too large"):
            check_packed_picture(picture(extension, width_px))
        assert decode_picture(picture(extension, width_px)) is None


@settings(max_examples=100)
@given(st.sampled_from([".jpg", ".png"]), st.binary(min_size=1, max_size=4), st.floats(0, 1))
def test_a_damaged_picture_is_pixels_or_none(extension: str, damage: bytes, share: float) -> None:
    data = picture(extension)
    at = int(share * len(data))
    pixels = decode_picture(data[:at] + damage + data[at + len(damage) :])
    assert pixels is None or pixels.shape[2] == 3
