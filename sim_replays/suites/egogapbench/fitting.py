"""Fit weights on a suite's labels, to show what wording alone explains beside perception."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from action_selector.choose.candidate_scoring import ScoringEvidence
from action_selector.choose.linear_scorer import LinearScorer, LinearWeights, features
from action_selector.observation import describe_others
from action_selector.retrieve.likeness import SentenceEncoding
from sim_replays.suites.egogapbench.questions import query as query_of
from sim_replays.suites.egogapbench.reader import EgoGapItem, EgoGapLabel, EgoGapSetting
from sim_replays.suites.target import SuiteError

FOLDS = 5
_RIDGE = 1.0

Matrix = NDArray[np.float64]


def fit(
    items: Sequence[EgoGapItem],
    labels: Sequence[EgoGapLabel],
    sentences: SentenceEncoding,
    setting: EgoGapSetting,
) -> LinearScorer:
    """Fit one model per fold of images that never saw them, and one on all images."""
    if setting in {EgoGapSetting.SWAPPED, EgoGapSetting.IMAGES}:
        raise SuiteError(f"{setting} is nothing to fit on: fit on blind, captions, others-given or others-and-captions")
    images = sorted({item.image for item in items})
    folds = {image: fold_of(image) for image in images}
    if set(folds.values()) != set(range(FOLDS)):
        raise SuiteError(
            f"{len(images)} images are too few to fit on: each of {FOLDS} folds needs some; name more data"
        )
    tables = [features(sentences, item.options, _evidence(item, setting)) for item in items]
    right = [np.eye(len(label.kinds))[label.correct] for label in labels]

    def of(places: Sequence[int]) -> LinearWeights:
        return _ridge(np.concatenate([tables[at] for at in places]), np.concatenate([right[at] for at in places]))

    return LinearScorer(
        folds=tuple(of([at for at, item in enumerate(items) if folds[item.image] != fold]) for fold in range(FOLDS)),
        whole=of(range(len(items))),
        fold_of={item.uid: folds[item.image] for item in items},
    )


def fold_of(group: str, folds: int = FOLDS) -> int:
    """Assign a fold by image, because items of one image share wrong options, and by digest, for any order."""
    return hashlib.sha256(group.encode()).digest()[0] % folds


def _evidence(item: EgoGapItem, setting: EgoGapSetting) -> ScoringEvidence:
    """Collect the texts with which the selector would compare, as for a real question."""
    query = query_of(item, setting)
    return ScoringEvidence(
        scene=query.viewpoint.description,
        others_do=tuple(filter(None, (describe_others(other) for other in query.others))),
    )


def _ridge(rows: Matrix, right: Matrix) -> LinearWeights:
    """Fit a ridge regression to 1 for the right option and 0 for others."""
    means = rows.mean(axis=0)
    centred = rows - means
    wanted = right - right.mean()
    # Both systems give the same weights; the smaller one is faster.
    if len(rows) < rows.shape[1]:
        counts = centred.T @ np.linalg.solve(centred @ centred.T + _RIDGE * np.eye(len(rows)), wanted)
    else:
        counts = np.linalg.solve(centred.T @ centred + _RIDGE * np.eye(rows.shape[1]), centred.T @ wanted)
    return LinearWeights(counts=_plain(counts), means=_plain(means))


def _plain(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(round(float(value), 7) for value in values)
