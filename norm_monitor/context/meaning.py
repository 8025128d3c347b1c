"""Classify the meaning of sentences with linear probes, fitted to examples over sentence embeddings."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import copy
from typing import Protocol, Self

import numpy as np
from pydantic import Field, model_validator

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.sentences.mapped_arrays import load_mapped_arrays
from norm_core.engines.sentences.sentence_encoder import COSINE_DECIMALS, SentenceEncoder, Vectors
from norm_core.engines.talk_reader import LineReading, ReadTalk, TalkReader, open_reader
from norm_core.files.data_files import shipped_file
from norm_core.models.reader_folder import AUTO
from norm_core.records.json_codec import sha256_of
from norm_core.records.record import record
from norm_core.runtime.config import Config, load_config
from norm_monitor.context.exchange import Exchange, ExchangeClassifier, ExchangePrediction
from norm_monitor.context.language import forget_texts
from norm_monitor.context.wording import clauses, forget_words, is_chinese, sentences

_log = logging.getLogger(__name__)
SHIPPED = shipped_file("norm_monitor.context", "concepts.yaml")
# Regularization, which keeps a probe from fitting its few examples exactly.
RIDGE = 0.005
# The cosine from which a sentence counts as identical with an example.
VERBATIM = 0.86
REMEMBERED, _MATCHES_REMEMBERED = 2_048, 8_192
# Raise it when probes are fitted in another way, so that cached ones are not used.
_PROBES_VERSION = "1"
_IS, _IS_NOT, _IS_ANOTHER, _MAY_BE = 1, -1, -2, 0
# The targets in a concept's probe: its examples, its own negatives, and the examples of other concepts.
_SHARES = {_IS: 0.5, _IS_NOT: 0.2, _IS_ANOTHER: 0.3}


def cached_vectors(encoder: SentenceEncoder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of texts, a row each."""
    return cached_array([encoder.weights_sha256, *texts], lambda: encoder.encode(texts))


def cached_array(made_of: Sequence[object], compute: Callable[[], Vectors]) -> Vectors:
    """Return the cached array for these inputs, or compute it."""
    return load_mapped_arrays(f"{sha256_of(made_of)[:16]}.npy", lambda: {"array": compute()})["array"]


class Concept(Config):
    """Positive and negative examples of a meaning, in any language."""

    nearness: float = Field(
        default=0.2, gt=-1, lt=1, description="the threshold of the probe, which scores examples at about 1 and -1"
    )
    clauses: bool = False  # match single clauses too, because a ritual may be one clause
    kin: tuple[str, ...] = ()  # concepts that may share a sentence; their examples are not negatives
    of: tuple[str, ...] = ()  # kinds of this concept; their examples are its own
    like: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()


class Concepts(Config):
    """The versioned set of concepts."""

    version: str = Field(min_length=1)
    concepts: dict[str, Concept]

    @model_validator(mode="after")
    def _check_names(self) -> "Concepts":
        for name, concept in self.concepts.items():
            if unknown := {*concept.kin, *concept.of} - set(self.concepts):
                raise ValueError(f"{name} names {', '.join(sorted(unknown))}, which is no concept here")
            if not concept.like and not concept.of:
                raise ValueError(f"{name} has no example")
        return self

    @classmethod
    def shipped(cls) -> "Concepts":
        """Load the concepts that the package ships."""
        return load_config(cls, SHIPPED)


@record
class Match:
    """The sentence of a text that is nearest to a concept."""

    sentence: str
    nearness: float
    threshold: float

    def __bool__(self) -> bool:
        """Whether the sentence is near enough to count as the concept."""
        return self.nearness >= self.threshold


class WordMatcher(Protocol):
    """The meaning of words, as a cue compares it."""

    def match(self, text: str, concept: str) -> Match:
        """Match the text's nearest sentence with the concept; the match is true if near enough."""

    def similarity(self, text: str, other: str) -> float:
        """Return the cosine of two texts, from -1 to 1."""


class TextMatcher(WordMatcher, Protocol):
    """All that reads words for the monitor; a test may replace it."""

    def prepare(self, text: str) -> None:
        """Encode a text ahead, so that no window waits for that."""

    def read(self, exchange: Exchange) -> ExchangePrediction:
        """Classify a robot turn in its exchange."""

    @property
    def has_reader(self) -> bool:
        """Whether a talk reader was loaded."""

    def read_talk(self, lines: Sequence[str]) -> Sequence[LineReading]:
        """Return the talk reader's answers about each line; nothing without a reader, or where it failed."""

    def forget(self) -> None:
        """Clear the cache of all texts so far."""

    def sha256(self) -> str:
        """Compute the digest of the encoder, the concepts and the weights."""


