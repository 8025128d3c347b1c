"""The words of a prompt's lines, in English and Chinese."""

from collections.abc import Iterable

from norm_core.prompts.transcript import SPEAKERS
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.turns import Turn
from norm_monitor.judge.sightings import PresenceChange, SightingKind
from norm_monitor.units.unit import Unit, UnitKind

LABEL = {"en": "transcript", "zh": "对话记录"}
NOBODY = {"en": "(nobody speaks)", "zh": "（没有人说话）"}
# A shorter overlap of two voices is the usual rush between turns.
_SHORTEST_OVERLAP_NS = NS_PER_S // 4
_SIGHTS = {
    "en": {
        SightingKind.COMING: "somebody comes into view",
        SightingKind.ANOTHER_COMING: "another person comes into view",
        SightingKind.LEAVING: "the person leaves",
        SightingKind.LOOKING_AWAY: "the person looks away from the robot",
        SightingKind.LOOKING_BACK: "the person looks at the robot again",
        SightingKind.COMING_NEAR: "the robot and a person are near each other",
    },
    "zh": {
        SightingKind.COMING: "有人出现",
        SightingKind.ANOTHER_COMING: "又有一人出现",
        SightingKind.LEAVING: "用户离开",
        SightingKind.LOOKING_AWAY: "用户把目光从机器人身上移开",
        SightingKind.LOOKING_BACK: "用户又看向机器人",
        SightingKind.COMING_NEAR: "机器人与人距离很近",
    },
}
_SOMETHING = {"en": "something is seen", "zh": "看到了某种情况"}
_SILENCE = {"en": "({:.1f} s of silence{})", "zh": "（沉默{:.1f}秒{}）"}
_SO_FAR = {"en": " so far", "zh": "，仍在继续"}
_WHILE = {"en": "while {} speaks", "zh": "{}正在说话时"}
_GOES_ON = {"en": "goes on", "zh": "还在说"}


def turn_words(turn: Turn, turns: Iterable[Turn], locale: str) -> str:
    """Return who speaks, over whom, and the words."""
    over = [] if not turn.timed else [other for other in turns if _is_spoken_over(turn, other)]
    remarks = [_WHILE[locale].format(_name(other, locale)) for other in over]
    if turn.ongoing:
        remarks.append(_GOES_ON[locale])
    told = f" ({'; '.join(dict.fromkeys(remarks))})" if remarks else ""
    return f"{_name(turn, locale)}{told}: {' '.join(turn.text.split())}"


def silence_words(lasts_s: float, lasts_on: bool, locale: str) -> str:
    """Return how long nobody spoke."""
    return _SILENCE[locale].format(lasts_s, _SO_FAR[locale] if lasts_on else "")


def line_words(seen: PresenceChange | Unit, locale: str) -> str:
    """Return what was seen; of a unit that no presence shows, what its id says."""
    if isinstance(seen, PresenceChange):
        told = _SIGHTS[locale][seen.kind]
        if seen.distance_m is not None:
            told += f", {seen.distance_m:.1f} m"
    else:
        what = seen.unit_id.split(":")[1] if seen.kind is UnitKind.SIGHTING else ""
        told = _SIGHTS[locale][SightingKind(what)] if what in set(SightingKind) else _SOMETHING[locale]
    return f"（{told}）" if locale == "zh" else f"({told})"


def _is_spoken_over(turn: Turn, other: Turn) -> bool:
    """Whether the other spoke already when this turn began, and both went on."""
    began_before = (other.start_ns, other.turn_id) < (turn.start_ns, turn.turn_id)
    return other.timed and began_before and turn.overlap_ns(other) >= _SHORTEST_OVERLAP_NS


def _name(turn: Turn, locale: str) -> str:
    return " ".join([SPEAKERS[locale][turn.speaker], *turn.speaker_id.split()])
