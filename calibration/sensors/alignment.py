"""Align what two sensors tell of the same events, or say why it cannot be told.

Chance is measured, not assumed: the events of one sensor are laid at random times, and an offset is told only if more
events agree on it than on any offset in nearly all of these draws.
"""

import math
from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from calibration.sensors.onsets import HOP_S, Series, above_floor, levels_db, onset_before, rises_db
from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from norm_monitor.senses.microphone.pcm import Samples


class Method(StrEnum):
    """What is aligned: hands that clap, a light that is switched with a sound, or the robot's own speech."""

    CLAP = "clap"
    FLASH = "flash"
    SPEECH = "speech"


LARGEST_MS = 600  # larger offsets are not looked for
FEWEST = 4
WIDEST_MS = 25.0  # a wider uncertainty tells nothing of use
LAGS_MS: Series = np.arange(-LARGEST_MS, LARGEST_MS + 1, dtype=np.float64)
_DRAWS, _BY_CHANCE = 400, 0.995
_RESOLUTION_MS = 5.0
# Where between two pictures hands stop is told as if they moved evenly; at uneven speed it lies this part elsewhere.
_SPEEDING_UP = 0.2
_MAD_TO_SIGMA, _MEDIAN_COSTS = 1.4826, 1.25

_BEFORE, _AFTER = round(0.12 / HOP_S), round(0.06 / HOP_S)
_STEEPEST_DB, _LEAST_RISE_DB = 25.0, 4.0
_HEARD, _LEAST_CONTRAST_DB = round(0.25 / HOP_S), 14.0
_ABOUT = round(0.06 / HOP_S)  # how far one onset may lie from what all agree on


@record
class Event:
    """Something seen between two instants; `at_s` is where within them, if the pictures tell."""

    from_s: float
    to_s: float
    at_s: float | None = None


@record
class Alignment:
    """What to add to a source's stamps, with its 95 % uncertainty; without an offset, why it cannot be told."""

    offset_ms: float | None = None
    uncertainty_ms: float | None = None
    found: int = 0
    agreeing: int = 0
    why: str = ""


def align_events(heard_s: Sequence[float], seen: Sequence[Event], sound: str, sight: str) -> Alignment:
    """Return the offset of the pictures' stamps from what is heard and seen of the same events."""
    for count, what in ((len(heard_s), f"{sound} in the sound"), (len(seen), f"{sight} in the pictures")):
        if count < FEWEST:
            return Alignment(found=count, why=_too_few(count, what))
    heard = np.asarray(sorted(heard_s))
    rows = _agreement(heard, seen)
    support = rows.sum(axis=0)
    by_chance = _support_by_chance(heard, seen)
    most = int(support.max())
    if most <= by_chance or most < max(FEWEST, min(len(heard), len(seen)) / 2):
        why = (
            f"sound and pictures do not agree: {most} of {len(seen)} {sight} fit one offset, and by chance "
            f"{by_chance:g} do; repeat it in a quiet room with nothing else moving"
        )
        return Alignment(found=len(seen), agreeing=most, why=why)
    if np.diff(LAGS_MS[support >= most - 1]).max(initial=0) > WIDEST_MS:
        why = "several offsets fit nearly alike, as where events come at even distances; repeat it at uneven ones"
        return Alignment(found=len(seen), agreeing=most, why=why)
    region = LAGS_MS[support == most]
    middle_ms = float((region[0] + region[-1]) / 2)
    members = [event for event, row in zip(seen, rows, strict=True) if row[round(middle_ms) + LARGEST_MS]]
    points = [_nearest_ms(heard, event.at_s, middle_ms) for event in members if event.at_s is not None]
    if points:
        period_ms = 1000 * float(np.median([event.to_s - event.from_s for event in members]))
        return _of_points(points, len(seen), bias_ms=_SPEEDING_UP * period_ms)
    half_ms = max(_RESOLUTION_MS, float(region[-1] - region[0]) / 2)
    return _unless_wide(middle_ms, half_ms, len(seen), most)


