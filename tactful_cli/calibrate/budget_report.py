"""What `tactful calibrate budget` measured, and how it is printed."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from norm_core.records.json_codec import to_plain
from norm_core.records.record import record
from tactful_cli.calibrate.budget_check import ComparedForecast
from tactful_cli.calibrate.budget_parts import PartTiming
from tactful_cli.calibrate.budget_plan import BudgetPlan, BudgetWishes, JudgeTrial, allowed_ms
from tactful_cli.console import print_table

# Below so many runs at the live pace, p95 is their maximum, and that of the runs alone counts if it is larger.
_FEW = 10


@record
class MeasuredBudget:
    """What each part takes, alone and beside the others, and the judge's trials."""

    alone: Mapping[str, PartTiming]
    beside: Mapping[str, PartTiming]
    cores_used: float  # by the senses at the live pace
    real_time_factor: float | None
    sentence: PartTiming | None
    trials: tuple[JudgeTrial, ...]
    judge: Mapping[str, Any]
    load: float

    @property
    def senses(self) -> dict[str, PartTiming]:
        """The figures that the forecast rests on."""
        return {name: forecast_of(self.alone[name], self.beside.get(name)) for name in self.alone}


def forecast_of(by_itself: PartTiming, beside: PartTiming | None) -> PartTiming:
    """Return the figures beside the others, unless they are few and better than those alone."""
    if beside and (beside.count >= _FEW or beside.p95_ms > by_itself.p95_ms):
        return beside
    return by_itself


def plain(
    measured: MeasuredBudget, plan: BudgetPlan, wishes: BudgetWishes, compared: Sequence[ComparedForecast]
) -> dict[str, Any]:
    """Return all as values for JSON."""
    return {
        "measured": to_plain(measured),
        "plan": to_plain(plan),
        "wishes": to_plain(wishes),
        "check": [to_plain(one) | {"error": one.error} for one in compared],
    }


def show(
    measured: MeasuredBudget, plan: BudgetPlan, wishes: BudgetWishes, compared: Sequence[ComparedForecast]
) -> None:
    """Print what was measured, what is proposed and what limits it."""
    table = Table("part", "alone p50", "p95", "beside the others p50", "p95 ms", "runs")
    for name, timing in measured.alone.items():
        table.add_row(name, *_cells(timing), *_cells(measured.beside.get(name)), str(timing.count))
    if measured.sentence:
        table.add_row("sentence", *_cells(measured.sentence), "", "", str(measured.sentence.count))
    for trial in measured.trials:
        name = f"{trial.model}, {trial.pictures} pictures, {trial.length_s:g} s"
        table.add_row(name, "", "", *_cells(trial.timing), str(trial.timing.count if trial.timing else 0))
    print_table(table)
    if measured.real_time_factor is not None:
        print(f"Whisper takes {measured.real_time_factor:.2f} s for a second of the sound, partial texts included")
    if rate := measured.judge.get("read_tokens_per_s"):
        print(f"{plan.model} reads {rate:.0f} tokens a second, and scores in {measured.judge['score_s'] or 0:.2f} s")
    print(
        f"from the end of a turn: {plan.total_p95_ms / 1e3:.2f} s in p95 of {allowed_ms(wishes) / 1e3:.1f} s allowed; "
        f"{plan.cores_used:.2f} of {wishes.cores} cores; load of the machine meanwhile: {measured.load:.1f}"
    )
    for limit in plan.limits:
        print(f"limit: {limit}")
    for node, values in plan.settings.items():
        print(f"{node}: {', '.join(f'{name} {value}' for name, value in values.items())}")
    for one in compared:
        print(
            f"{one.name}: forecast {one.forecast_ms:.1f} ms, measured {one.measured_ms:.1f} ms over {one.count}: "
            f"{one.error:+.0%}"
        )


def _cells(timing: PartTiming | None) -> tuple[str, str]:
    return (f"{timing.p50_ms:.1f}", f"{timing.p95_ms:.1f}") if timing else ("", "")
