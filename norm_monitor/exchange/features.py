"""Features of an exchange: text embeddings, products of embeddings, terms and plain facts."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import log

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_monitor.exchange.exchange_record import Exchange, ExchangeStage

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
        self._places = [{term: at for at, term in enumerate(known)} for known in rarities]

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
        vectors = [next(encoded) if text else self._nothing for text in texts]
        short = [vector @ self._axes for vector in vectors]
        known: list[NDArray[np.floating] | list[float]] = [[1.0, exchange.opening]]
        for kind, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
            meet = (pair for pair in _PAIRS if max(pair) == kind)
            products = (_PRODUCT_SHARE * np.outer(short[one], short[other]).ravel() for one, other in meet)
            facts = [float(vectors[_SAID] @ vector), float(bool(text)), min(len(text), LONGEST_LEARNT) / 100]
            known += [vector, *products, self._words(kind, text), facts]
        return np.concatenate(known).astype(np.float32)

    @property
    def _nothing(self) -> Vector:
        return np.zeros(len(self._axes), np.float32)

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
