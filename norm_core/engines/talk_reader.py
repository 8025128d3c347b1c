"""The talk reader: a small language model that reads a talk line by line and rates each line of the robot.

`tactful models setup reader` writes its folder. A line looks like `Robot: Hello.` or `Person 2: Hi.`
"""

import mmap
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import log
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.onnx.session import CPU, open_session
from norm_core.models.reader_folder import (
    AUTO,
    EMBEDDINGS,
    GRAPH,
    TOKENIZER,
    ReaderManifest,
    find_named_folder,
    read_manifest,
    resolve_reader_name,
)
from norm_core.models.store import find_damages
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.json_codec import sha256_of
from norm_core.records.record import record
from norm_core.runtime.program import PROGRAM

# The least probability of which log odds are taken.
_MIN_PROBABILITY = 1e-4
# The lines that each reading rates: this one and the two before it.
OFFSETS = 3
# The outputs of one rated line: three kinds, the attributes, "held against the robot" and "good".
TURN_OUTPUTS = 3 + len(Attribute) + 2
# The outputs of an option: possible and fitting.
OPTION_OUTPUTS = 2
HEAD_OUTPUTS = OFFSETS * TURN_OUTPUTS + OPTION_OUTPUTS
# The name of the robot at the beginning of a line.
ROBOT = "Robot"
# The name of the first person; further people are `Person 2` and so on.
PERSON = "Person"
_DECIMALS = 4
# A line of the robot with this probability of an error is read again without each of the lines before it.
_CAUSE_THRESHOLD = 0.4
# The number of earlier lines among which the cause of an error is sought.
_MAX_CAUSE_DISTANCE = 3
# An earlier line is the cause if the probability of an error falls by this share without it.
_MIN_FALL = 0.4
_REMEDY = f"run {PROGRAM} models setup reader, with --size for another than small"

Cache = list[NDArray[np.float32]]


@record
class TurnReading:
    """The probable qualities of a line of the robot; meaningless for a line of a person."""

    ordinary: float
    polarity: dict[Polarity, float]
    attributes: dict[Attribute, float]
    held_against: float  # the probability that people hold the line against the robot
    good: float  # the probability that people find the line notably good


@record
class OptionReading:
    """The probable qualities of an option in a scene."""

    possible: float  # the probability that the robot can do it now, with its body and from its position
    fitting: float  # the probability that it fits the words and actions before it


@record
class LineReading:
    """The reading at the end of a line: of this line and of the two lines before it, latest first.

    `cause_distance` is the distance to the earlier line that makes this line an error; 0 if there is none.
    """

    turns: tuple[TurnReading, ...]
    cause_distance: int = 0


def format_scene(scene: str, utterances: Sequence[str]) -> list[str]:
    """Return a scene and the utterances in it as lines."""
    lines = [f"Scene: {scene}", *(text if ": " in text else f"{PERSON}: {text}" for text in utterances)]
    return [f"{' '.join(line.split())}\n" for line in lines]


def format_option(option: str) -> str:
    """Return an option of a scene as a line that ends like a sentence, as the lessons do."""
    text = " ".join(option.split())
    return f"{ROBOT}: {text}{'.' if text[-1:].isalnum() else ''}\n"


def find_latest_reading(readings: Sequence[LineReading], index: int) -> TurnReading:
    """Return the latest reading of a line, which is made at the end of a later line."""
    distance = min(len(readings) - 1 - index, OFFSETS - 1)
    return readings[index + distance].turns[distance]


