"""Estimate each remaining candidate's probability of being right, by similarity or with a model."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from action_selector import prompts
from action_selector.retrieval import SentenceEncoding, similarity
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineFailedError, PastDeadlineError
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import Scores
from norm_core.engines.request_context import Deadline
from norm_core.engines.talk_reader import TalkReader, format_option, format_scene
from norm_core.records.decision import Norm
from norm_core.records.outcome import Outcome
from norm_core.records.record import record

# A cosine higher by 0.1 makes a candidate about e times as likely.
_SCALE = 0.1
# More candidates than these would take the reader seconds.
_MAX_READ = 16
_NEAREST = "it is nearest to what is said of the scene"


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


@record
class CandidateScores:
    """Probabilities in the order of the options; empty unless the outcome is ANSWERED."""

    probabilities: tuple[float, ...] = ()
    outcome: Outcome = Outcome.ANSWERED
    reason: str = ""
    scores: Scores | None = None


class ReadScene:
    """A scene before a reader, which reads each action once; if it fails or is late, `fault` says why."""

    def __init__(self, reader: TalkReader, evidence: ScoringEvidence, deadline: Deadline) -> None:
        others = f" Others there: {'; '.join(evidence.others_do)}." if evidence.others_do else ""
        scene = strip_instructions(f"{evidence.scene}{others}")
        spoken = list(map(strip_instructions.__wrapped__, evidence.spoken))  # no cache for words of people
        self._reader, self._lines = reader, format_scene(scene, spoken)
        self._log_odds: dict[str, float] = {}
        self._deadline, self.fault = deadline, ""

    def log_odds(self, actions: Sequence[str]) -> NDArray[np.float64] | None:
        """Return for each action the logarithm of how likely it can be done and is fitting; None with a fault."""
        unread = [action for action in dict.fromkeys(actions) if action.strip() and action not in self._log_odds]
        try:
            if unread and not self.fault:
                self._read(unread)
        except PastDeadlineError:
            self.fault = "the reader was not ready in half of the time; set a later deadline or a smaller reader"
        except EngineFailedError as error:
            self.fault = str(error)
        return None if self.fault else np.array([self._log_odds.get(action, 0.0) for action in actions])

    def _read(self, actions: Sequence[str]) -> None:
        talk = self._reader.start()
        for line in self._lines:
            self._deadline.check()
            talk.append(line)
        for action in actions:
            self._deadline.check()
            (reading,) = talk.read_options([format_option(strip_instructions(action))])
            self._log_odds[action] = math.log(max(reading.possible * reading.fitting, 1e-6))


def by_likeness(
    sentences: SentenceEncoding, actions: Sequence[str], evidence: ScoringEvidence, read: ReadScene | None = None
) -> tuple[float, ...]:
    """Score actions by closeness to scene and advice and by distance from others' actions, with equal weights.

    A reader says instead of closeness to the scene how likely it is that each can be done now and is fitting.
    """
    return normalize_scores(actions, sum(_terms(sentences, actions, evidence, read).values(), np.zeros(len(actions))))


def leading_term(
    sentences: SentenceEncoding,
    actions: Sequence[str],
    evidence: ScoringEvidence,
    place: int,
    read: ReadScene | None = None,
) -> str:
    """Name the term in which the preferred action leads all others by the most."""
    ahead = {
        ground: worth[place] - max(np.delete(worth, place), default=worth[place])
        for ground, worth in _terms(sentences, actions, evidence, read).items()
    }
    ground = max(ahead, key=lambda ground: ahead[ground], default="")
    return ground if ground and ahead[ground] > 0 else ""


def _terms(
    sentences: SentenceEncoding, actions: Sequence[str], evidence: ScoringEvidence, read: ReadScene | None
) -> dict[str, NDArray[np.float64]]:
    """Score each action on each kind of evidence; the keys are the words that explain it."""
    compared = {
        _NEAREST: (1, (evidence.scene,) if evidence.scene else ()),
        "it is most like what was right in scenes like this": (1, evidence.advised),
        "it is least like what the others do": (-1, evidence.others_do),
        "it is least like what is not to be done here": (-1, evidence.advised_against),
    }
    terms = {
        ground: sign * similarity(sentences, actions, texts).max(axis=1)
        for ground, (sign, texts) in compared.items()
        if texts
    }
    is_read = read and sum(bool(action.strip()) for action in actions) <= _MAX_READ  # the same with or without "none"
    log_odds = read.log_odds(actions) if read and is_read else None
    if log_odds is not None:
        terms.pop(_NEAREST, None)  # words that resemble the scene's say little of what fits there
        terms["it is read as what can be done here and fits"] = _SCALE * log_odds
    return terms


def normalize_scores(actions: Sequence[str], worth: NDArray[np.float64]) -> tuple[float, ...]:
    """Convert scores to probabilities.

    "None of the above" gets 0 beside other actions and 1 alone, because it has no meaning to compare.
    """
    real = [action.strip() != "" for action in actions]
    if not any(real):
        return tuple(1.0 / len(actions) for _ in actions)
    powers = np.where(real, np.exp((worth - worth[real].max()) / _SCALE), 0.0)
    return tuple(float(power) for power in powers / powers.sum())


def by_engine(engine: Engine, prefix: Prompt, question: Question, deadline: Deadline, orders: int) -> CandidateScores:
    """Score options with a model. Averages over several option orders to cancel position bias.

    The orders are evenly spaced rotations. With as many orders as options, each option takes each position once.
    """
    options = question.options
    different = tuple(dict.fromkeys(options))
    count = len(different)
    turns = [round(turn * count / min(orders, count)) for turn in range(min(orders, count))]
    asked = [replace(question, options=different[turn:] + different[:turn]) for turn in turns]
    replies = engine.ask_many(prefix, asked, deadline)
    failed = next((reply for reply in replies if reply.outcome is not Outcome.ANSWERED), None)
    answered = [(turn, reply) for turn, reply in zip(turns, replies, strict=True) if reply.probabilities]
    is_pressed = deadline.deadline_ns is not None and failed is not None and failed.outcome is Outcome.TIMED_OUT
    if failed and not (is_pressed and answered):
        return CandidateScores(outcome=failed.outcome, reason=failed.reason, scores=failed)
    # Live, time ran out after some orders: average those that were answered.
    mean = np.zeros(count)
    for turn, reply in answered:
        mean += np.roll(np.array(reply.probabilities), turn) / len(answered)
    share = {option: float(value) / options.count(option) for option, value in zip(different, mean, strict=True)}
    return CandidateScores(probabilities=tuple(share[option] for option in options), scores=replies[0])


def yes_by_engine(
    engine: Engine, prefix: Prompt, actions: Mapping[int, str], ask: str, deadline: Deadline
) -> tuple[dict[int, float], Scores | None]:
    """Ask the model for the probability of yes for each action, averaged over both orders. Skips unanswered actions."""
    places = list(actions)
    questions = [question for place in places for question in prompts.yes_or_no(actions[place], ask)]
    replies = engine.ask_many(prefix, questions, deadline) if questions else []
    yes: dict[int, float] = {}
    for number, place in enumerate(places):
        first, second = replies[2 * number], replies[2 * number + 1]
        if first.probabilities and second.probabilities:
            yes[place] = (first.probabilities[0] + second.probabilities[1]) / 2
    return yes, next((reply for reply in replies if reply.outcome is not Outcome.ANSWERED), None)


def norms_by_engine(
    engine: Engine, prefix: Prompt, actions: Mapping[int, str], deadline: Deadline
) -> dict[int, tuple[Norm, ...]]:
    """Ask the model which norms each action serves: the likeliest, and those at least half as likely.

    Averages over both orders. Skips actions without an answer.
    """
    places = list(actions)
    questions = [question for place in places for question in prompts.norm_served(actions[place])]
    replies = engine.ask_many(prefix, questions, deadline) if questions else []
    norms_of: dict[int, tuple[Norm, ...]] = {}
    for number, place in enumerate(places):
        first, second = replies[2 * number].probabilities, replies[2 * number + 1].probabilities
        if first and second:
            mean = [(forward + backward) / 2 for forward, backward in zip(first, second[::-1], strict=True)]
            norms_of[place] = tuple(norm for norm, p in zip(prompts.NORMS, mean, strict=True) if p >= max(mean) / 2)
    return norms_of


def likeliest(probabilities: Mapping[int, float], texts: Mapping[int, str]) -> int:
    """Return the index of the highest probability. A digest of the words breaks ties, not the position."""
    highest = max(probabilities.values())
    equals = [index for index, value in probabilities.items() if math.isclose(value, highest, abs_tol=1e-9)]
    return min(equals, key=lambda index: (hashlib.sha256(texts[index].encode("utf-8", "replace")).digest(), index))
