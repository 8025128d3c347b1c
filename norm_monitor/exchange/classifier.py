"""Reads how a turn of the robot's goes with what was said around it, by weights learnt from the talks in `talks`."""

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
# Of each turn: a score a polarity by least squares, then the logits of nothing marked, and of each polarity.
MARKS = 2 * len(POLARITIES) + 1
_NEVER = 1e-9
# From which score on an attribute is named besides the likeliest.
_NAMED_FROM = 0.3
_REMEMBERED = 1_024


class ExchangeClassifier:
    """Weights and the encoder that they were learnt with; the last so many readings are remembered."""

    def __init__(self, encoder: SentenceEncoder, path: Path = SHIPPED) -> None:
        try:
            with path.open("rb") as opened:
                if not is_zipfile(opened):  # of which NumPy would say how to load it all the same
                    raise BadZipFile("it is no archive of arrays")
                opened.seek(0)
                self.weights_sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
            with np.load(path, allow_pickle=False) as file:
                self.made_from = json.loads(str(file["made_from"]))
                self._features = ExchangeFeatures.kept(encoder, file)
                # A row an answer: its product with the features takes half of the time that a column each takes.
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
        """How the turn reads at the exchange's stage."""
        return self._remembered(exchange)

    def forget(self) -> None:
        """Keeps nothing of the exchanges that were read until now."""
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
    """For each turn and polarity what speaks for it: the first scores by least squares, and log odds from the rest."""
    squares, shares = scores[:, : len(POLARITIES)], softmax(scores[:, len(POLARITIES) :])[:, 1:]
    odds = np.log(shares + _NEVER) - np.log(1 - shares + _NEVER)
    return np.stack([squares, odds, np.ones_like(odds)], axis=-1).astype(np.float64)


def probability(found: NDArray[np.float64], logistic: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each turn and polarity, by one logistic curve a polarity."""
    return np.asarray(1 / (1 + np.exp(-(found * logistic).sum(axis=-1))))


def softmax(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    shares = np.exp(scores - scores.max(axis=1, keepdims=True)).astype(np.float64)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def top_classes(scores: NDArray[np.floating]) -> tuple[Attribute, ...]:
    """The likeliest attribute, and those besides that are likely enough."""
    order = np.argsort(-scores, kind="stable")
    return tuple(ATTRIBUTES[at] for rank, at in enumerate(order) if rank == 0 or scores[at] >= _NAMED_FROM)