class TalkReader:
    """The model, which any number of talks in any threads share."""

    def __init__(self, folder: Path, manifest: ReaderManifest, threads: int) -> None:
        """Set the folder; `load` or the first talk reads the files."""
        self.manifest = manifest
        self.max_tokens = manifest.max_tokens
        self._folder = folder
        self._threads = threads
        self._cache_names = [f"{kind}_{layer}" for layer in range(manifest.layers) for kind in ("key", "value")]
        self._load_lock = Lock()
        self._is_loaded = False

    def load(self) -> Self:
        """Load the files at the first call. Raises EngineFailedError if the files cannot be loaded or have changed."""
        # Imported here, because commands that only list models should start fast.
        from tokenizers import Tokenizer  # noqa: PLC0415

        with self._load_lock:
            if self._is_loaded:
                return self
            folder = self._folder
            manifest = read_manifest(folder)
            if manifest != self.manifest:
                raise EngineFailedError(f"{folder}: the reader has changed since it was opened; start again")
            try:
                self._embeddings = np.load(folder / EMBEDDINGS, mmap_mode="r", allow_pickle=False)
                self._tokenizer = Tokenizer.from_str((folder / TOKENIZER).read_text(encoding="utf-8"))
                self._session = open_session(
                    folder / GRAPH,
                    threads=self._threads,
                    providers=(CPU,),
                    memory_arena=False,
                    warm_up=self._make_inputs([0], self.make_empty_cache()),
                )
            except (OSError, ValueError, EngineFailedError) as error:
                raise EngineFailedError(f"{folder}: the reader cannot be loaded: {error}; {_REMEDY}") from error
            self._is_loaded = True
        return self

    @property
    def sha256(self) -> str:
        """The hash of the base model and the adapter."""
        return _compute_digest(self.manifest)

    @classmethod
    def open(cls, folder: Path, *, threads: int = 2, verify: bool = True) -> Self:
        """Open the reader of a folder. Raises EngineFailedError if it is absent, or damaged where `verify` is true."""
        manifest = read_manifest(folder)
        if manifest is None:
            raise EngineFailedError(f"{folder}: there is no reader; {_REMEDY}")
        if damages := find_damages(folder, manifest) if verify else {}:
            reasons = "; ".join(f"{path} {damage}" for path, damage in damages.items())
            raise EngineFailedError(f"{folder}: the reader is damaged: {reasons}; {_REMEDY}")
        return cls(folder, manifest, threads)

    def start(self) -> "ReadTalk":
        """Return an empty talk."""
        return ReadTalk(self.load())

    def make_empty_cache(self) -> Cache:
        """Return keys and values of no tokens."""
        shape = (1, self.manifest.key_heads, 0, self.manifest.head_width)
        return [np.zeros(shape, np.float32) for _ in self._cache_names]

    def tokenize(self, line: str) -> list[int]:
        """Return the tokens of a line; a line of more than half of the context is cut, except its line break."""
        text = " ".join(line.splitlines()).encode(errors="replace").decode() + "\n"
        tokens: list[int] = self._tokenizer.encode(text).ids
        max_count = self.max_tokens // 2
        return tokens if len(tokens) <= max_count else tokens[: max_count - 1] + tokens[-1:]

    def read(self, tokens: Sequence[int], cache: Cache) -> tuple[NDArray[np.float32], Cache]:
        """Return the outputs of the heads at the last token, and a new cache with these tokens.

        Raises EngineFailedError if the outputs are not those of this version, or not finite.
        """
        heads, *new_cache = self._session.run(None, self._make_inputs(tokens, cache))
        if heads.shape[-1] != HEAD_OUTPUTS:
            raise EngineFailedError(f"the reader is of another version of Tactful; {_REMEDY}")
        if not np.isfinite(heads[-1]).all():
            raise EngineFailedError(f"the outputs of the reader are not finite numbers; {_REMEDY}")
        return heads[-1], new_cache

    def _make_inputs(self, tokens: Sequence[int], cache: Cache) -> dict[str, NDArray[Any]]:
        length = cache[0].shape[2] + len(tokens)
        embedded = self._embeddings[list(tokens)].astype(np.float32)[None]
        # Without this, all pages that were ever read count as memory.
        if isinstance(self._embeddings.base, mmap.mmap):
            self._embeddings.base.madvise(mmap.MADV_DONTNEED)
        return {
            "embedded": embedded,
            "last_position": np.array([length - 1], np.int32),
            "length": np.array(length, np.int32),
            **{f"past_{name}": values for name, values in zip(self._cache_names, cache, strict=True)},
        }


