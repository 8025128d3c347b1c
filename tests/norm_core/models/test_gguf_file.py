"""GGUF files: each number format by its definition in ggml, and files that are not whole."""

import struct
from pathlib import Path

import numpy as np
import pytest

from norm_core.models.gguf_file import GgufFile
from norm_core.models.store import WeightsError
from tests.norm_core.models.tiny_decoder import number, texts, write_gguf


def half(block: bytes, at: int) -> float:
    return float(struct.unpack_from("<e", block, at)[0])


def plain(kind: str, block: bytes) -> list[float]:
    """Decode a block value by value."""
    if kind in ("Q4_0", "Q4_1", "Q5_0", "Q8_0"):
        scale = half(block, 0)
        if kind == "Q4_1":
            codes = [byte & 15 for byte in block[4:]] + [byte >> 4 for byte in block[4:]]
            return [scale * code + half(block, 2) for code in codes]
        if kind == "Q8_0":
            return [scale * value for value in struct.unpack("<32b", block[2:])]
        packed, high = (block[2:], 0) if kind == "Q4_0" else (block[6:], int.from_bytes(block[2:6], "little"))
        codes = [byte & 15 for byte in packed] + [byte >> 4 for byte in packed]
        middle = 8 if kind == "Q4_0" else 16
        return [scale * ((code | (high >> at & 1) << 4) - middle) for at, code in enumerate(codes)]
    values = []
    for at in range(256):
        if kind == "Q4_K":
            part, scales = at // 32, block[4:16]
            byte = block[16 + at // 64 * 32 + at % 32]
            scale, offset = scales[part % 4] & 63, scales[part % 4 + 4] & 63
            if part > 3:
                scale = scales[part + 4] & 15 | scales[part - 4] >> 6 << 4
                offset = scales[part + 4] >> 4 | scales[part] >> 6 << 4
            code = byte >> 4 if part % 2 else byte & 15
            values.append(half(block, 0) * scale * code - half(block, 2) * offset)
        else:
            side, row, column = at // 128, at % 128 // 32, at % 32
            byte = block[side * 64 + row % 2 * 32 + column]
            high = block[128 + side * 32 + column] >> 2 * row & 3
            code = (byte >> 4 if row > 1 else byte & 15) | high << 4
            values.append(half(block, 208) * struct.unpack_from("<b", block, 192 + at // 16)[0] * (code - 32))
    return values


@pytest.mark.parametrize(
    ("number_of_kind", "kind", "size", "scales"),
    [
        (2, "Q4_0", 18, (0,)),
        (3, "Q4_1", 20, (0, 2)),
        (6, "Q5_0", 22, (0,)),
        (8, "Q8_0", 34, (0,)),
        (12, "Q4_K", 144, (0, 2)),
        (14, "Q6_K", 210, (208,)),
    ],
)
def test_blocks_are_decoded_as_ggml_defines_them(
    number_of_kind: int, kind: str, size: int, scales: tuple[int, ...], tmp_path: Path
) -> None:
    blocks = np.random.default_rng(0).integers(0, 256, (6, size), dtype=np.uint8)
    for at in scales:
        blocks[:, at : at + 2] = np.linspace(-0.5, 2, 6).astype(np.float16)[:, None].view(np.uint8)
    width = 2 * len(plain(kind, blocks[0].tobytes()))
    path = write_gguf(tmp_path / "a.gguf", {}, {"weights": (number_of_kind, (3, width), blocks.tobytes())})
    expected = np.array([plain(kind, block.tobytes()) for block in blocks]).reshape(3, width)
    np.testing.assert_allclose(GgufFile(path).read_tensor("weights"), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(GgufFile(path).read_tensor("weights", slice(1, 3)), expected[1:], rtol=1e-5, atol=1e-5)


def test_floats_and_metadata_are_read(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    tensors = {"single": (0, (3, 4), values.tobytes()), "half": (1, (3, 4), values.astype(np.float16).tobytes())}
    file = GgufFile(write_gguf(tmp_path / "a.gguf", {"a": number(7), "b": texts(["é", ""])}, tensors))
    assert file.metadata == {"a": 7, "b": ["é", ""]}
    for name in tensors:
        np.testing.assert_array_equal(file.read_tensor(name), values)
    with pytest.raises(WeightsError, match="has no tensor other"):
        file.read_tensor("other")


def test_a_file_that_is_not_whole_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    tensors = {"a": (0, (2, 32), bytes(256)), "b": (8, (1, 32), bytes(34))}
    whole = write_gguf(tmp_path / "a.gguf", {"names": texts(["one", "two"]), "count": number(2)}, tensors).read_bytes()
    cut = tmp_path / "cut.gguf"
    for length in range(0, len(whole) - 30, 7):  # the last bytes only fill the last block
        cut.write_bytes(whole[:length])
        with pytest.raises(WeightsError, match=r"cut\.gguf: is not a (complete )?GGUF file"):
            GgufFile(cut)
    with pytest.raises(WeightsError, match="cannot be read"):
        GgufFile(tmp_path / "absent.gguf")


@pytest.mark.parametrize(
    ("kind", "shape", "reason"),
    [(16, (1, 256), "has the type 16 of GGML"), (8, (1, 33), "not a whole number of blocks")],
)
def test_tensors_of_another_kind_are_refused(kind: int, shape: tuple[int, ...], reason: str, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "a.gguf", {}, {"weights": (kind, shape, bytes(512))})
    with pytest.raises(WeightsError, match=reason):
        GgufFile(path).read_tensor("weights")


def test_lists_in_lists_are_refused_however_deep_they_are(tmp_path: Path) -> None:
    nested = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 9)
    (tmp_path / "a.gguf").write_bytes(nested + struct.pack("<IQ", 9, 1) * 5000)
    with pytest.raises(WeightsError, match="it holds a list of 1 lists"):
        GgufFile(tmp_path / "a.gguf")
