"""Classify a robot's turn in its exchange, with weights learnt from labelled talks and from labelled encounters."""

import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from math import log
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from norm_core.decoding.unpacking import check_archive
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.files.data_files import shipped_file
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record


class ExchangeStage(IntEnum):
    """How much is known of what follows the turn."""

    SAID = 0
    ANSWERED = 1  # a person answered
    GONE_ON = 2  # the robot continued


@record
class Exchange:
    """The words of an exchange; a text is empty if it was not said, or not yet."""

    before: str  # what people said since the robot's previous turn
    said: str
    after: str = ""
    then: str = ""
    earlier: str = ""  # the robot's previous turn
    opening: bool = False  # the robot's first turn

    @property
    def stage(self) -> ExchangeStage:
        """How much is known of what follows the turn."""
        if self.then:
            return ExchangeStage.GONE_ON
        return ExchangeStage.ANSWERED if self.after else ExchangeStage.SAID


@record
class ExchangePrediction:
    """How a turn reads, as learnt from talks: the probability of a coder's mark by polarity, and the attributes.

    `seen` and `seen_scores` are the same as learnt from the encounters: least-squares scores, about 0 to 1.
    """

    probability: Mapping[Polarity, float]
    # About 1 for an attribute that a coder would name, else 0.
    scores: Mapping[Polarity, Mapping[Attribute, float]] = field(default_factory=dict)
    seen: Mapping[Polarity, float] = field(default_factory=dict)
    seen_scores: Mapping[Polarity, Mapping[Attribute, float]] = field(default_factory=dict)


# One turn in a hundred in the talks is longer, mostly as an example of a monologue: do not extrapolate.
LONGEST_LEARNT = 120
_SAID, _BEFORE, _EARLIER, _AFTER, _THEN = range(5)
# Pairs of embeddings to multiply: the same words are right after one turn and wrong after another.
_PAIRS = ((_SAID, _SAID), (_BEFORE, _SAID), (_EARLIER, _SAID), (_SAID, _AFTER), (_AFTER, _AFTER))
# The scale of products and terms beside the embeddings, whose length is one.
_PRODUCT_SHARE = 8**0.5
_WORD_SHARES = {_SAID: 2.0, _BEFORE: 2**0.5, _EARLIER: 2**0.5, _AFTER: 2.0, _THEN: 2**0.5}
_AXES = 64
_FEWEST_TEXTS = 10
_TERM = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|[?!.,]")

Vector = NDArray[np.float32]


