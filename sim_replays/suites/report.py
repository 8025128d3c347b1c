"""A complete score: figures, outcomes and notes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from norm_core.evaluation.figures import Figure, Figures, average
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.wording import count_of, in_words
from sim_replays.suites.controls import DRAWN, DRAWS
from sim_replays.suites.predictions import PredictionFile, prediction_by_name
from sim_replays.suites.suite import RANGES, Suite
from sim_replays.suites.target import Target

MISSING = "missing"


@record
class Report:
    """`outcomes` count questions, also by task. Controls saw no input. Notes are cautions for the reader."""

    suite: str
    figures: Figures
    items: int
    questions: int
    outcomes: Mapping[str, int]
    outcomes_by_task: Mapping[str, Mapping[str, int]]
    breakdown: Mapping[str, Mapping[str, Figures]]
    controls: Mapping[str, Figures]
    unknown: tuple[str, ...]
    notes: tuple[str, ...]


def report(suite: Suite, targets: Sequence[Target], read: PredictionFile) -> Report:
    """Compute the figures over all targets, answered or not."""
    by_task: dict[str, Counter[str]] = {}
    for target in targets:
        found = read.predictions.get(target.key)
        by_task.setdefault(target.task, Counter())[found.outcome.value if found else MISSING] += 1
    total: Counter[str] = sum(by_task.values(), Counter())
    breakdown = {
        name: {
            value: suite.figures([target for target in targets if target.by.get(name) == value], read.predictions)
            for value in sorted({target.by.get(name, "") for target in targets})
        }
        for name in suite.broken_down_by
    }
    return Report(
        suite=suite.name,
        figures=suite.figures(targets, read.predictions),
        items=len({target.id for target in targets}),
        questions=len(targets),
        outcomes=_counts(total),
        outcomes_by_task={task: _counts(counts) for task, counts in by_task.items()},
        breakdown=breakdown,
        controls=figures_beside(suite, targets),
        unknown=read.unknown,
        notes=tuple(_notes(suite, len(targets), total, by_task, read)),
    )


def figures_beside(suite: Suite, targets: Sequence[Target]) -> dict[str, Figures]:
    """Score each control of a suite. A random one gives mean and spread over several draws."""
    found = {}
    for name, control in suite.controls.items():
        draws = DRAWS if control in DRAWN else 1
        found[name] = average([suite.figures(targets, control(targets, number)) for number in range(draws)])
    return found


def to_plain(found: Report) -> dict[str, Any]:
    """Convert to JSON: figures by name in percent, null where nothing was counted."""
    figures = found.figures
    return {
        "suite": found.suite,
        **_values(figures),
        "n": found.items,
        "questions": found.questions,
        "counts": {name: figure.count for name, figure in figures.items()},
        "intervals": {
            name: [round(figure.low, 4), round(figure.high, 4)] if figure.count else None
            for name, figure in figures.items()
        },
        "outcomes": dict(found.outcomes),
        "outcomes_by_task": {task: dict(counts) for task, counts in found.outcomes_by_task.items()},
        "breakdown": {
            name: {value: _values(one) for value, one in groups.items()} for name, groups in found.breakdown.items()
        },
        "controls": {name: _values(one) for name, one in found.controls.items()},
        "unknown_ids": list(found.unknown),
        "notes": list(found.notes),
    }


def with_notes(found: Report, *notes: str) -> Report:
    """Add notes."""
    return replace(found, notes=(*found.notes, *notes))


def _values(figures: Figures) -> dict[str, float | None]:
    return {name: _value(figure) for name, figure in figures.items()}


def _value(figure: Figure) -> float | None:
    return round(figure.value, 4) if figure.count else None


def _counts(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in (*map(str, Outcome), MISSING)}


def _notes(
    suite: Suite, questions: int, total: Counter[str], by_task: Mapping[str, Counter[str]], read: PredictionFile
) -> list[str]:
    notes = []
    answered = total[Outcome.ANSWERED]
    if not answered:
        said = ", ".join(f"{count} {in_words(name)}" for name, count in total.items())
        notes.append(f"nothing was answered ({said}): the score is 0, and not that of chance")
    elif answered < questions:
        notes.append(
            f"{questions - answered} of {count_of(questions, 'question')} were not answered, and count as wrong"
        )
    notes += [
        f"the task {task} has no answer in the file: it counts as missing"
        for task, counts in by_task.items()
        if answered and counts[MISSING] == counts.total()
    ]
    if read.unknown:
        notes.append(
            f"{count_of(len(read.unknown), 'id')} not in the data, and left out: {prediction_by_name(read.unknown)}"
        )
    if read.unusable:
        notes.append(
            f"{count_of(len(read.unusable), 'answer')} not usable, and "
            f"counted as unparsed: {prediction_by_name(read.unusable)}"
        )
    if suite.ranges != RANGES:
        notes.append(f"what stands beside a figure is its {suite.ranges}, and no interval of 95 %")
    return notes