class UnreadLanguageMatcher:
    """Words in a language that is not read: they match nothing and resemble nothing."""

    def match(self, text: str, concept: str) -> Match:
        """Match nothing."""
        return Match(sentence="", nearness=-1.0, threshold=1.0)

    def similarity(self, text: str, other: str) -> float:
        """Return no likeness."""
        return 0.0


class EncoderMatcher:
    """Compare meanings with a sentence encoder and one linear probe per concept, fitted against all other examples."""

    def __init__(self, encoder: SentenceEncoder, concepts: Concepts, talk_reader: TalkReader | None = None) -> None:
        """Encode the concepts' examples, or take them from the cache, and fit the probes."""
        self._talk_reader = talk_reader
        self._talk: ReadTalk | None = None
        self.reader_failure = ""  # why the talk reader stopped
        self._encoder, self._concepts = encoder, concepts.concepts
        rows = [
            (example, name, liked)
            for name, concept in self._concepts.items()
            for liked, examples in ((True, concept.like), (False, concept.unlike))
            for example in examples
        ]
        self._vectors = cached_vectors(encoder, [_plain(example) for example, _, _ in rows])
        of, liked = np.array([name for _, name, _ in rows]), np.array([liked for _, _, liked in rows])
        self._kinds = np.stack([_kinds_for(name, concept, of, liked) for name, concept in self._concepts.items()])
        self._probes = cached_array(
            [_PROBES_VERSION, np.__version__, RIDGE, *_SHARES.values(), encoder.weights_sha256, concepts.sha256()],
            lambda: _fit_probes(self._vectors, self._kinds),
        )
        self._known: OrderedDict[str, dict[str, float]] = OrderedDict()
        self._matches: dict[tuple[str, str], Match] = {}
        self._reader = ExchangeClassifier(encoder)
        readers = [self._reader.weights_sha256, *([talk_reader.sha256] if talk_reader else [])]
        self._sha256 = sha256_of([encoder.weights_sha256, concepts.sha256(), *readers])

    @classmethod
    def shipped(cls, reader: str = AUTO, *, remembered: int | None = None) -> "EncoderMatcher":
        """Return the packaged encoder with the shipped examples, and a talk reader if it is set up.

        Raises EngineFailedError if a talk reader that is named cannot be loaded.
        """
        encoder = SentenceEncoder() if remembered is None else SentenceEncoder(cache_size=remembered)
        talk_reader = open_reader(reader)
        return cls(encoder, Concepts.shipped(), talk_reader and talk_reader.load())

    def beside(self) -> Self:
        """Return a matcher with the same models and its own talk, for another thread."""
        other = copy(self)
        vars(other).update(_talk=None, _known=OrderedDict(), _matches={})
        return other

    def prepare(self, text: str) -> None:
        """Encode all sentences of a new text at once; one by one takes three times as long."""
        whole = sentences(text)
        parts = [*whole, *(clause for part in whole for clause in clauses(part))]
        if any(part not in self._known for part in parts):
            self._encoder.encode([text, *map(_plain, (text, *parts))])

    def match(self, text: str, concept: str) -> Match:
        """Return the sentence or clause of `text` nearest to a concept, with that concept's threshold."""
        if (text, concept) not in self._matches:
            if len(self._matches) >= _MATCHES_REMEMBERED:
                self._matches.clear()
            self._matches[text, concept] = self._nearest(text, concept)
        return self._matches[text, concept]

    def _nearest(self, text: str, concept: str) -> Match:
        examples = self._concepts[concept]
        self.prepare(text)
        parts = sentences(text)
        if examples.clauses:
            parts += tuple(clause for part in parts for clause in clauses(part))
        nearest = max(parts, key=lambda part: self._nearness(part)[concept], default="")
        return Match(sentence=nearest, nearness=self._nearness(nearest)[concept], threshold=examples.nearness)

    def similarity(self, text: str, other: str) -> float:
        """Return the cosine of two texts' vectors."""
        vectors = self._encoder.encode([_plain(text), _plain(other)])
        return round(float(vectors[0] @ vectors[1]), COSINE_DECIMALS)

    def read(self, exchange: Exchange) -> ExchangePrediction:
        """Classify how the robot's turn reads in its exchange."""
        return self._reader.read(exchange)

    @property
    def has_reader(self) -> bool:
        """Whether a talk reader was loaded."""
        return self._talk_reader is not None

    def read_talk(self, lines: Sequence[str]) -> Sequence[LineReading]:
        """Return what the talk reader makes of each line; nothing without one, or once it failed."""
        if self._talk_reader is None or self.reader_failure:
            return ()
        try:
            self._talk = self._talk or self._talk_reader.start()
            return self._talk.read(lines)
        except EngineFailedError as error:
            _log.error("the talk reader stopped, and talk is read by sentences alone: %s", error)
            self.reader_failure, self._talk = str(error), None
            return ()

    def sha256(self) -> str:
        """Return the digest of the encoder, the concepts and the classifier."""
        return self._sha256

    def forget(self) -> None:
        """Clear every cache of words."""
        self._known.clear()
        self._matches.clear()
        self._reader.forget()
        self._encoder.forget()
        self._talk = None
        forget_words()
        forget_texts()

    def _nearness(self, sentence: str) -> dict[str, float]:
        """Return the nearness to every concept's probe."""
        if sentence not in self._known:
            self._known[sentence] = self._measure_nearness(sentence)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return self._known[sentence]

    def _measure_nearness(self, sentence: str) -> dict[str, float]:
        if not sentence.strip():
            return dict.fromkeys(self._concepts, -1.0)
        vector = self._encoder.encode([_plain(sentence)])[0]
        scores = np.append(vector, 1.0) @ self._probes
        likeness = np.round(self._vectors @ vector, COSINE_DECIMALS)
        near = np.flatnonzero(likeness >= VERBATIM)
        if near.size:  # a probe may score its own examples low
            own, others = (
                np.where(of_kind, likeness[near], -1.0).max(axis=1)
                for of_kind in (self._kinds[:, near] == _IS, self._kinds[:, near] < 0)
            )
            scores = np.where((own >= VERBATIM) & (own >= others), np.maximum(scores, own), scores)
        return {name: round(float(score), COSINE_DECIMALS) for name, score in zip(self._concepts, scores, strict=True)}


