"""What a sentence means, by its nearness to examples of a concept and to examples of what only looks like it."""

from collections import OrderedDict
from pathlib import Path
from typing import Protocol

import numpy as np
from pydantic import Field

from norm_core.config import Config, load
from norm_core.engines.sentences import SentenceEncoder
from norm_core.record import record
from norm_monitor.wording import clauses, is_chinese, sentences

SHIPPED = Path(__file__).with_name("concepts.yaml")

# A sentence can mean two things, as a farewell and thanks, where one comes nearly as near as the other.
RIVALRY = 0.15
# The concept of what means nothing in particular.
ORDINARY = "ordinary"
REMEMBERED = 2_048


class Concept(Config):
    """Examples in any language of what it is, and of what is near and yet not it."""

    nearness: float = Field(default=0.6, gt=0, lt=1)
    clauses: bool = False  # a ritual may stand between commas, among other things
    like: tuple[str, ...] = Field(min_length=1)
    unlike: tuple[str, ...] = ()


class Concepts(Config):
    version: str = Field(min_length=1)
    concepts: dict[str, Concept]

    @classmethod
    def shipped(cls) -> "Concepts":
        return load(cls, SHIPPED)


@record
class Match:
    """The sentence of a text that comes nearest to a concept."""

    sentence: str
    nearness: float
    threshold: float

    def __bool__(self) -> bool:
        return self.nearness >= self.threshold


class Meaning(Protocol):
    """Whatever compares meanings; a test may put another in its place."""

    def match(self, text: str, concept: str) -> Match:
        """How near the text's nearest sentence comes to the concept; true where near enough."""
        ...

    def similarity(self, one: str, other: str) -> float:
        """The cosine of two texts, -1 to 1."""
        ...


class Meanings:
    """Meanings by a sentence encoder. A sentence means what it is nearest to, and never what it only resembles."""

    def __init__(self, encoder: SentenceEncoder, concepts: Concepts) -> None:
        self._encoder, self._concepts = encoder, concepts.concepts
        names = list(self._concepts)
        rows = [
            (example, name, liked)
            for name in names
            for liked, examples in ((True, self._concepts[name].like), (False, self._concepts[name].unlike))
            for example in examples
        ]
        self._examples = encoder.encode([_plain(example) for example, _, _ in rows])
        self._rows = {
            (name, liked): np.array([i for i, row in enumerate(rows) if row[1:] == (name, liked)], int)
            for name in names
            for liked in (True, False)
        }
        self._known: OrderedDict[str, dict[str, float]] = OrderedDict()

    @classmethod
    def shipped(cls) -> "Meanings":
        """By the packaged encoder and the shipped examples."""
        return cls(SentenceEncoder(), Concepts.shipped())

    def match(self, text: str, concept: str) -> Match:
        known = self._concepts[concept]
        parts = sentences(text)
        if known.clauses:
            parts += [clause for part in parts for clause in clauses(part)]
        nearest = max(parts, key=lambda part: self._nearness(part)[concept], default="")
        return Match(sentence=nearest, nearness=self._nearness(nearest)[concept], threshold=known.nearness)

    def similarity(self, one: str, other: str) -> float:
        vectors = self._encoder.encode([_plain(one), _plain(other)])
        return float(vectors[0] @ vectors[1])

    def _nearness(self, sentence: str) -> dict[str, float]:
        """To each concept's nearest example; none where an example of what it is not, or a rival, comes nearer."""
        if sentence not in self._known:
            self._known[sentence] = self._measured(sentence)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return self._known[sentence]

    def _measured(self, sentence: str) -> dict[str, float]:
        if not sentence.strip():
            return dict.fromkeys(self._concepts, -1.0)
        likeness = self._examples @ self._encoder.encode([_plain(sentence)])[0]
        near = {key: float(likeness[rows].max()) if len(rows) else -1.0 for key, rows in self._rows.items()}
        highest = max(near[name, True] for name in self._concepts)
        plain = near.get((ORDINARY, True), -1.0)
        return {
            name: near[name, True]
            if near[name, True] > max(near[name, False], plain) and near[name, True] >= highest - RIVALRY
            else min(near[name, True], 0.0)
            for name in self._concepts
        }


def _plain(sentence: str) -> str:
    """A recogniser's capitals and closing punctuation say little; the question mark does."""
    return sentence.strip() if is_chinese(sentence) else sentence.strip().rstrip(".!").strip()