def align_speech(samples: Samples, from_s: float, starts_s: Sequence[float]) -> Alignment:
    """Return the offset of the robot's stated starts from where its speech begins in the sound."""
    levels = levels_db(samples)
    rises = np.clip(rises_db(above_floor(levels), _BEFORE, _AFTER), 0, _STEEPEST_DB)
    reach = round(LARGEST_MS / 1000 / HOP_S)
    places = np.round((np.asarray(starts_s) - from_s) / HOP_S).astype(int)
    places = places[(places >= reach) & (places < len(rises) - reach)]
    if len(places) < FEWEST:
        return Alignment(found=len(places), why=_too_few(len(places), "starts of the robot's speech in the sound"))
    lags = np.arange(-reach, reach + 1)
    support = rises[places[:, None] + lags].mean(axis=0)
    draw = np.random.default_rng(0).integers(reach, len(rises) - reach, (_DRAWS, len(places)))
    peaks = [float(rises[drawn_places[:, None] + lags].mean(axis=0).max()) for drawn_places in draw]
    by_chance, best = float(np.quantile(peaks, _BY_CHANCE)), int(support.argmax())
    if support[best] <= by_chance:
        why = (
            f"the robot is not audible where its speech begins: the sound rises by {support[best]:.1f} dB there, and "
            f"by chance by {by_chance:.1f} dB; turn its voice up, or record in a quiet room"
        )
        return Alignment(found=len(places), why=why)
    nearby = np.arange(max(0, best - _ABOUT), min(len(lags), best + _ABOUT + 1))
    about = rises[places[:, None] + lags[nearby]]
    clear = about.max(axis=1) >= _LEAST_RISE_DB
    risen = places[clear] + lags[nearby][about.argmax(axis=1)][clear]
    begun = [onset_before(levels, int(place)) for place in risen]
    points = ((np.asarray(begun) - places[clear]) * HOP_S * 1000).tolist()
    contrast_db = float(np.median([_contrast_db(levels, place) for place in begun])) if begun else 0.0
    if contrast_db < _LEAST_CONTRAST_DB:
        why = (
            f"the room is noisy: the robot's voice is {contrast_db:.0f} dB above it, and {_LEAST_CONTRAST_DB:g} are "
            "needed, because noise hides how words begin; turn its voice up, or record in a quiet room"
        )
        return Alignment(found=len(places), agreeing=len(points), why=why)
    if len(points) < max(FEWEST, len(places) / 2):
        why = f"only {len(points)} of {len(places)} starts of the robot's speech stand out of the noise; record more"
        return Alignment(found=len(places), agreeing=len(points), why=why)
    return _of_points(points, len(places))


def _contrast_db(levels: Series, begun: int) -> float:
    """Return how far the loudest part of a beginning exceeds the background before it."""
    before, after = levels[max(0, begun - _HEARD) : max(1, begun)], levels[begun : begun + _HEARD]
    return float(np.percentile(after, 80) - np.median(before)) if len(after) else 0.0


def _agreement(heard: Series, seen: Sequence[Event]) -> Series:
    """Return for each event whether each lag brings it to something heard."""
    rows = np.zeros((len(seen), len(LAGS_MS)))
    for row, event in zip(rows, seen, strict=True):
        lowest = 1000 * (heard - event.to_s) - _RESOLUTION_MS
        highest = 1000 * (heard - event.from_s) + _RESOLUTION_MS
        for low, high in zip(lowest, highest, strict=True):
            if high >= -LARGEST_MS and low <= LARGEST_MS:
                first = max(0, int(np.ceil(low)) + LARGEST_MS)
                row[first : max(0, int(np.floor(high)) + LARGEST_MS + 1)] = 1
    return rows


def _support_by_chance(heard: Series, seen: Sequence[Event]) -> float:
    random = np.random.default_rng(0)
    span = min(heard[0], seen[0].from_s), max(heard[-1], seen[-1].to_s)
    most = []
    for _ in range(_DRAWS):
        at = random.uniform(*span, len(seen))
        moved = [Event(from_s=s, to_s=s + event.to_s - event.from_s) for s, event in zip(at, seen, strict=True)]
        most.append(_agreement(heard, moved).sum(axis=0).max())
    return float(np.quantile(most, _BY_CHANCE))


def _nearest_ms(heard: Series, at_s: float, about_ms: float) -> float:
    differences = 1000 * (heard - at_s)
    return float(differences[np.abs(differences - about_ms).argmin()])


def _of_points(points: Sequence[float], count: int, *, bias_ms: float = 0.0) -> Alignment:
    middle_ms = float(np.median(points))
    sigma = _MAD_TO_SIGMA * float(np.median(np.abs(np.asarray(points) - middle_ms)))
    uncertainty_ms = math.hypot(_RESOLUTION_MS + 1.96 * _MEDIAN_COSTS * sigma / len(points) ** 0.5, bias_ms)
    return _unless_wide(middle_ms, uncertainty_ms, count, len(points))


def _unless_wide(offset_ms: float, uncertainty_ms: float, count: int, agreeing: int) -> Alignment:
    if uncertainty_ms > WIDEST_MS:
        why = f"{agreeing} events give it only within {uncertainty_ms:.0f} ms; record more of them"
        return Alignment(found=count, agreeing=agreeing, why=why)
    return Alignment(
        offset_ms=round(offset_ms, 1),
        uncertainty_ms=round(uncertainty_ms, 1),
        found=count,
        agreeing=agreeing,
    )


def _too_few(count: int, what: str) -> str:
    return f"{count_of(count, 'event')} found of the {FEWEST} needed ({what}); record {FEWEST - count} more"
