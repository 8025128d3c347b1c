"""The talk reader: a small language model that reads a talk line by line and rates each line of the robot.

`tactful models setup reader` writes its folder. A line looks like `Robot: Hello.` or `Person 2: Hi.`
"""

import mmap
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.onnx.session import CPU, open_session
from norm_core.models.reader_folder import (
    EMBEDDINGS,
    GRAPH,
    TOKENIZER,
    ReaderManifest,
    ReaderSize,
    read_manifest,
    reader_folder,
)
from norm_core.models.store import find_damages
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.json_codec import sha256_of
from norm_core.records.record import record
from norm_core.runtime.program import PROGRAM

# Names of a reader besides its sizes: the smallest that is set up, for which figures are published, and none.
AUTO, NO_READER = "auto", "none"
OFFSETS = 3
TURN_OUTPUTS = 3 + len(Attribute) + 2
OPTION_OUTPUTS = 2
# The speaker of a line; people are numbered from the second on.
ROBOT, PERSON = "Robot", "Person"
HEAD_OUTPUTS = OFFSETS * TURN_OUTPUTS + OPTION_OUTPUTS
_DIGITS = 4
# A line of the robot with at least this probability of an error is read again without each of the three lines before
# it. The error turns on a line if the probability falls by this share without it.
_READ_AGAIN_FROM, _LEFT_OUT, _FALL = 0.4, 3, 0.4
_REMEDY = f"run {PROGRAM} models setup reader, with --size for another than small"

Cache = list[NDArray[np.float32]]


@record
class TurnReading:
    """The probable qualities of a line of the robot; meaningless for a line of a person."""

    ordinary: float
    polarity: dict[Polarity, float]
    attributes: dict[Attribute, float]
    fault: float  # people blame the robot for it
    good: float  # people find it notably good


@record
class OptionReading:
    """The probable qualities of an option in a scene."""

    possible: float  # the robot can do it now, with its body and from its position
    fitting: float  # it is fitting, given what was just said and done


@record
class LineReading:
    """The reading at the end of a line: of this line, of the line before it, and of the one before that."""

    turns: tuple[TurnReading, ...]
    turns_on: int = 0  # the distance to the earlier line without which this reads least as an error; 0: none


def scene_lines(scene: str, heard: Sequence[str]) -> list[str]:
    """Return a scene and the utterances heard there as lines."""
    context_lines = [f"Scene: {scene}", *(text if ": " in text else f"{PERSON}: {text}" for text in heard)]
    return [f"{' '.join(line.split())}\n" for line in context_lines]


def option_line(option: str) -> str:
    """Return an option of a scene as a line."""
    return f"{ROBOT}: {' '.join(option.split())}\n"


def latest_reading(readings: Sequence[LineReading], line: int) -> TurnReading:
    """Return the latest reading of a line, from the last line that rates it."""
    after = min(len(readings) - 1 - line, OFFSETS - 1)
    return readings[line + after].turns[after]


