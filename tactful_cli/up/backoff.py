"""When a process that ended by itself is started again."""

from norm_core.records.record import record

DELAYS_S = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
FORGIVEN_AFTER_S = 60.0  # of running
BAD_INPUT_DELAY_S = 60.0  # a profile or a server may have been mended by then


@record
class Backoff:
    """How often a process was started again, in all and without a long run in between."""

    restarts: int = 0
    in_a_row: int = 0

    def after(self, ran_s: float, *, bad_input: bool) -> tuple["Backoff", float]:
        """Return the count after one more end, and how long to wait."""
        in_a_row = 0 if ran_s >= FORGIVEN_AFTER_S else self.in_a_row
        delay_s = BAD_INPUT_DELAY_S if bad_input else DELAYS_S[min(in_a_row, len(DELAYS_S) - 1)]
        return Backoff(restarts=self.restarts + 1, in_a_row=in_a_row + 1), delay_s
