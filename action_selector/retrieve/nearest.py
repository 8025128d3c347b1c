"""Search the nearest unit vectors exactly, by cosine."""

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.sentences.sentence_encoder import COSINE_DIGITS

Floats = NDArray[np.float32]


def nearest(
    vectors: Floats, query: Floats, count: int, allowed: NDArray[np.bool_] | None = None
) -> list[tuple[int, float]]:
    """Find the `count` most similar rows with their cosines, in falling order. The lower row wins a tie."""
    cosines = (vectors @ query).astype(float).round(COSINE_DIGITS)
    places = np.arange(len(vectors)) if allowed is None else np.flatnonzero(allowed)
    among = cosines[places]
    if 0 < count < len(places):
        least = np.partition(among, len(places) - count)[len(places) - count]
        places = places[among >= least]
    best = places[np.argsort(-cosines[places], kind="stable")][:count]
    return [(int(place), float(cosines[place])) for place in best]
