"""What the options' wording alone gives away: a classifier fitted on labels. It is never evidence of perception."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from action_selector.likeness import Sentences
from sim_replays.suites.egogapbench import Item, Label

FOLDS = 5
_RIDGE = 1.0

Matrix = NDArray[np.float64]


def predict(items: Sequence[Item], labels: Sequence[Label], sentences: Sentences) -> dict[str, int]:
    """The option picked for each item by a model fitted on the options of other images' items alone.

    Each option is its meaning beside that of the item's other options, so that it sees which of them is the odd one.
    """
    features = [_features(item, sentences) for item in items]
    folds = np.array([_fold(item.image) for item in items])
    picked: dict[str, int] = {}
    for fold in range(FOLDS):
        known = [place for place in range(len(items)) if folds[place] != fold]
        rows = np.concatenate([features[place] for place in known])
        right = np.concatenate([np.eye(len(features[place]))[labels[place].correct] for place in known])
        weights, middle = _fitted(rows, right)
        for place in map(int, np.flatnonzero(folds == fold)):
            picked[items[place].uid] = int(np.argmax((features[place] - middle) @ weights))
    return picked


def _features(item: Item, sentences: Sentences) -> Matrix:
    vectors = sentences.encode(item.options).astype(float)
    count = len(vectors)
    rest = (vectors.sum(axis=0) - vectors) / (count - 1)
    return np.hstack([vectors, vectors - rest, (vectors * rest).sum(axis=1, keepdims=True)])


def _fitted(rows: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
    """Ridge regression to 1 for the right option and 0 for others."""
    middle = rows.mean(axis=0)
    centred = rows - middle
    gram = centred.T @ centred + _RIDGE * np.eye(rows.shape[1])
    return np.linalg.solve(gram, centred.T @ (right - right.mean())), middle


def _fold(image: str) -> int:
    """By image, as items of one image share their wrong options; by digest, so that order does not matter."""
    return hashlib.sha256(image.encode()).digest()[0] % FOLDS