def open_reader(name: str) -> TalkReader | None:
    """Open the reader of a size or in a folder, or with AUTO the largest that is set up; None if there is none.

    The environment variable TACTFUL_READER replaces the name AUTO.

    Raises EngineFailedError if the named reader is absent or damaged.
    """
    name = resolve_reader_name(name)
    folder = find_named_folder(name)
    return _open_cached(folder, _compute_digest(read_manifest(folder)), verify=name != AUTO) if folder else None


def _compute_digest(manifest: ReaderManifest | None) -> str:
    return sha256_of([manifest.base_sha256, manifest.adapter_sha256]) if manifest else ""


@lru_cache(maxsize=2)
def _open_cached(folder: Path, digest: str, *, verify: bool) -> TalkReader:
    """Open the reader of a folder once while its digest is the same, because it takes half a gigabyte."""
    return TalkReader.open(folder, verify=verify)


@record
class _ReadLine:
    """A line with its tokens and its reading; `first_index` is the first line of the context of that reading."""

    text: str
    tokens: tuple[int, ...]
    first_index: int
    reading: LineReading


class ReadTalk:
    """The lines of one talk, read in order. A reading of a line depends only on the lines up to it.

    Each line is read in one pass. When the context is full, its oldest half is dropped, and the rest is read again from
    position zero.
    """

    def __init__(self, reader: TalkReader) -> None:
        self._reader = reader
        self._lines: list[_ReadLine] = []
        # The cache holds the lines from `_first_index` up to, but not including, `_end_index`.
        self._first_index = 0
        self._end_index = 0
        self._cache = reader.make_empty_cache()

    @property
    def readings(self) -> list[LineReading]:
        """The reading of each line so far."""
        return [line.reading for line in self._lines]

    def read(self, lines: Sequence[str]) -> list[LineReading]:
        """Return the readings of the lines of a talk, of which only those are read that follow the first change.

        `lines` may lack the beginning of the talk.
        """
        start = self._find_start(lines)
        known_texts = [line.text for line in self._lines[start:]]
        pairs = enumerate(zip(known_texts, lines, strict=False))
        same_count = next((index for index, (text, line) in pairs if text != line), min(len(known_texts), len(lines)))
        self.rewind(start + same_count)
        for line in lines[same_count:]:
            self.append(line)
        return self.readings[start:]

    def _find_start(self, lines: Sequence[str]) -> int:
        """Return the index of the first of `lines` in this talk; 0 if they do not continue it."""
        texts = [line.text for line in self._lines]
        starts = (index for index, text in enumerate(texts) if lines and text == lines[0])
        return next((start for start in starts if start and texts[start:] == list(lines[: len(texts) - start])), 0)

    def append(self, line: str) -> LineReading:
        """Read the next line; if that fails, the talk stays unchanged."""
        self._read_line(line)
        last = self._lines[-1]
        error = last.reading.turns[0].polarity[Polarity.ERROR]
        if line.startswith(f"{ROBOT}: ") and error >= _CAUSE_THRESHOLD:
            try:
                reading = replace(last.reading, cause_distance=self._find_cause_distance(error))
            except BaseException:
                self.rewind(len(self._lines) - 1)
                raise
            self._lines[-1] = replace(last, reading=reading)
        return self._lines[-1].reading

    def _find_cause_distance(self, error: float) -> int:
        """Read the last line again without each earlier line; return the distance of the one that lowers `error` most.

        Returns 0 if none lowers it enough.
        """
        state = self._lines, self._first_index, self._end_index, self._cache
        lines = state[0]
        error_without = {0: (1 - _MIN_FALL) * error}
        try:
            for distance in range(1, min(_MAX_CAUSE_DISTANCE, len(lines) - 1) + 1):
                _, self._first_index, self._end_index, self._cache = state
                self._lines = list(lines)
                self.rewind(len(lines) - 1 - distance)
                for line in lines[-distance:]:
                    self._read_line(line.text)
                error_without[distance] = self._lines[-1].reading.turns[0].polarity[Polarity.ERROR]
        finally:
            self._lines, self._first_index, self._end_index, self._cache = state
        return min(error_without, key=lambda distance: error_without[distance])

    def _read_line(self, line: str) -> NDArray[np.float32]:
        """Append a line, and return the outputs of the heads at its end."""
        tokens = self._reader.tokenize(line)
        first_index = self._choose_first_index(len(tokens))
        if first_index != self._first_index:
            self._restart_cache(first_index)
        for earlier in self._lines[self._end_index :]:
            _, self._cache = self._reader.read(earlier.tokens, self._cache)
            self._end_index += 1
        heads, self._cache = self._reader.read(tokens, self._cache)
        self._end_index += 1
        reading = _make_line_reading(heads)
        self._lines.append(_ReadLine(text=line, tokens=tuple(tokens), first_index=first_index, reading=reading))
        return heads

    def read_options(self, lines: Sequence[str]) -> list[OptionReading]:
        """Read each line as a possible next line, and leave the talk unchanged."""
        line_count = len(self._lines)
        readings = []
        for line in lines:
            readings.append(_make_option_reading(self._read_line(line)))
            self.rewind(line_count)
        return readings

    def rewind(self, line_count: int) -> None:
        """Drop all lines after the first `line_count`."""
        if line_count >= len(self._lines):
            return
        del self._lines[max(line_count, 0) :]
        first_index = self._lines[-1].first_index if self._lines else 0
        if first_index != self._first_index:
            self._restart_cache(first_index)
        elif self._end_index > len(self._lines):
            self._end_index = len(self._lines)
            token_count = sum(len(line.tokens) for line in self._lines[first_index:])
            self._cache = [np.ascontiguousarray(values[:, :, :token_count]) for values in self._cache]

    def _restart_cache(self, first_index: int) -> None:
        """Empty the cache; the next line reads the context again from `first_index` on."""
        self._first_index = first_index
        self._end_index = first_index
        self._cache = self._reader.make_empty_cache()

    def _choose_first_index(self, next_token_count: int) -> int:
        """Return the first line of the context that leaves room for the tokens of the next line."""
        first_index = self._lines[-1].first_index if self._lines else 0
        token_count = sum(len(line.tokens) for line in self._lines[first_index:])
        if token_count + next_token_count > self._reader.max_tokens:
            while token_count > self._reader.max_tokens // 2:
                token_count -= len(self._lines[first_index].tokens)
                first_index += 1
        return first_index


