"""Where sound begins: levels over time, and how steeply they rise at each instant."""

import numpy as np
from numpy.typing import NDArray

from norm_monitor.senses.microphone.block_stream import RATE_HZ

Series = NDArray[np.float64]

HOP = 80  # samples between two levels
HOP_S = HOP / RATE_HZ
_SILENCE = 1e-10

# In hops: the background before a sound, how long a beginning may be soft, and the longest gap within it.
_BACKGROUND, _SOFT, _GAP = 50, 24, 3
_LEAST_DB, _DEVIATIONS = 4.0, 3.0


def levels_db(samples: NDArray[np.float32]) -> Series:
    """Return the level of each hop in dB full scale, without frequencies below speech."""
    bright = np.diff(np.asarray(samples, np.float64), prepend=samples[:1])
    hops = bright[: len(bright) // HOP * HOP].reshape(-1, HOP)
    return np.asarray(10 * np.log10(np.square(hops).mean(axis=1) + _SILENCE))


def above_floor(levels: Series) -> Series:
    """Return levels that do not fall below the noise floor, so that a dip of the noise makes no rise after it."""
    audible = levels[levels > 10 * np.log10(_SILENCE) + 1]
    floor = float(np.percentile(audible, 20)) if len(audible) else 0.0
    return np.asarray(10 * np.log10(np.power(10, levels / 10) + 10 ** (floor / 10)))


def rises_db(levels: Series, before: int, after: int) -> Series:
    """Return by how much the mean of `after` levels from each place on exceeds that of the `before` levels ahead."""
    sums = np.concatenate(([0.0], np.cumsum(levels)))
    rises = np.zeros(len(levels))
    places = np.arange(before, len(levels) - after + 1)
    later, earlier = sums[places + after] - sums[places], sums[places] - sums[places - before]
    rises[places] = later / after - earlier / before
    return rises


def onset_before(levels: Series, place: int) -> int:
    """Return where a sound that rises at a place emerges from what was before it: speech often begins softly."""
    before = levels[max(0, place - _BACKGROUND - _SOFT) : max(1, place - _SOFT)]
    bar = float(np.median(before)) + max(_LEAST_DB, _DEVIATIONS * float(before.std()))
    audible = levels[max(0, place - _SOFT) : place + _SOFT] > bar
    first = min(place, _SOFT)
    rest = np.flatnonzero(audible[first:])
    if not len(rest):
        return place
    onset = first + int(rest[0])
    while (ahead := np.flatnonzero(audible[max(0, onset - _GAP) : onset])).size:
        onset = max(0, onset - _GAP) + int(ahead[0])
    return place - first + onset
