"""Compare the flags of one bag in two runs: which came, went, moved or changed."""

from enum import StrEnum

from norm_core.evaluation.event_matching import match_events
from norm_core.records.flag import Polarity, SocialFlag
from norm_core.records.record import record
from norm_core.runtime.time import s_to_ns
from sim_replays.flag_runs.bag_flags import BagFlags

WITHIN_S = 2.0  # the tolerance of the published figures


class Change(StrEnum):
    """What became of a flag in the second run."""

    CAME = "came"
    WENT = "went"
    MOVED = "moved"  # in time
    CHANGED = "changed"  # in polarity, severity or attributes
    SAME = "same"


@record
class FlagChange:
    """One flag of either run, or of both."""

    change: Change
    old: SocialFlag | None = None
    new: SocialFlag | None = None

    @property
    def concerns_error(self) -> bool:
        """Whether the flag is an error in either run."""
        return any(flag.polarity is Polarity.ERROR for flag in (self.old, self.new) if flag)


def compare_flags(old: BagFlags, new: BagFlags) -> tuple[FlagChange, ...]:
    """Pair the flags of two runs by event, then by onset, and tell how each differs, in the order of time.

    Times count from the start of the bag where the bag itself is another.
    """
    shift_ns = 0 if old.bag_digest == new.bag_digest else new.start_ns - old.start_ns
    by_id = {flag.event_id: flag for flag in new.flags}
    pairs = [(flag, by_id[flag.event_id]) for flag in old.flags if flag.event_id in by_id]
    paired = {flag.event_id for flag, _ in pairs}
    old_left = [flag for flag in old.flags if flag.event_id not in paired]
    new_left = [flag for flag in new.flags if flag.event_id not in paired]

    def are_alike(first: int, second: int) -> bool:
        one, other = old_left[first], new_left[second]
        return one.polarity is other.polarity and bool(set(one.attributes) & set(other.attributes))

    matches = match_events(
        [flag.onset_ns + shift_ns for flag in old_left],
        [flag.onset_ns for flag in new_left],
        s_to_ns(WITHIN_S),
        are_alike,
    )
    pairs += [(old_left[first], new_left[second]) for first, second in matches.pairs]
    changes = [
        *(FlagChange(change=_change(one, other, shift_ns), old=one, new=other) for one, other in pairs),
        *(FlagChange(change=Change.WENT, old=old_left[index]) for index in matches.left_a),
        *(FlagChange(change=Change.CAME, new=new_left[index]) for index in matches.left_b),
    ]
    return tuple(sorted(changes, key=lambda one: _onset_ns(one, shift_ns)))


def _change(old: SocialFlag, new: SocialFlag, shift_ns: int) -> Change:
    if (old.polarity, old.severity, set(old.attributes)) != (new.polarity, new.severity, set(new.attributes)):
        return Change.CHANGED
    old_end_ns = None if old.offset_ns is None else old.offset_ns + shift_ns
    return Change.SAME if (old.onset_ns + shift_ns, old_end_ns) == (new.onset_ns, new.offset_ns) else Change.MOVED


def _onset_ns(change: FlagChange, shift_ns: int) -> int:
    if change.new:
        return change.new.onset_ns
    assert change.old
    return change.old.onset_ns + shift_ns