def _kinds_for(name: str, concept: Concept, of: np.ndarray, liked: np.ndarray) -> np.ndarray:
    """Return the role of each example (its concept, positive or negative) in the probe of concept `name`."""
    own, kin = np.isin(of, (name, *concept.of)), np.isin(of, concept.kin)
    return np.where(own, np.where(liked, _IS, _IS_NOT), np.where(kin & liked, _MAY_BE, _IS_ANOTHER)).astype(np.int8)


def _fit_probes(vectors: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Fit the probes of all concepts; return a column for each."""
    with_offset = np.append(vectors, np.ones((len(vectors), 1)), axis=1).astype(np.float32)
    products = with_offset.T @ with_offset
    return np.column_stack([_probe(with_offset, kind, products) for kind in kinds])


def _probe(vectors: np.ndarray, kinds: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Fit weights and offset by least squares; `products` is computed once from `vectors` for all probes."""
    weights = {kind: share / max(int((kinds == kind).sum()), 1) for kind, share in _SHARES.items()}
    # Most examples belong to other concepts: subtract the rest from the whole.
    shares = np.select([kinds == kind for kind in weights], list(weights.values()), 0.0).astype(vectors.dtype)
    own_vectors, own_shares = vectors[kinds != _IS_ANOTHER], shares[kinds != _IS_ANOTHER]
    system = (
        weights[_IS_ANOTHER] * products + (own_vectors * (own_shares - weights[_IS_ANOTHER])[:, None]).T @ own_vectors
    )
    aim = vectors.T @ (shares * np.sign(kinds).astype(vectors.dtype))
    solution: np.ndarray = np.linalg.solve(system + RIDGE * np.eye(len(system), dtype=vectors.dtype), aim)
    return solution


def _plain(sentence: str) -> str:
    """Normalize the capitals and closing punctuation of a recognizer, but not the question mark."""
    return sentence.strip() if is_chinese(sentence) else sentence.strip().rstrip(".!").strip()
