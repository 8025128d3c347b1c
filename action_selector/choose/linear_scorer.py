"""Score options with weights fitted on labels. High accuracy here shows bias in the wording, not perception."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from action_selector.choose.candidate_scoring import ScoringEvidence
from action_selector.retrieve.likeness import SentenceEncoding, similarity
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.runtime.config import Config

Matrix = NDArray[np.float64]


class LinearWeights(Config):
    """One linear model over centred features."""

    counts: tuple[float, ...]
    means: tuple[float, ...]

    def score(self, features: Matrix) -> NDArray[np.float64]:
        """Score each option: about 1 for right, about 0 for wrong."""
        return np.asarray((features - np.array(self.means)) @ np.array(self.counts), np.float64)


class LinearScorer(Config):
    """One model per fold, fitted on the other folds' images, and one on all images for new items."""

    folds: tuple[LinearWeights, ...]
    whole: LinearWeights
    fold_of: dict[str, int] = Field(description="by item the fold that it must be answered with")

    def score(
        self, sentences: SentenceEncoding, actions: Sequence[str], evidence: ScoringEvidence, source: str
    ) -> NDArray[np.float64]:
        """Score each option. For a fitted item, use the fold that did not see its image."""
        fold = self.fold_of.get(source)
        model = self.whole if fold is None else self.folds[fold]
        return model.score(features(sentences, actions, evidence))


def features(sentences: SentenceEncoding, actions: Sequence[str], evidence: ScoringEvidence) -> Matrix:
    """Compute features of each option: its meaning relative to the other options, and its similarity to the scene."""
    vectors = sentences.encode([strip_instructions(action) for action in actions]).astype(float)
    rest = (vectors.sum(axis=0) - vectors) / max(1, len(vectors) - 1)
    columns = [vectors, vectors - rest, (vectors * rest).sum(axis=1, keepdims=True)]
    for texts in ((evidence.scene,) if evidence.scene else (), evidence.others_do):
        alike = similarity(sentences, actions, texts)
        columns.append(alike.max(axis=1, keepdims=True) if texts else np.zeros((len(actions), 1)))
    return np.hstack(columns)
