"""The tokens of option letters, and their probabilities."""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from norm_core.engines.errors import EngineFailedError, UnparsedError
from norm_core.engines.option_letters import OPTION_LETTERS

# Stands for a leading space in a server's raw tokens.
_SPACES = " \t\n▁Ġ"


class LetterTokens:
    """The tokens of each letter in LETTERS, with and without a space before it."""

    def __init__(self, tokens: Callable[[str], list[int]], text: Callable[[int], str]) -> None:
        self._tokens = [self._alone(letter, tokens, text) for letter in OPTION_LETTERS]

    @staticmethod
    def _alone(letter: str, tokens: Callable[[str], list[int]], text: Callable[[int], str]) -> list[int]:
        last = {tokens(before + letter)[-1] for before in ("", " ", "\n")}
        alone = sorted(token for token in last if _letter(text(token)) == letter)
        if not alone:
            raise EngineFailedError(f"this model has no token for {letter}, so it cannot choose among options")
        return alone

    def logprobs(self, logits: np.ndarray, count: int) -> list[float]:
        """Return the log-probability of each of the first `count` letters, from the logits of all tokens."""
        precise = logits.astype(np.float64)
        precise -= np.logaddexp.reduce(precise)
        return [float(np.logaddexp.reduce(precise[tokens])) for tokens in self._tokens[:count]]


def letter_weights(top: Iterable[tuple[str, float]], letters: Sequence[str]) -> list[float]:
    """Return a log-probability for each letter from the reported tokens, each of which appears once.

    A letter that was not reported gets its upper bound: the least of the reported probabilities, or its share of the
    remaining probability, whichever is less. So an answer is never more confident than the report allows.
    """
    # A probability of one may be rounded up slightly.
    weights = {token: math.exp(min(logprob, 0.0)) for token, logprob in top if math.isfinite(logprob)}
    seen = dict.fromkeys((letter for letter in letters if any(_letter(token) == letter for token in weights)), 0.0)
    for token, probability in weights.items():
        if _letter(token) in seen:
            seen[_letter(token)] += probability
    if not any(seen.values()):
        likeliest = sorted(weights, key=lambda token: -weights[token])[:5]
        raise UnparsedError(f"no option's letter is among the likeliest tokens, which are {likeliest}")
    missing = len(letters) - len(seen)
    most = min(*weights.values(), max(1.0 - sum(weights.values()), 0.0) / max(missing, 1))
    return [math.log(share) if (share := seen.get(letter, most)) > 0 else -math.inf for letter in letters]


def _letter(token: str) -> str:
    return token.strip(_SPACES)
