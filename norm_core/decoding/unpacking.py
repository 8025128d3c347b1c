"""Unpack data from outside within limits, which are checked before memory is used."""

from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipFile

import lz4.frame
import zstandard

from norm_core.runtime.errors import TactfulError

# A raw picture of 50 million pixels has 150 MB. No recorder makes larger messages or chunks.
MAX_UNPACKED_BYTES = 256 << 20
# The limit of a message or chunk above 32 MiB, which repeats less than a file of many messages does.
_MAX_RATIO = 200
_SMALL_BYTES = 32 << 20
# The limit of a bag's file, which is unpacked to disk: repeated pictures shrink a hundredfold.
MAX_FILE_RATIO = 1000
_PIECE_BYTES = 1 << 18


class UnpackError(TactfulError, ValueError):
    """Packed data is damaged or too large."""


def unpack_zstd(data: bytes, max_bytes: int = MAX_UNPACKED_BYTES) -> bytes:
    """Return as much as a possibly truncated frame yields. Raises UnpackError beyond `max_bytes`, or for damage."""
    max_bytes = min(max_bytes, _compute_limit(data))
    unpacked = BytesIO()
    try:
        with zstandard.ZstdDecompressor().stream_reader(BytesIO(data), read_across_frames=True) as stream:
            while piece := stream.read(_PIECE_BYTES):
                unpacked.write(piece)
                if unpacked.tell() > max_bytes:
                    raise UnpackError(_describe_excess(max_bytes))
    except zstandard.ZstdError as error:
        raise UnpackError(str(error)) from error
    return unpacked.getvalue()


def unpack_lz4(data: bytes, max_bytes: int = MAX_UNPACKED_BYTES) -> bytes:
    """Return as much as a possibly truncated frame yields. Raises UnpackError beyond `max_bytes`, or for damage."""
    max_bytes = min(max_bytes, _compute_limit(data))
    try:
        unpacked = bytes(lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=max_bytes + 1))
    except (RuntimeError, EOFError) as error:
        raise UnpackError(str(error)) from error
    if len(unpacked) > max_bytes:
        raise UnpackError(_describe_excess(max_bytes))
    return unpacked


def unpack_zstd_file(packed: BinaryIO, target: Path) -> None:
    """Decompress a file; keep what could be read. Raises UnpackError for damage, or a ratio that no recording has."""
    remaining_bytes = packed.seek(0, 2) * MAX_FILE_RATIO + MAX_UNPACKED_BYTES
    packed.seek(0)
    try:
        with target.open("wb") as plain:
            stream = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
            while piece := stream.read(_PIECE_BYTES):
                remaining_bytes -= plain.write(piece)
                if remaining_bytes < 0:
                    raise UnpackError(f"unpacks to more than {MAX_FILE_RATIO} times its size, as no recording does")
    except zstandard.ZstdError as error:
        raise UnpackError(str(error)) from error


def check_archive(path: Path) -> None:
    """Check the size of an unpacked zip archive. Raises UnpackError if it is too large, BadZipFile if it is not one."""
    with ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > MAX_UNPACKED_BYTES:
            raise UnpackError(f"{path}: {_describe_excess(MAX_UNPACKED_BYTES)}")


def _compute_limit(data: bytes) -> int:
    return min(MAX_UNPACKED_BYTES, max(_SMALL_BYTES, _MAX_RATIO * len(data)))


def _describe_excess(max_bytes: int) -> str:
    return f"unpacks to more than the {max_bytes} bytes that it may have"
