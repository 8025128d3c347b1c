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

from norm_core.engines.sentences.mapped_arrays import hash_file_once, load_mapped_arrays

# The special tokens of the package.
_UNKNOWN = 0
_BEGIN = 1
_END = 2
# Below every sum of scores.
_NO_SCORE = -1e38
# The score of an unknown character is lower than the lowest of a piece by this.
_UNKNOWN_PENALTY = 10.0
_SPACE = "▁"
# The wire types of protocol buffers.
_VARINT = 0
_EIGHT_BYTES = 1
_BYTES = 2
_FOUR_BYTES = 5
# The numbers of the fields in a model file. The field of the normalizer is that of an old layout.
_PIECE_FIELD = 1
_NORMALIZER_FIELD = 3
_TEXT_FIELD = 1
_SCORE_FIELD = 2
_TABLE_FIELD = 2


class Tokenizer:
    """The pieces as a trie: one row per prefix of a piece, in order of length.

    The prefixes that extend row n by one character are the rows from `children[n]` up to `children[n + 1]`, sorted by
    that character.
    """

    def __init__(self, model: Path) -> None:
        """Map the pieces of a model file, which is parsed at the first start."""
        arrays = load_mapped_arrays(f"{hash_file_once(model)[:16]}.pieces.npy", lambda: _read_pieces(model))
        self._characters, self._children, self._tokens, self._scores = (
            arrays[name].data for name in ("characters", "children", "tokens", "scores")
        )
        self._normalizer = Precompiled(arrays["normalizer"].tobytes())
        self._unknown_score = min(self._scores) - _UNKNOWN_PENALTY

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, with those for its beginning and end."""
        words = filter(None, self._normalizer.normalize_str(text).split(" "))
        normalized = f"{_SPACE}{_SPACE.join(words)}".rstrip(_SPACE)
        return [_BEGIN, *(self._split(normalized) if normalized else [_UNKNOWN]), _END]

    def _split(self, text: str) -> list[int]:
        """Return the pieces with the highest sum of scores (Viterbi), in the package's order of summation."""
        characters, children, tokens, scores = self._characters, self._children, self._tokens, self._scores
        codes = [*map(ord, text)]
        length = len(text)
        # For each end: the best sum of scores up to it, and the start and token of the last piece.
        best_scores = [0.0] + [_NO_SCORE] * length
        last_pieces = [(0, _UNKNOWN)] * (length + 1)
        for begin in range(length):
            row = 0
            is_character_known = False
            for end in range(begin + 1, length + 1):
                code = codes[end - 1]
                rows_end = children[row + 1]
                row = bisect_left(characters, code, children[row], rows_end)
                if row == rows_end or characters[row] != code:
                    break
                if token := tokens[row]:
                    is_character_known |= end == begin + 1
                    score = best_scores[begin] + scores[token - 1]
                    if score > best_scores[end]:
                        best_scores[end] = score
                        last_pieces[end] = begin, token - 1
            score = best_scores[begin] + self._unknown_score
            if not is_character_known and score > best_scores[begin + 1]:
                best_scores[begin + 1] = score
                last_pieces[begin + 1] = begin, _UNKNOWN
        reverse_tokens = []
        end = length
        while end:
            end, token = last_pieces[end]
            reverse_tokens.append(token)
        return reverse_tokens[::-1]


def _read_pieces(model: Path) -> dict[str, NDArray[Any]]:
    """Parse the pieces of a model, and return the rows of the trie."""
    # The token of each prefix, plus one; 0 for a prefix that is not a piece.
    prefixes: dict[str, int] = {}
    scores = array("f")
    table = b""
    for field, content in _read_fields(model.read_bytes()):
        if field == _PIECE_FIELD:
            piece = dict(_read_fields(content))
            text = piece[_TEXT_FIELD].decode()
            scores.append(struct.unpack("<f", piece[_SCORE_FIELD])[0] if _SCORE_FIELD in piece else 0.0)
            for length in range(1, len(text)):
                prefixes.setdefault(text[:length], 0)
            prefixes[text] = len(scores)
        elif field == _NORMALIZER_FIELD:
            table = dict(_read_fields(content))[_TABLE_FIELD]
    row_texts = ["", *sorted(prefixes, key=lambda text: (len(text), text))]
    rows = {text: row for row, text in enumerate(row_texts)}
    parents = [rows[text[:-1]] for text in row_texts[1:]]
    return {
        "characters": np.array([ord(text[-1:] or "\0") for text in row_texts], np.uint32),
        "children": np.searchsorted(parents, np.arange(len(rows) + 1)).astype(np.uint32) + 1,
        "tokens": np.array([prefixes.get(text, 0) for text in row_texts], np.uint32),
        "scores": np.array(scores, np.float32),
        "normalizer": np.frombuffer(table, np.uint8),
    }


def _read_fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and bytes of each field of a protocol buffer, except varints."""
    offset = 0

    def read_varint() -> int:
        nonlocal offset
        value = 0
        shift = 0
        while True:
            byte = message[offset]
            offset += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while offset < len(message):
        tag = read_varint()
        wire_type = tag & 7
        if wire_type == _VARINT:
            read_varint()
            continue
        length = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}[wire_type] if wire_type != _BYTES else read_varint()
        yield tag >> 3, message[offset : offset + length]
        offset += length
