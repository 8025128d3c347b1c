"""Weights fitted on labelled questions. What they get right tells of the options' wording, and not of perception."""

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
    """An artefact that cannot be used, and what to do about it."""


class LinearWeights(Config):
    """One linear model: how much each feature counts, once its mean is taken off."""

    counts: tuple[float, ...]
    means: tuple[float, ...]

    def score(self, features: Matrix) -> NDArray[np.float64]:
        """Of each option, 1 for surely right and 0 for surely wrong."""
        return np.asarray((features - np.array(self.means)) @ np.array(self.counts), np.float64)


class LinearScorer(Config):
    """The artefact: a model for each fold, fitted on the others' images, and one on all for what is in none."""

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
        """The artefact that `tactful bench fit` wrote with this encoder."""
        try:
            found = cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise LinearScorerError(f"{path}: is no artefact that `tactful bench fit` wrote: {said}") from error
        if encoder_sha256 not in {"", found.encoder_sha256}:
            raise LinearScorerError(f"{path}: was fitted with another encoder: fit it anew with `tactful bench fit`")
        return found

    def was_fitted_on(self, item: str, image: str) -> bool:
        """Whether what would answer this item was fitted on its image: then its answer is worth nothing."""
        return item not in self.fold_of and image in self.images

    def score(
        self, sentences: SentenceEncoding, actions: Sequence[str], evidence: ScoringEvidence, source: str
    ) -> NDArray[np.float64]:
        """Of each option; the question of an item that was fitted on is answered by the fold without its image."""
        fold = self.fold_of.get(source)
        model = self.whole if fold is None else self.folds[fold]
        return model.score(features(sentences, actions, evidence))


def features(sentences: SentenceEncoding, actions: Sequence[str], evidence: ScoringEvidence) -> Matrix:
    """Each option's meaning beside that of the others, so that the odd one shows, and how near it is to the scene."""
    vectors = sentences.encode([strip_instructions(action) for action in actions]).astype(float)
    rest = (vectors.sum(axis=0) - vectors) / max(1, len(vectors) - 1)
    columns = [vectors, vectors - rest, (vectors * rest).sum(axis=1, keepdims=True)]
    for texts in ((evidence.scene,) if evidence.scene else (), evidence.others_do):
        alike = similarity(sentences, actions, texts)
        columns.append(alike.max(axis=1, keepdims=True) if texts else np.zeros((len(actions), 1)))
    return np.hstack(columns)