class ExchangeFeatures:
    """Features learnt from texts without labels: principal axes of the embeddings, and the known terms."""

    def __init__(self, encoder: SentenceEncoder, axes: Vector, rarities: Sequence[Mapping[str, float]]) -> None:
        self._encoder, self._axes, self._rarities = encoder, axes, rarities
        self._places = [{term: at for at, term in enumerate(rarity)} for rarity in rarities]

    @classmethod
    def fit(cls, encoder: SentenceEncoder, exchanges: Iterable[Exchange]) -> "ExchangeFeatures":
        """Learn the axes and terms from the texts of exchanges."""
        texts = [_texts(exchange, ExchangeStage.GONE_ON) for exchange in exchanges]
        vectors = encoder.encode(sorted({text for row in texts for text in row if text}))
        axes = np.linalg.eigh(vectors.T @ vectors)[1][:, -_AXES:]
        return cls(encoder, axes.astype(np.float32), [_rarities(kind) for kind in zip(*texts, strict=True)])

    @classmethod
    def from_arrays(cls, encoder: SentenceEncoder, file: Mapping[str, NDArray[np.generic]]) -> "ExchangeFeatures":
        """Load the features that `to_arrays` returned."""
        return cls(encoder, file["axes"].astype(np.float32), json.loads(str(file["rarities"])))

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the features as arrays for `np.savez`."""
        return {"axes": self._axes, "rarities": np.array(json.dumps(self._rarities, ensure_ascii=False))}

    def of(self, exchange: Exchange, stage: ExchangeStage) -> Vector:
        """Return the features of an exchange at a stage; they start with those of the stage before."""
        texts = _texts(exchange, stage)
        encoded = iter(self._encoder.encode([text for text in texts if text]))
        nothing = np.zeros(len(self._axes), np.float32)
        vectors = [next(encoded) if text else nothing for text in texts]
        short = [vector @ self._axes for vector in vectors]
        columns: list[NDArray[np.floating] | list[float]] = [[1.0, exchange.opening]]
        for kind, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
            meet = (pair for pair in _PAIRS if max(pair) == kind)
            products = (_PRODUCT_SHARE * np.outer(short[kind], short[other]).ravel() for kind, other in meet)
            facts = [float(vectors[_SAID] @ vector), float(bool(text)), min(len(text), LONGEST_LEARNT) / 100]
            columns += [vector, *products, self._words(kind, text), facts]
        return np.concatenate(columns).astype(np.float32)

    def _words(self, kind: int, text: str) -> Vector:
        """Return the known terms of a text of this kind, weighted by rarity."""
        vector = np.zeros(len(self._places[kind]), np.float32)
        for term in set(_terms(text)) & self._places[kind].keys():
            vector[self._places[kind][term]] = self._rarities[kind][term]
        length = float(np.linalg.norm(vector))
        return _WORD_SHARES[kind] / length * vector if length else vector


def _texts(exchange: Exchange, stage: ExchangeStage) -> tuple[str, ...]:
    return (exchange.said, exchange.before, exchange.earlier, exchange.after, exchange.then)[: 3 + stage]


def _terms(text: str) -> Iterator[str]:
    """Return words, marks and bigrams."""
    words = _TERM.findall(text.lower())
    yield from words
    yield from map(" ".join, pairwise(words))


def _rarities(texts: Sequence[str]) -> dict[str, float]:
    """Return the rarity of each term that is frequent enough to learn from."""
    there = [text for text in texts if text]
    counts = Counter(term for text in there for term in set(_terms(text)))
    return {term: round(log(len(there) / count), 2) for term, count in sorted(counts.items()) if count >= _FEWEST_TEXTS}


SHIPPED = shipped_file("norm_monitor.context", "exchange_weights.npz")
LEARN_ANEW = "learn it anew (python -m calibration.exchange_trainer)"
SEEN = shipped_file("norm_monitor.context", "encounter_weights.npz")
_FIT_ANEW = "fit it anew (python -m calibration.monitor --write)"

POLARITIES = (Polarity.ERROR, Polarity.COMPETENCE)
ATTRIBUTES = tuple(Attribute)
# Outputs per turn: a least-squares score per polarity, then the logits of "unmarked" and of each polarity.
MARKS = 2 * len(POLARITIES) + 1
_NEVER = 1e-9
_REMEMBERED = 1_024


class ExchangeClassifier:
    """The weights and their encoder; the most recent predictions are cached."""

    def __init__(self, encoder: SentenceEncoder, path: Path = SHIPPED, seen: Path | None = SEEN) -> None:
        """Load what was learnt from talks, and from encounters if `seen` names it.

        Raises EngineFailedError if a file is unreadable or made with another encoder.
        """
        talks, talks_sha256 = _read_weights(path, encoder, LEARN_ANEW)
        encounters, encounters_sha256 = _read_weights(seen, encoder, _FIT_ANEW) if seen else ({}, "")
        self.made_from = json.loads(str(talks["made_from"]))
        self.weights_sha256 = hashlib.sha256((talks_sha256 + encounters_sha256).encode()).hexdigest()
        try:
            self.features = ExchangeFeatures.from_arrays(encoder, talks)
            # One row per answer: the product with the features takes half the time of one column per answer.
            self._weights, self._seen = (
                [np.ascontiguousarray(file[f"weights_{stage}"].T, np.float32) for stage in ExchangeStage]
                if file
                else []
                for file in (talks, encounters)
            )
            self._logistic = [talks[f"logistic_{stage}"].astype(np.float64) for stage in ExchangeStage]
        except (KeyError, ValueError) as error:
            raise EngineFailedError(f"{path.name} cannot be read ({error}): {LEARN_ANEW}") from error
        self._remembered = lru_cache(_REMEMBERED)(self._read)

    def read(self, exchange: Exchange) -> ExchangePrediction:
        """Classify the turn at the exchange's stage."""
        return self._remembered(exchange)

    def forget(self) -> None:
        """Clear the cache of exchanges."""
        self._remembered.cache_clear()

    def _read(self, exchange: Exchange) -> ExchangePrediction:
        stage = exchange.stage
        features = self.features.of(exchange, stage)
        scores = self._weights[stage] @ features
        probabilities = probability(evidence(scores[None, :MARKS]), self._logistic[stage])[0]
        prediction = ExchangePrediction(
            probability=dict(zip(POLARITIES, map(float, probabilities), strict=True)),
            scores=_by_attribute(scores[MARKS:]),
        )
        if not self._seen:
            return prediction
        seen = self._seen[stage][:, :-1] @ features + self._seen[stage][:, -1]
        return replace(
            prediction,
            seen=dict(zip(POLARITIES, map(float, seen[: len(POLARITIES)]), strict=True)),
            seen_scores=_by_attribute(seen[len(POLARITIES) :]),
        )


def evidence(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the evidence of each turn and polarity: least-squares scores first, then log odds."""
    squares, shares = scores[:, : len(POLARITIES)], softmax(scores[:, len(POLARITIES) :])[:, 1:]
    odds = np.log(shares + _NEVER) - np.log(1 - shares + _NEVER)
    return np.stack([squares, odds, np.ones_like(odds)], axis=-1).astype(np.float64)


def probability(evidence_rows: NDArray[np.float64], logistic: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of each turn and polarity, from one logistic curve per polarity."""
    return np.asarray(1 / (1 + np.exp(-(evidence_rows * logistic).sum(axis=-1))))


def softmax(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return probabilities along the last axis."""
    shares = np.exp(scores - scores.max(axis=1, keepdims=True)).astype(np.float64)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _read_weights(path: Path, encoder: SentenceEncoder, remedy: str) -> tuple[dict[str, NDArray[np.generic]], str]:
    """Return the arrays of a file, and its digest."""
    try:
        check_archive(path)  # NumPy's error would suggest how to load anything else anyway
        with path.open("rb") as opened:
            sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        made_with = json.loads(str(arrays["made_from"]))["encoder"]
    except (OSError, EOFError, KeyError, ValueError, BadZipFile, zlib.error) as error:
        raise EngineFailedError(f"{path.name} cannot be read ({error}): {remedy}") from error
    if made_with != encoder.weights_sha256:
        raise EngineFailedError(f"{path.name} was learnt with another sentence encoder: {remedy}")
    return arrays, sha256


def _by_attribute(scores: NDArray[np.floating]) -> dict[Polarity, dict[Attribute, float]]:
    rows = scores.reshape(len(POLARITIES), len(ATTRIBUTES))
    return {
        polarity: dict(zip(ATTRIBUTES, map(float, row), strict=True))
        for polarity, row in zip(POLARITIES, rows, strict=True)
    }
