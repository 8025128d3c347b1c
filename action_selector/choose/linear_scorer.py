"""Score options with weights fitted on labels. High accuracy here shows bias in the wording, not perception."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError, model_validator

from action_selector.choose.candidate_scoring import ScoringEvidence
from action_selector.retrieve.likeness import SentenceEncoding, similarity
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.runtime.config import Config
from norm_core.runtime.errors import TactfulError

Matrix = NDArray[np.float64]


class LinearScorerError(TactfulError):
    """The weights file cannot be used; the message gives the remedy."""


class LinearWeights(Config):
    """One linear model over centred features."""

    counts: tuple[float, ...]
    means: tuple[float, ...]

    def score(self, features: Matrix) -> NDArray[np.float64]:
        """Score each option: about 1 for right, about 0 for wrong."""
        return np.asarray((features - np.array(self.means)) @ np.array(self.counts), np.float64)


class LinearScorer(Config):
    """One model per fold, fitted on the other folds' images, and one on all images for new items."""

    suite: str
    setting: str = Field(description="what of the scene it was given beside the options")
    style: str
    data_sha256: str
    encoder_sha256: str
    items: int
    images: tuple[str, ...]
    folds: tuple[LinearWeights, ...]
    whole: LinearWeights
    fold_of: dict[str, int] = Field(description="by item the fold that it must be answered with")

    @model_validator(mode="after")
    def _fits_together(self) -> "LinearScorer":
        sizes = {len(part) for model in (*self.folds, self.whole) for part in (model.counts, model.means)}
        if len(sizes) != 1:
            raise ValueError("its models are of different sizes")
        if not set(self.fold_of.values()) <= set(range(len(self.folds))):
            raise ValueError("it names folds that it does not hold")
        return self

    @classmethod
    def read(cls, path: Path, encoder_sha256: str) -> "LinearScorer":
        """Read a file written by `tactful bench fit` with the same encoder. Raises LinearScorerError."""
        try:
            scorer = cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            problem = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise LinearScorerError(f"{path}: is no artefact that `tactful bench fit` wrote: {problem}") from error
        if encoder_sha256 not in {"", scorer.encoder_sha256}:
            raise LinearScorerError(f"{path}: was fitted with another encoder: fit it anew with `tactful bench fit`")
        return scorer

    def was_fitted_on(self, item: str, image: str) -> bool:
        """Whether the model for this item was fitted on its image, which would make its answer worthless."""
        return item not in self.fold_of and image in self.images

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
