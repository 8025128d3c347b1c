"""Measure the calibration of a run's raw answers."""

from norm_core.evaluation.probabilities import Bin, expected_calibration_error, reliability_bins
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from sim_replays.runs.results.run_folder import Run


@record
class CalibrationFigures:
    """One task's figures. `error` is the expected calibration error in percent, over answers with probabilities."""

    task: str
    count: int
    error: float
    bins: tuple[Bin, ...]


def measure_calibration(run: Run) -> list[CalibrationFigures]:
    """Measure each task: a single choice's probability against correctness, or that of each member of a set."""
    targets = {target.key: target for target in run.key.targets}
    pairs: dict[str, list[tuple[float, bool]]] = {}
    for query_id, timed in run.told.items():
        answer = timed.answer
        target = targets[run.key.items[query_id], answer.task]
        order = run.key.orders[query_id]
        if (
            timed.by_text
            or answer.outcome is not Outcome.ANSWERED
            or len(answer.probabilities) != len(order)
            or not order
        ):
            continue
        right = [order[place] in target.right for place in range(len(order))]
        chosen = range(len(order)) if target.several else answer.chosen[:1]
        pairs.setdefault(answer.task, []).extend((answer.probabilities[place], right[place]) for place in chosen)
    return [
        CalibrationFigures(
            task=task,
            count=len(of_task),
            error=100 * (expected_calibration_error(of_task) or 0.0),
            bins=reliability_bins(of_task),
        )
        for task, of_task in pairs.items()
    ]
