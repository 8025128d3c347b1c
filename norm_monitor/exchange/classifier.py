"""Classify a robot's turn in its exchange, with weights trained on the labelled talks in `talks`."""

import hashlib
import json
import zlib
from functools import lru_cache
from pathlib import Path
from zipfile import BadZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.data_files import shipped_file
from norm_monitor.exchange.exchange_record import Exchange, ExchangePrediction, ExchangeStage
from norm_monitor.exchange.features import ExchangeFeatures

SHIPPED = shipped_file("norm_monitor.exchange", "exchange_weights.npz")
LEARN_ANEW = "learn it anew (python -m calibration.exchange_trainer)"

POLARITIES = (Polarity.ERROR, Polarity.COMPETENCE)
ATTRIBUTES = tuple(Attribute)
# Outputs per turn: a least-squares score per polarity, then the logits of "unmarked" and of each polarity.
MARKS = 2 * len(POLARITIES) + 1
_NEVER = 1e-9
# The score from which a second attribute is named beside the likeliest.
_NAMED_FROM = 0.3
_REMEMBERED = 1_024


class ExchangeClassifier:
    """The weights and their encoder; the most recent predictions are cached."""

    def __init__(self, encoder: SentenceEncoder, path: Path = SHIPPED) -> None:
        """Load an artefact. Raises EngineFailedError if it is unreadable or made with another encoder."""
        try:
            with path.open("rb") as opened:
                if not is_zipfile(opened):  # NumPy's error would suggest how to load it anyway
                    raise BadZipFile("it is no archive of arrays")
                opened.seek(0)
                self.weights_sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
            with np.load(path, allow_pickle=False) as file:
                self.made_from = json.loads(str(file["made_from"]))
                self._features = ExchangeFeatures.from_arrays(encoder, file)
                # One row per answer: the product with the features takes half the time of one column per answer.
                self._weights = [
                    np.ascontiguousarray(file[f"weights_{stage}"].T, np.float32) for stage in ExchangeStage
                ]
                self._logistic = [file[f"logistic_{stage}"] for stage in ExchangeStage]
                self._precision_at_score = [file[f"precision_at_score_{stage}"] for stage in ExchangeStage]
        except (OSError, EOFError, KeyError, ValueError, BadZipFile, zlib.error) as error:
            raise EngineFailedError(f"{path.name} cannot be read ({error}): {LEARN_ANEW}") from error
        if self.made_from["encoder"] != encoder.weights_sha256:
            raise EngineFailedError(f"{path.name} was learnt with another sentence encoder: {LEARN_ANEW}")
        self._remembered = lru_cache(_REMEMBERED)(self._read)

    def read(self, exchange: Exchange) -> ExchangePrediction:
        """Classify the turn at the exchange's stage."""
        return self._remembered(exchange)

    def forget(self) -> None:
        """Clear the cache of exchanges."""
        self._remembered.cache_clear()

    def _read(self, exchange: Exchange) -> ExchangePrediction:
        stage = exchange.stage
        scores = self._weights[stage] @ self._features.of(exchange, stage)
        probabilities = probability(evidence(scores[None, :MARKS]), self._logistic[stage])[0]
        precision_at_score = [
            float(np.interp(at, np.linspace(0, 1, len(shares)), shares))
            for at, shares in zip(probabilities, self._precision_at_score[stage], strict=True)
        ]
        about = scores[MARKS:].reshape(len(POLARITIES), len(ATTRIBUTES))
        return ExchangePrediction(
            probability=dict(zip(POLARITIES, map(float, probabilities), strict=True)),
            precision_at_score=dict(zip(POLARITIES, precision_at_score, strict=True)),
            attributes={polarity: top_classes(row) for polarity, row in zip(POLARITIES, about, strict=True)},
        )


def evidence(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the evidence of each turn and polarity: least-squares scores first, then log odds."""
    squares, shares = scores[:, : len(POLARITIES)], softmax(scores[:, len(POLARITIES) :])[:, 1:]
    odds = np.log(shares + _NEVER) - np.log(1 - shares + _NEVER)
    return np.stack([squares, odds, np.ones_like(odds)], axis=-1).astype(np.float64)


def probability(found: NDArray[np.float64], logistic: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of each turn and polarity, from one logistic curve per polarity."""
    return np.asarray(1 / (1 + np.exp(-(found * logistic).sum(axis=-1))))


def softmax(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return probabilities along the last axis."""
    shares = np.exp(scores - scores.max(axis=1, keepdims=True)).astype(np.float64)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def top_classes(scores: NDArray[np.floating]) -> tuple[Attribute, ...]:
    """Return the likeliest attribute, and others that are likely enough."""
    order = np.argsort(-scores, kind="stable")
    return tuple(ATTRIBUTES[at] for rank, at in enumerate(order) if rank == 0 or scores[at] >= _NAMED_FROM)
