"""Measure the calibration and the confusions of a run's raw answers."""

from norm_core.evaluation.probabilities import Bin, expected_calibration_error, reliability_bins
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from sim_replays.runs.results.run_folder import Run, predictions
from sim_replays.suites.target import Target, first_pick

UNANSWERED = "unanswered"


@record
class CalibrationFigures:
    """One task's figures. `error` is the expected calibration error in percent, over answers with probabilities."""

    task: str
    count: int
    error: float
    bins: tuple[Bin, ...]


@record
class ChoiceConfusion:
    """One task's counts by choice; the last column counts unanswered questions. If `alike`, rows are right answers."""

    task: str
    alike: bool
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


def measure_calibration(run: Run) -> list[CalibrationFigures]:
    """Measure each task: a single choice's probability against correctness, or that of each member of a set."""
    targets = {target.key: target for target in run.key.targets}
    pairs: dict[str, list[tuple[float, bool]]] = {}
    for query_id, timed in run.told.items():
        answer = timed.answer
        target = targets[run.key.items[query_id], answer.task]
        order = run.key.orders[query_id]
        if answer.outcome is not Outcome.ANSWERED or len(answer.probabilities) != len(order) or not order:
            continue
        right = [order[place] in target.right for place in range(len(order))]
        chosen = range(len(order)) if target.several else answer.chosen[:1]
        pairs.setdefault(answer.task, []).extend((answer.probabilities[place], right[place]) for place in chosen)
    return [of_pairs(task, of_task) for task, of_task in pairs.items()]


def of_pairs(task: str, pairs: list[tuple[float, bool]]) -> CalibrationFigures:
    """Compute the bins and the error of one task's answers."""
    error = expected_calibration_error(pairs)
    error = float("nan") if error is None else 100 * error
    return CalibrationFigures(task=task, count=len(pairs), error=error, bins=reliability_bins(pairs))


def confusions(run: Run) -> list[ChoiceConfusion]:
    """Count confusions, by answer where answers mean the same in all questions, otherwise by kind of option."""
    answers = predictions(run).predictions
    made = []
    for task in dict.fromkeys(target.task for target in run.key.targets):
        asked = [target for target in run.key.targets if target.task == task and target.kinds and not target.several]
        if not asked:
            continue
        alike = len({target.kinds for target in asked}) == 1
        kinds = list(dict.fromkeys(kind for target in asked for kind in target.kinds))
        columns = (*(kinds if alike else sorted(kinds)), UNANSWERED)
        counts: dict[str, dict[str, int]] = {}
        for target in asked:
            row = counts.setdefault(_row(target, alike), dict.fromkeys(columns, 0))
            pick = first_pick(target, answers)
            row[UNANSWERED if pick is None else target.kinds[pick]] += 1
        rows = tuple(name for name in (columns if alike else sorted(counts)) if name in counts)
        table = tuple(tuple(counts[row][column] for column in columns) for row in rows)
        made.append(ChoiceConfusion(task=task, alike=alike, rows=rows, columns=columns, counts=table))
    return made


def _row(target: Target, alike: bool) -> str:
    return target.kinds[target.right[0]] if alike else f"of {target.options} options"