class TalkReader:
    """The model, shared by any number of talks in any threads."""

    def __init__(self, folder: Path, manifest: ReaderManifest, threads: int) -> None:
        """Note the files; `load` or the first talk reads them."""
        self.manifest = manifest
        self.max_tokens = manifest.max_tokens
        self._folder, self._threads = folder, threads
        self._names = [f"{kind}_{layer}" for layer in range(manifest.layers) for kind in ("key", "value")]
        self._loading, self._is_loaded = Lock(), False

    def load(self) -> Self:
        """Load the files once; raise EngineFailedError if that fails."""
        # Imported here, because commands that only list models should start fast.
        from tokenizers import Tokenizer  # noqa: PLC0415

        with self._loading:
            if self._is_loaded:
                return self
            folder = self._folder
            manifest = read_manifest(folder)
            if manifest != self.manifest:
                raise EngineFailedError(f"{folder}: the reader has changed since it was opened; start again")
            try:
                self._embeddings = np.load(folder / EMBEDDINGS, mmap_mode="r", allow_pickle=False)
                self._tokenizer = Tokenizer.from_str((folder / TOKENIZER).read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise EngineFailedError(f"{folder}: the reader cannot be loaded: {error}; {_REMEDY}") from error
            self._session = open_session(
                folder / GRAPH,
                threads=self._threads,
                providers=(CPU,),
                memory_arena=False,
                warm_up=self._inputs([0], self.empty_cache()),
            )
            self._is_loaded = True
        return self

    @property
    def sha256(self) -> str:
        """The hash of the base model and the adapter."""
        return _digest_of(self.manifest)

    @classmethod
    def open(cls, folder: Path, *, threads: int = 2, verify: bool = True) -> Self:
        """Open a folder's reader; raise EngineFailedError if it is absent or has changed."""
        manifest = read_manifest(folder)
        if manifest is None:
            raise EngineFailedError(f"{folder}: holds no reader; {_REMEDY}")
        if damages := find_damages(folder, manifest) if verify else {}:
            reasons = "; ".join(f"{path} {fault}" for path, fault in damages.items())
            raise EngineFailedError(f"{folder}: the reader is not as it was written: {reasons}; {_REMEDY}")
        return cls(folder, manifest, threads)

    def start(self) -> "ReadTalk":
        """Return an empty talk."""
        return ReadTalk(self.load())

    def empty_cache(self) -> Cache:
        """Return keys and values of no tokens."""
        shape = (1, self.manifest.key_heads, 0, self.manifest.head_width)
        return [np.zeros(shape, np.float32) for _ in self._names]

    def tokens(self, line: str) -> list[int]:
        """Return a line's tokens; a line of more than half of the context is cut, except its final line break."""
        text = " ".join(line.splitlines()).encode(errors="replace").decode() + "\n"
        tokens: list[int] = self._tokenizer.encode(text).ids
        limit = self.max_tokens // 2
        return tokens if len(tokens) <= limit else tokens[: limit - 1] + tokens[-1:]

    def read(self, tokens: Sequence[int], cache: Cache) -> tuple[NDArray[np.float32], Cache]:
        """Return the heads' outputs at the last token, and a new cache with these tokens."""
        heads, *after = self._session.run(None, self._inputs(tokens, cache))
        if heads.shape[-1] != HEAD_OUTPUTS:
            raise EngineFailedError(f"the reader is of another version of Tactful; {_REMEDY}")
        if not np.isfinite(heads[-1]).all():
            raise EngineFailedError(f"the reader's outputs are no numbers; {_REMEDY}")
        return heads[-1], after

    def _inputs(self, tokens: Sequence[int], cache: Cache) -> dict[str, NDArray[Any]]:
        length = cache[0].shape[2] + len(tokens)
        embedded = self._embeddings[list(tokens)].astype(np.float32)[None]
        if isinstance(self._embeddings.base, mmap.mmap):  # otherwise all pages that were ever read count as memory
            self._embeddings.base.madvise(mmap.MADV_DONTNEED)
        return {
            "embedded": embedded,
            "last_position": np.array([length - 1], np.int32),
            "length": np.array(length, np.int32),
            **{f"past_{name}": values for name, values in zip(self._names, cache, strict=True)},
        }


def open_reader(name: str) -> TalkReader | None:
    """Open the reader of a size or in a folder, or the smallest that is set up; None if there is none.

    TACTFUL_READER replaces the name "auto". Raises EngineFailedError if the named reader is absent, or a file of it
    has changed.
    """
    name = os.environ.get("TACTFUL_READER") or AUTO if name == AUTO else name
    if name == NO_READER:
        return None
    if name != AUTO:
        folder = reader_folder(ReaderSize(name)) if name in set(ReaderSize) else Path(name)
        return _open_cached(folder, _digest_of(read_manifest(folder)), verify=True)
    for size in ReaderSize:
        if manifest := read_manifest(folder := reader_folder(size)):
            return _open_cached(folder, _digest_of(manifest), verify=False)
    return None


def _digest_of(manifest: ReaderManifest | None) -> str:
    return sha256_of([manifest.base_sha256, manifest.adapter_sha256]) if manifest else ""


@lru_cache(maxsize=2)
def _open_cached(folder: Path, digest: str, *, verify: bool) -> TalkReader:
    """Open a folder's reader once while its digest is the same, because it takes half a gigabyte."""
    return TalkReader.open(folder, verify=verify)


@record
class _ReadLine:
    """A line with its tokens, its reading, and the first line of the context in which it was read."""

    text: str
    tokens: tuple[int, ...]
    first: int
    reading: LineReading


class ReadTalk:
    """The lines of one talk, read in order. A line's reading depends only on the lines up to it.

    Each line is one pass, even if it is read again. When the context is full, its oldest half is dropped, and the rest
    is read again from position zero.
    """

    def __init__(self, reader: TalkReader) -> None:
        self._reader = reader
        self._lines: list[_ReadLine] = []
        self._first = self._filled = 0  # the range of lines in the cache
        self._cache = reader.empty_cache()

    @property
    def readings(self) -> list[LineReading]:
        """The reading of each line so far."""
        return [line.reading for line in self._lines]

    def read(self, lines: Sequence[str]) -> list[LineReading]:
        """Return the readings of a talk's lines; read only from the first line that differs from the lines read before.

        `lines` may lack the beginning of the talk.
        """
        line_texts = [line.text for line in self._lines]
        starts = (at for at, text in enumerate(line_texts) if lines and text == lines[0])
        begin = next((at for at in starts if at and line_texts[at:] == list(lines[: len(line_texts) - at])), 0)
        pairs = enumerate(zip(line_texts[begin:], lines, strict=False))
        same = next((at for at, (text, line) in pairs if text != line), min(len(line_texts) - begin, len(lines)))
        self.rewind(begin + same)
        for line in lines[same:]:
            self.append(line)
        return self.readings[begin:]

    def append(self, line: str) -> LineReading:
        """Read the next line; if that fails, the talk stays unchanged."""
        self._append(line)
        last = self._lines[-1]
        error = last.reading.turns[0].polarity[Polarity.ERROR]
        if line.startswith(f"{ROBOT}: ") and error >= _READ_AGAIN_FROM:
            try:
                reading = replace(last.reading, turns_on=self._turns_on(error))
            except BaseException:
                self.rewind(len(self._lines) - 1)
                raise
            self._lines[-1] = replace(last, reading=reading)
        return self._lines[-1].reading

    def _turns_on(self, error: float) -> int:
        state = self._lines, self._first, self._filled, self._cache
        without = {0: (1 - _FALL) * error}
        try:
            for back in range(1, min(_LEFT_OUT, len(state[0]) - 1) + 1):
                _, self._first, self._filled, self._cache = state
                self._lines = list(state[0])
                self.rewind(len(self._lines) - 1 - back)
                for line in state[0][-back:]:
                    self._append(line.text)
                without[back] = self._lines[-1].reading.turns[0].polarity[Polarity.ERROR]
        finally:
            self._lines, self._first, self._filled, self._cache = state
        return min(without, key=lambda back: without[back])

    def _append(self, line: str) -> NDArray[np.float32]:
        tokens = self._reader.tokens(line)
        first = self._first_line(len(tokens))
        if first != self._first:
            self._first = self._filled = first
            self._cache = self._reader.empty_cache()
        for earlier in self._lines[self._filled :]:
            _, self._cache = self._reader.read(earlier.tokens, self._cache)
            self._filled += 1
        heads, self._cache = self._reader.read(tokens, self._cache)
        self._filled += 1
        self._lines.append(_ReadLine(text=line, tokens=tuple(tokens), first=first, reading=_line_reading(heads)))
        return heads

    def read_options(self, lines: Sequence[str]) -> list[OptionReading]:
        """Read each line as a possible next line, and leave the talk unchanged."""
        line_count, readings = len(self._lines), []
        for line in lines:
            readings.append(_option_reading(self._append(line)))
            self.rewind(line_count)
        return readings

    def rewind(self, line_count: int) -> None:
        """Drop all lines after the first `line_count`."""
        if line_count >= len(self._lines):
            return
        del self._lines[max(line_count, 0) :]
        first = self._lines[-1].first if self._lines else 0
        if first != self._first:  # the next line reads the context again
            self._first = self._filled = first
            self._cache = self._reader.empty_cache()
        elif self._filled > len(self._lines):
            self._filled = len(self._lines)
            length = sum(len(line.tokens) for line in self._lines[first:])
            self._cache = [np.ascontiguousarray(values[:, :, :length]) for values in self._cache]

    def _first_line(self, token_count: int) -> int:
        """Return the first line of the context for a next line of `token_count` tokens."""
        first = self._lines[-1].first if self._lines else 0
        length = sum(len(line.tokens) for line in self._lines[first:])
        if length + token_count > self._reader.max_tokens:
            while length > self._reader.max_tokens // 2:
                length -= len(self._lines[first].tokens)
                first += 1
        return first


def _line_reading(heads: NDArray[np.float32]) -> LineReading:
    turns = heads[: OFFSETS * TURN_OUTPUTS].astype(np.float64).reshape(OFFSETS, -1)
    return LineReading(turns=tuple(_turn_reading(row) for row in turns))


def _option_reading(heads: NDArray[np.float32]) -> OptionReading:
    possible, fitting = _sigmoid(heads[-OPTION_OUTPUTS:].astype(np.float64))
    return OptionReading(possible=possible, fitting=fitting)


def _sigmoid(logits: NDArray[np.float64]) -> list[float]:
    return [round(float(value), _DIGITS) for value in 1 / (1 + np.exp(-logits.clip(-50, 50)))]


def _turn_reading(outputs: NDArray[np.float64]) -> TurnReading:
    kinds = np.exp(outputs[:3] - outputs[:3].max())
    ordinary, error, competence = (round(float(kind), _DIGITS) for kind in kinds / kinds.sum())
    *attributes, fault, good = _sigmoid(outputs[3:])
    return TurnReading(
        ordinary=ordinary,
        polarity={Polarity.ERROR: error, Polarity.COMPETENCE: competence},
        attributes=dict(zip(Attribute, attributes, strict=True)),
        fault=fault,
        good=good,
    )
