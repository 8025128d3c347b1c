"""Score EgoGapBench: accuracy, and the share of each error."""

from collections.abc import Sequence

from norm_core.evaluation.figures import Figure, share
from sim_replays.suites.egogapbench.reader import EgoGapKind
from sim_replays.suites.target import Predictions, Target, first_pick

COLUMNS = ("overall", "n3", "n4", "direct", "indirect", "motor_intrusion", "off_vantage")


def figures(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute the suite's metrics. A question without an answer counts as wrong."""

    def of(subset: list[Target], kinds: set[str]) -> Figure:
        picks = [first_pick(target, predictions) for target in subset]
        hits = [
            0.0 if pick is None else float(target.kinds[pick] in kinds)
            for target, pick in zip(subset, picks, strict=True)
        ]
        return share(hits, [target.group for target in subset])

    correct, motor = {EgoGapKind.CORRECT.value}, {EgoGapKind.MOTOR_A.value, EgoGapKind.MOTOR_B.value}
    four = [target for target in targets if target.options == 4]
    return {
        "overall": of(list(targets), correct),
        "n3": of([target for target in targets if target.options == 3], correct),
        "n4": of(four, correct),
        "direct": of([target for target in targets if target.by["directness"] == "direct"], correct),
        "indirect": of([target for target in targets if target.by["directness"] == "indirect"], correct),
        "motor_intrusion": of(four, motor),
        "off_vantage": of(four, {EgoGapKind.OFF_VANTAGE.value}),
    }