def _make_line_reading(heads: NDArray[np.float32]) -> LineReading:
    rows = heads[: OFFSETS * TURN_OUTPUTS].astype(np.float64).reshape(OFFSETS, -1)
    return LineReading(turns=tuple(_make_turn_reading(row) for row in rows))


def _make_option_reading(heads: NDArray[np.float32]) -> OptionReading:
    possible, fitting = _to_probabilities(heads[-OPTION_OUTPUTS:].astype(np.float64))
    return OptionReading(possible=possible, fitting=fitting)


def _make_turn_reading(outputs: NDArray[np.float64]) -> TurnReading:
    powers = np.exp(outputs[:3] - outputs[:3].max())
    ordinary, error, competence = (round(float(share), _DECIMALS) for share in powers / powers.sum())
    *attributes, held_against, good = _to_probabilities(outputs[3:])
    return TurnReading(
        ordinary=ordinary,
        polarity={Polarity.ERROR: error, Polarity.COMPETENCE: competence},
        attributes=dict(zip(Attribute, attributes, strict=True)),
        held_against=held_against,
        good=good,
    )


def to_log_odds(probability: float) -> float:
    """Return the log odds of a probability, which is taken to be neither impossible nor certain."""
    clipped = min(max(probability, _MIN_PROBABILITY), 1 - _MIN_PROBABILITY)
    return log(clipped / (1 - clipped))


def _to_probabilities(logits: NDArray[np.float64]) -> list[float]:
    return [round(float(value), _DECIMALS) for value in 1 / (1 + np.exp(-logits.clip(-50, 50)))]
