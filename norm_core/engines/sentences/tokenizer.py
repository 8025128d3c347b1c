"""The tokenizer of the packaged sentence encoder: a unigram model of SentencePiece in a cached file.

The library `tokenizers` normalizes the text. Its own unigram model would take 127 MB and 0.8 s, the package's 40 MB and
two seconds, this one 5 MB (2026-11-29).
"""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers.normalizers import Precompiled

from norm_core.engines.sentences.mapped_arrays import file_sha256, mapped_arrays

_UNKNOWN, _BEGIN, _END = range(3)  # token numbers of the package
_NO_SCORE = -1e38
_SPACE = "▁"
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5  # wire types of protocol buffers


class Tokenizer:
    """The pieces as a trie: one row per prefix of a piece, in order of length.

    The prefixes that extend row n by one character are the rows from `children[n]` up to `children[n + 1]`, sorted by
    that character.
    """

    def __init__(self, model: Path) -> None:
        """Map the pieces of a model file, which is parsed at the first start."""
        arrays = mapped_arrays(f"{file_sha256(model)[:16]}.pieces.npy", lambda: _pieces(model))
        self._characters, self._children, self._tokens, self._scores = (
            arrays[name].data for name in ("characters", "children", "tokens", "scores")
        )
        self._normalizer = Precompiled(arrays["normalizer"].tobytes())
        self._unknown_score = min(self._scores) - 10.0

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, with those for its beginning and end."""
        words = filter(None, self._normalizer.normalize_str(text).split(" "))
        normalized = f"{_SPACE}{_SPACE.join(words)}".rstrip(_SPACE)
        return [_BEGIN, *(self._split(normalized) if normalized else [_UNKNOWN]), _END]

    def _split(self, text: str) -> list[int]:
        """Return the pieces with the highest sum of scores (Viterbi), in the package's order of summation."""
        characters, children, tokens, scores = self._characters, self._children, self._tokens, self._scores
        codes, length = [*map(ord, text)], len(text)
        best, pieces = [0.0] + [_NO_SCORE] * length, [(0, _UNKNOWN)] * (length + 1)
        for begin in range(length):
            row, single = 0, False
            for end in range(begin + 1, length + 1):
                code, after = codes[end - 1], children[row + 1]
                row = bisect_left(characters, code, children[row], after)
                if row == after or characters[row] != code:
                    break
                if token := tokens[row]:
                    single |= end == begin + 1
                    score = best[begin] + scores[token - 1]
                    if score > best[end]:
                        best[end], pieces[end] = score, (begin, token - 1)
            score = best[begin] + self._unknown_score
            if not single and score > best[begin + 1]:
                best[begin + 1], pieces[begin + 1] = score, (begin, _UNKNOWN)
        reverse, end = [], length
        while end:
            end, token = pieces[end]
            reverse.append(token)
        return reverse[::-1]


def _pieces(model: Path) -> dict[str, NDArray[Any]]:
    """Parse a model's pieces, and return the rows of the trie."""
    prefixes, scores, table, count = dict[str, int](), array("f"), b"", 0
    for number, content in _fields(model.read_bytes()):
        if number == 1:
            piece = dict(_fields(content))
            text, count = piece[1].decode(), count + 1
            scores.append(struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0)
            for length in range(1, len(text)):
                prefixes.setdefault(text[:length], 0)
            prefixes[text] = count
        elif number == 3:  # the normalizer in this old layout
            table = dict(_fields(content))[2]
    beginnings = ["", *sorted(prefixes, key=lambda text: (len(text), text))]
    rows = {text: row for row, text in enumerate(beginnings)}
    parents = [rows[text[:-1]] for text in beginnings[1:]]
    return {
        "characters": np.array([ord(text[-1:] or "\0") for text in beginnings], np.uint32),
        "children": np.searchsorted(parents, np.arange(len(rows) + 1)).astype(np.uint32) + 1,
        "tokens": np.array([prefixes.get(text, 0) for text in beginnings], np.uint32),
        "scores": np.array(scores, np.float32),
        "normalizer": np.frombuffer(table, np.uint8),
    }


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and bytes of each field of a protocol buffer, except varints."""
    offset = 0

    def number() -> int:
        nonlocal offset
        value = shift = 0
        while True:
            byte, offset = message[offset], offset + 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while offset < len(message):
        tag = number()
        kind = tag & 7
        if kind == _VARINT:
            number()
            continue
        length = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}[kind] if kind != _BYTES else number()
        yield tag >> 3, message[offset : offset + length]
        offset += length
