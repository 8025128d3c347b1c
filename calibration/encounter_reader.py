"""Train how a turn reads on the labelled encounters themselves: ridge regression on the features of exchanges.

The talks are many and written turn by turn; the encounters are few, and closer to what a robot meets. Both readings
are facts of a unit. Features outnumber turns, so the solver works in the dual: one coefficient a turn.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.flag import Attribute, Polarity
from norm_monitor.context.exchange import POLARITIES, Exchange, ExchangeFeatures, ExchangeStage

RIDGE, ATTRIBUTE_RIDGE = 1.0, 0.5
_FEWEST = 20  # turns of a polarity, to learn its attributes from
_BLOCK = 2_048
OUTPUTS = len(POLARITIES) * (1 + len(Attribute))

Matrix = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class LabelledTurns:
    """The robot's turns in their exchanges, with their labels."""

    exchanges: Sequence[Exchange]
    marked: Matrix  # one column a polarity
    named: Matrix  # one column an attribute

    @classmethod
    def of(cls, rows: Sequence[tuple[Exchange, Polarity | None, tuple[Attribute, ...]]]) -> "LabelledTurns":
        """Collect exchanges with their polarity and attributes."""
        return cls(
            exchanges=[exchange for exchange, _, _ in rows],
            marked=np.array(
                [[polarity is candidate for candidate in POLARITIES] for _, polarity, _ in rows], float
            ).reshape(-1, 2),
            named=np.array([[attribute in named for attribute in Attribute] for *_, named in rows], float).reshape(
                -1, 7
            ),
        )


class EncounterReader:
    """The likeness of all turns by stage, from which a reader is fitted on any part of them."""

    def __init__(self, turns: LabelledTurns, features: ExchangeFeatures) -> None:
        """Compare all turns with each other; takes seconds for thousands of them."""
        self.turns = turns
        last = max(ExchangeStage)
        size = features.of(turns.exchanges[0], last).size
        self._features = np.empty((len(turns.exchanges), size), np.float32)
        for row, exchange in zip(self._features, turns.exchanges, strict=True):
            row[:] = features.of(exchange, last)
        self._ends = [features.of(turns.exchanges[0], stage).size for stage in ExchangeStage]
        self._alike: list[NDArray[np.float32]] = []
        products = np.zeros((len(turns.exchanges),) * 2, np.float32)
        for begin, end in zip([0, *self._ends], self._ends, strict=False):
            _add_products(products, self._features[:, begin:end])
            self._alike.append(products / float(np.diag(products).mean()))
        self._scales = [float((self._features[:, :end] ** 2).sum(axis=1).mean()) for end in self._ends]

    def predict(self, within: Places, out: Places, stage_of_all: ExchangeStage | None = None) -> Matrix:
        """Return how turns read, each at its own stage or all at one, for a reader that was fitted on others."""
        predicted = np.zeros((len(out), OUTPUTS))
        own = [self.turns.exchanges[place].stage for place in out]
        stages = np.array(own if stage_of_all is None else [stage_of_all] * len(out))
        for stage in ExchangeStage:
            rows = out[stages == stage]
            if rows.size:
                predicted[stages == stage] = sum(
                    self._alike[stage][np.ix_(rows, places)] @ counts + base
                    for places, counts, base in self._solved(stage, within)
                )
        return predicted

    def weights(self, within: Places) -> dict[str, NDArray[np.float32]]:
        """Return the weights by stage of a reader that is fitted on these turns; the last row is the base."""
        arrays = {}
        for stage in ExchangeStage:
            features = self._features[:, : self._ends[stage]]
            weights = np.zeros((self._ends[stage] + 1, OUTPUTS), np.float32)
            for places, counts, base in self._solved(stage, within):
                weights[:-1] += features[places].T @ counts.astype(np.float32) / self._scales[stage]
                weights[-1] += base
            arrays[f"weights_{stage}"] = weights
        return arrays

    def _solved(self, stage: ExchangeStage, within: Places) -> Iterator[tuple[Places, Matrix, Matrix]]:
        """Yield for the polarities, and for the attributes of each, the turns, their coefficients and the base."""
        width = len(Attribute)
        yield within, *self._ridge(stage, within, self.turns.marked[within], RIDGE, 0)
        for at in range(len(POLARITIES)):
            rows = within[self.turns.marked[within, at] > 0]
            if len(rows) >= _FEWEST:
                first = len(POLARITIES) + at * width
                yield rows, *self._ridge(stage, rows, self.turns.named[rows], ATTRIBUTE_RIDGE, first)

    def _ridge(
        self, stage: ExchangeStage, rows: Places, aims: Matrix, ridge: float, first: int
    ) -> tuple[Matrix, Matrix]:
        base = aims.mean(axis=0)
        system = self._alike[stage][np.ix_(rows, rows)].astype(np.float64) + ridge * np.eye(len(rows))
        counts, bases = np.zeros((len(rows), OUTPUTS)), np.zeros(OUTPUTS)
        counts[:, first : first + aims.shape[1]] = np.linalg.solve(system, aims - base)
        bases[first : first + aims.shape[1]] = base
        return counts, bases


def write_reader(weights: dict[str, NDArray[np.float32]], encoder: SentenceEncoder, made_from: str, path: Path) -> None:
    """Write the weights of a reader beside the classifier that adds them to its prediction."""
    sources = json.dumps({"encounters": made_from, "encoder": encoder.weights_sha256})
    halves = {name: values.astype(np.float16) for name, values in weights.items()}
    np.savez_compressed(path, made_from=np.array(sources), **halves)  # type: ignore[arg-type]


def _add_products(alike: NDArray[np.float32], features: NDArray[np.float32]) -> None:
    """Add the products of all rows in blocks: one large product needs twice the memory."""
    for begin in range(0, len(features), _BLOCK):
        end = begin + _BLOCK
        alike[begin:end] += features[begin:end] @ features.T
