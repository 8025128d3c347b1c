"""EgoGapBench's transform of EgoNormia: an action that somebody was seen to do, in place of "none of the above"."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from sim_replays.suites.egonormia.reader import EgoNormiaItem


class Fifth(StrEnum):
    """What replaces the fifth option."""

    RANDOM = "random"  # an action from another video
    SEEN = "seen"  # an action seen in this video


def to_egogap_items(items: Sequence[EgoNormiaItem], fifth: Fifth, seed: int = 0) -> list[EgoNormiaItem]:
    """Replace the empty option of each item that has one; an item without an action to put there is left out."""
    made = []
    for item in items:
        draw = random.Random(f"{seed}:{fifth}:{item.uid}")
        others = [other for other in items if other.source != item.source and seen_actions(other)]
        pool = seen_actions(item) if fifth is Fifth.SEEN else seen_actions(draw.choice(others)) if others else []
        if "" in item.actions and pool:
            put = draw.choice(pool)
            made.append(replace(item, actions=tuple(put if action == "" else action for action in item.actions)))
    return made


def seen_actions(item: EgoNormiaItem) -> list[str]:
    """Return the lines of a scene that describe it second by second."""
    _, _, frames = f"\n{item.scene}".partition("\nFrame ")
    lines = re.findall(r"^(?:Frame )?\d+(?:-\d+)?:\s*(.+)$", f"Frame {frames}", re.MULTILINE) if frames else []
    return [line.strip() for line in lines]
