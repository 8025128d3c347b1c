"""Estimate by similarity how probable it is that each remaining candidate is right."""

import hashlib
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from action_selector.retrieval import SentenceEncoding, compute_similarity
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.errors import EngineFailedError, PastDeadlineError
from norm_core.engines.request_context import Deadline
from norm_core.engines.talk_reader import TalkReader, format_option, format_scene, to_log_odds
from norm_core.records.record import record

# A cosine that is higher by so much makes a candidate e times as likely.
_SCALE = 0.1
# The reader would take seconds for more candidates.
_MAX_READ_CANDIDATES = 16
# By this factor of the reader's log odds, the probability of the best candidate fits how often it is right: 330 scenes
# by a writer whose scenes the reader was not taught (2026-11-29).
_READER_SCALE = 1 / 3.5
# The grounds, in the words that explain a choice.
_LIKE_SCENE = "it is nearest to what is said of the scene"
_LIKE_ADVICE = "it is most like what was right in scenes like this"
_UNLIKE_OTHERS = "it is least like what the others do"
_UNLIKE_BANNED = "it is least like what is not to be done here"
_READ_AS_FITTING = "it is feasible here and fits the situation"


@record
class ScoringEvidence:
    """The texts with which candidates are compared by similarity. Nothing here is fitted."""

    scene: str = ""
    spoken: tuple[str, ...] = ()
    others_do: tuple[str, ...] = ()
    advised: tuple[str, ...] = ()
    advised_against: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is no text to compare with, so that similarity cannot rank."""
        return not (self.scene or self.others_do or self.advised or self.advised_against)


class ReadScene:
    """A scene that a talk reader has read. It reads each action once; `fault` says why it failed or was late."""

    def __init__(self, reader: TalkReader, evidence: ScoringEvidence, deadline: Deadline) -> None:
        others = f" Others there: {'; '.join(evidence.others_do)}." if evidence.others_do else ""
        scene = strip_instructions(f"{evidence.scene}{others}")
        # What people said must not stay in a cache.
        spoken = list(map(strip_instructions.__wrapped__, evidence.spoken))
        self._reader = reader
        self._lines = format_scene(scene, spoken)
        self._log_odds: dict[str, float] = {}
        self._deadline = deadline
        self.fault = ""

    def score_actions(self, actions: Sequence[str]) -> NDArray[np.float64] | None:
        """Return the log odds that each action is possible and fitting, together; None after a fault."""
        scores = self._log_odds
        unread = [action for action in dict.fromkeys(actions) if action.strip() and action not in scores]
        try:
            if unread and not self.fault:
                self._read(unread)
        except PastDeadlineError:
            self.fault = "the reader was not ready in half of the time; set a later deadline or a smaller reader"
        except EngineFailedError as error:
            self.fault = str(error)
        if self.fault:
            return None
        return np.array([scores.get(action, 0.0) for action in actions])

    def _read(self, actions: Sequence[str]) -> None:
        talk = self._reader.start()
        for line in self._lines:
            self._deadline.check()
            talk.append(line)
        for action in actions:
            self._deadline.check()
            (reading,) = talk.read_options([format_option(strip_instructions(action))])
            self._log_odds[action] = to_log_odds(reading.possible) + to_log_odds(reading.fitting)


def score_by_likeness(
    sentences: SentenceEncoding, actions: Sequence[str], evidence: ScoringEvidence, read: ReadScene | None = None
) -> tuple[float, ...]:
    """Score actions by similarity to scene and advice, and by difference from others' actions, with equal weights.

    With a reader, the odds that an action is possible and fitting replace similarity to scene and others' actions.
    """
    terms = _compute_terms(sentences, actions, evidence, read)
    return normalize_scores(actions, sum(terms.values(), np.zeros(len(actions))))


def find_leading_term(
    sentences: SentenceEncoding,
    actions: Sequence[str],
    evidence: ScoringEvidence,
    index: int,
    read: ReadScene | None = None,
) -> str:
    """Name the ground on which the preferred action, at `index`, leads all others by the most."""
    leads = {
        ground: scores[index] - max(np.delete(scores, index), default=scores[index])
        for ground, scores in _compute_terms(sentences, actions, evidence, read).items()
    }
    best = max(leads, key=lambda ground: leads[ground], default="")
    return best if best and leads[best] > 0 else ""


def _compute_terms(
    sentences: SentenceEncoding, actions: Sequence[str], evidence: ScoringEvidence, read: ReadScene | None
) -> dict[str, NDArray[np.float64]]:
    """Score each action on each ground for which there is evidence."""
    compared = {
        _LIKE_SCENE: (1, (evidence.scene,) if evidence.scene else ()),
        _LIKE_ADVICE: (1, evidence.advised),
        _UNLIKE_OTHERS: (-1, evidence.others_do),
        _UNLIKE_BANNED: (-1, evidence.advised_against),
    }
    terms = {
        ground: sign * compute_similarity(sentences, actions, texts).max(axis=1)
        for ground, (sign, texts) in compared.items()
        if texts
    }
    # "None of the above" does not count, so that it does not decide whether the reader is asked.
    real_count = sum(bool(action.strip()) for action in actions)
    log_odds = read.score_actions(actions) if read and real_count <= _MAX_READ_CANDIDATES else None
    if log_odds is not None:
        # Words that resemble those of the scene say little about what fits there, and the reader read what others do.
        terms.pop(_LIKE_SCENE, None)
        terms.pop(_UNLIKE_OTHERS, None)
        terms[_READ_AS_FITTING] = _SCALE * _READER_SCALE * log_odds
    return terms


def normalize_scores(actions: Sequence[str], scores: NDArray[np.float64]) -> tuple[float, ...]:
    """Convert scores to probabilities.

    "None of the above" gets 0 beside other actions and 1 alone, because it has no meaning to compare.
    """
    is_real = [action.strip() != "" for action in actions]
    if not any(is_real):
        return tuple(1.0 / len(actions) for _ in actions)
    powers = np.where(is_real, np.exp((scores - scores[is_real].max()) / _SCALE), 0.0)
    return tuple(float(power) for power in powers / powers.sum())


def find_likeliest(probabilities: Mapping[int, float], texts: Mapping[int, str]) -> int:
    """Find the index of the highest probability. A digest of the words breaks ties, not the position."""
    highest = max(probabilities.values())
    equals = [index for index, value in probabilities.items() if math.isclose(value, highest, abs_tol=1e-9)]
    return min(equals, key=lambda index: (hashlib.sha256(texts[index].encode("utf-8", "replace")).digest(), index))
