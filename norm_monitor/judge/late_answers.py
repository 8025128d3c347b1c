"""How many of the judge's latest answers came after their unit's flag had closed."""

from collections import deque

# By how many answers the share is counted, and from which share on it is told.
LATEST, LEAST, SHARE = 20, 5, 0.2


class LateAnswers:
    """Remember of the latest answers which were too late to count."""

    def __init__(self) -> None:
        self._late: deque[bool] = deque(maxlen=LATEST)

    def add(self, is_late: bool) -> None:
        """Add an answer."""
        self._late.append(is_late)

    @property
    def reason(self) -> str:
        """What is wrong and what to do, once more than a fifth of the latest answers were late; else empty."""
        late, count = sum(self._late), len(self._late)
        if count < LEAST or late <= SHARE * count:
            return ""
        return (
            f"judge: more than {SHARE:.0%} of its latest answers came after their unit's flag had closed, so they "
            "changed nothing; name a smaller model in judge.model, lower judge.images or judge.calls_per_hour, or "
            "raise fusion.open_s"
        )
