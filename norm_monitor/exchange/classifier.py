"""Classify a robot's turn in its exchange, with weights learnt from labelled talks and from labelled encounters."""

import hashlib
import json
import zlib
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.unpacking import check_archive
from norm_monitor.exchange.exchange_record import Exchange, ExchangePrediction, ExchangeStage
from norm_monitor.exchange.features import ExchangeFeatures

SHIPPED = shipped_file("norm_monitor.exchange", "exchange_weights.npz")
LEARN_ANEW = "learn it anew (python -m calibration.exchange_trainer)"
SEEN = shipped_file("norm_monitor.exchange", "encounter_weights.npz")
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


def probability(found: NDArray[np.float64], logistic: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of each turn and polarity, from one logistic curve per polarity."""
    return np.asarray(1 / (1 + np.exp(-(found * logistic).sum(axis=-1))))


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
