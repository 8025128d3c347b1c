"""Sessions of a generated site: how often an error is raised falsely there, and with which probability, is known."""

from collections.abc import Iterator

import numpy as np

from calibration.session_flags import Bars, LabelledError, LabelledSession, RaisedError
from norm_core.records.flag import Attribute
from norm_core.runtime.time import NS_PER_S

EMOTIONS, ENGAGEMENT = Attribute.EMOTIONS, Attribute.ENGAGEMENT
SURE, UNSURE = (6.0, 2.0), (2.0, 4.0)  # Beta distributions of probabilities
# By attribute: the false ones an hour, and the right ones.
RATES = {EMOTIONS: (12.0, 10.0), ENGAGEMENT: (4.0, 10.0)}
_DRAWN = np.sort(np.random.default_rng(1).beta(*UNSURE, 200_000))


def generated(count: int, seed: int, *, uneven: float = 0.0, hours: float = 0.25) -> list[LabelledSession]:
    """Draw sessions; the variance of their rates of false errors is `uneven` times the squared mean."""
    chance = np.random.default_rng(seed)
    return [_session(f"s{number}", chance, uneven, hours) for number in range(count)]


def true_rate(bars: Bars) -> float:
    """The false errors an hour that these thresholds let through at the generated site."""
    return sum(false * (1 - np.searchsorted(_DRAWN, bars.of(one)) / len(_DRAWN)) for one, (false, _) in RATES.items())


def true_precision(bars: Bars) -> float:
    """The share of flags that are right at the generated site."""
    sure = np.sort(np.random.default_rng(2).beta(*SURE, 200_000))
    right = sum(rate * (1 - np.searchsorted(sure, bars.of(one)) / len(sure)) for one, (_, rate) in RATES.items())
    return float(right / (right + true_rate(bars))) if right else 1.0


def _session(name: str, chance: np.random.Generator, uneven: float, hours: float) -> LabelledSession:
    frailty = chance.gamma(1 / uneven, uneven) if uneven else 1.0
    moments = _moments()
    errors, raised = [], []
    for attribute, (false, right) in RATES.items():
        for is_right, rate, shape in ((False, false * frailty, UNSURE), (True, right, SURE)):
            for probability in _probabilities(chance, rate * hours, shape):
                at_ns = next(moments)
                raised.append(RaisedError(onset_ns=at_ns, probability=probability, attributes=(attribute,)))
                if is_right:
                    errors.append(LabelledError(onset_ns=at_ns, attributes=(attribute,)))
    return LabelledSession(name=name, hours=hours, errors=tuple(errors), raised=tuple(raised))


def _probabilities(chance: np.random.Generator, mean: float, shape: tuple[float, float]) -> list[float]:
    return [float(one) for one in chance.beta(*shape, size=chance.poisson(mean))]


def _moments() -> Iterator[int]:
    at_ns = 0
    while True:
        at_ns += 10 * NS_PER_S
        yield at_ns
