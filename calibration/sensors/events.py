"""Find claps, clicks and beeps in sound, and closing hands and flashes in pictures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.sensors.alignment import Event
from norm_monitor.senses.microphone.onsets import HOP_S, Series, levels_db, onset_before, rises_db
from norm_monitor.senses.microphone.pcm import Samples

_BEFORE, _AFTER = round(0.1 / HOP_S), round(0.01 / HOP_S)
_LEAST_DB, _DEVIATIONS = 8.0, 8.0
_APART_S = 0.3
_MOST = 60
_LEAST_STEP = 4.0  # levels of brightness of 255
_LONGEST_PERIODS = 2.5  # between two pictures; beyond, some are lost between them


def sound_onsets(samples: Samples, from_s: float) -> list[float]:
    """Return when something begins abruptly in the sound, at most the strongest ones."""
    levels = levels_db(samples)
    rises = rises_db(levels, _BEFORE, _AFTER)
    peaks = _peaks(rises, np.arange(len(rises), dtype=np.float64) * HOP_S, _LEAST_DB)
    return [from_s + onset_before(levels, place) * HOP_S for place in peaks]


def flashes(stamps_s: Series, brightness: Series) -> list[Event]:
    """Return between which pictures the brightness steps; a picture exposed meanwhile shows a part of the step."""
    if len(stamps_s) < 2:
        return []
    steps, period = np.abs(np.diff(brightness)), _period(stamps_s)
    found = []
    for place in _peaks(steps, stamps_s[1:], _LEAST_STEP):
        from_s, to_s = float(stamps_s[place]), float(stamps_s[place + 1])
        if to_s - from_s <= _LONGEST_PERIODS * period:
            found.append(Event(from_s=from_s, to_s=to_s))
    return found


def closing_hands(stamps_s: Series, motion: Series) -> list[Event]:
    """Return when motion stops most abruptly; `motion` is between each picture and the one before.

    Hands that stop between two pictures lower the motion twice, and the two falls tell by their sizes where between.
    """
    if len(stamps_s) < 4:
        return []
    falls = np.clip(motion[:-1] - motion[1:], 0, None)  # at stamps_s[1:-1]
    at_s, half = stamps_s[1:-1], _period(stamps_s) / 2
    both = falls[:-1] + falls[1:]
    found = []
    for place in _peaks(both, at_s[1:], 0.0):
        weights, times = falls[place : place + 2], at_s[place : place + 2]
        if times[1] - times[0] <= _LONGEST_PERIODS * 2 * half:
            middle = float((weights * times).sum() / weights.sum())
            found.append(Event(from_s=middle - half, to_s=middle + half, at_s=middle))
    return found


def _period(stamps_s: Series) -> float:
    return float(np.median(np.diff(stamps_s)))


def _peaks(strengths: NDArray[Any], at_s: NDArray[Any], least: float) -> Sequence[int]:
    """Return the places of the strongest values that stand out, apart from each other, in order."""
    if not len(strengths):
        return []
    usual = float(np.median(strengths))
    spread = float(np.median(np.abs(strengths - usual)))
    bar = max(least, usual + _DEVIATIONS * spread)
    chosen: list[int] = []
    for place in np.argsort(-strengths, kind="stable"):
        if strengths[place] <= bar or len(chosen) == _MOST:
            break
        if all(abs(at_s[place] - at_s[one]) >= _APART_S for one in chosen):
            chosen.append(int(place))
    return sorted(chosen)
