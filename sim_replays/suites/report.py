"""A complete score: figures, outcomes and notes; and the results of the suites' papers, as data with sources."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, model_validator

from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.config import Config, load_config
from norm_core.runtime.wording import count_of, to_words
from scoring.figures import Figure, Figures, estimate_difference, estimate_share
from sim_replays.items.target import (
    PredictionFile,
    Predictions,
    ReplyReading,
    Target,
    first_few,
    picks_target,
)
from sim_replays.suites.suite import RANGES, Suite

MISSING = "missing"
# Two kinds of figure, which never share a table.
ROBOT_KIND, MODEL_KIND = "robot", "model"
KINDS = {MODEL_KIND: "the model alone", ROBOT_KIND: "the robot: the model inside our steps"}
CONTROL = "control"


@record
class Headline:
    """What a run adds to its control, in points of one figure."""

    name: str
    value: Figure
    control: Figure
    difference: Figure


@record
class Report:
    """`outcomes` count questions, also by task. Notes are cautions for the reader.

    Controls saw no input, or are another run. `kind` is robot or model; empty for predictions of a file.
    `read_leniently` counts replies that were understood without the asked form.
    """

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
    kind: str = ""
    headline: Headline | None = None
    read_leniently: int = 0


def report(
    suite: Suite,
    targets: Sequence[Target],
    read: PredictionFile,
    control: Predictions | None = None,
    by_options: Mapping[str, Predictions] | None = None,
) -> Report:
    """Compute the figures over all targets, answered or not, beside controls that answered the same questions."""
    answered = {**({CONTROL: control} if control else {}), **(by_options or {})}
    by_task: dict[str, Counter[str]] = {}
    for target in targets:
        prediction = read.predictions.get(target.key)
        by_task.setdefault(target.task, Counter())[prediction.outcome.value if prediction else MISSING] += 1
    total: Counter[str] = sum(by_task.values(), Counter())
    breakdown = {
        name: {
            value: suite.figures([target for target in targets if target.by.get(name) == value], read.predictions)
            for value in sorted({target.by.get(name, "") for target in targets})
        }
        for name in suite.broken_down_by
    }
    figures = suite.figures(targets, read.predictions)
    controls = {name: suite.figures(targets, predictions) for name, predictions in answered.items()}
    headline = _headline(suite, targets, read.predictions, control) if control else None
    return Report(
        suite=suite.name,
        figures=figures,
        items=len({target.id for target in targets}),
        questions=len(targets),
        outcomes=_counts(total),
        outcomes_by_task={task: _counts(counts) for task, counts in by_task.items()},
        breakdown=breakdown,
        controls={**controls, **{name: compute(suite, targets) for name, compute in suite.controls.items()}},
        unknown=read.unknown,
        notes=tuple(_notes(suite, len(targets), total, by_task, read)),
        headline=headline,
        read_leniently=read.readings[ReplyReading.LENIENT],
    )


def _headline(suite: Suite, targets: Sequence[Target], ours: Predictions, control: Predictions) -> Headline:
    """Compare the suite's first figure, item by item, with a control."""
    name = suite.columns[0]
    tasks = suite.joint.get(name) or suite.tasks[:1]
    if len(suite.tasks) > 1 and name not in suite.joint:  # such as an F1, which is no share of items
        name = f"accuracy of {tasks[0]}"
    rights: dict[str, list[list[float]]] = {}
    groups = {}
    for target in targets:
        if target.task in tasks:
            marks = [float(picks_target(target, answers) == target.right) for answers in (ours, control)]
            rights.setdefault(target.id, []).append(marks)
            groups[target.id] = target.group
    pairs = [[min(marks) for marks in zip(*of_item, strict=True)] for of_item in rights.values()]
    values = [estimate_share([pair[place] for pair in pairs], list(groups.values())) for place in range(2)]
    gains = estimate_difference([mine - theirs for mine, theirs in pairs], list(groups.values()))
    return Headline(name=name, value=values[0], control=values[1], difference=gains)


def to_plain(scored: Report) -> dict[str, Any]:
    """Convert to JSON: figures by name in percent, null where nothing was counted."""
    figures, headline = scored.figures, scored.headline
    return {
        "suite": scored.suite,
        **_values(figures),
        "n": scored.items,
        "questions": scored.questions,
        "counts": {name: figure.count for name, figure in figures.items()},
        "intervals": {
            name: [round(figure.low, 4), round(figure.high, 4)] if figure.count else None
            for name, figure in figures.items()
        },
        "outcomes": dict(scored.outcomes),
        "outcomes_by_task": {task: dict(counts) for task, counts in scored.outcomes_by_task.items()},
        "breakdown": {
            name: {value: _values(group) for value, group in groups.items()}
            for name, groups in scored.breakdown.items()
        },
        "kind": scored.kind,
        "headline": headline
        and {
            "figure": headline.name,
            "value": _value(headline.value),
            "control": _value(headline.control),
            "difference": _value(headline.difference),
            "interval": [round(headline.difference.low, 4), round(headline.difference.high, 4)],
        },
        "read_leniently": scored.read_leniently,
        "controls": {name: _values(control) for name, control in scored.controls.items()},
        "unknown_ids": list(scored.unknown),
        "notes": list(scored.notes),
    }


def _values(figures: Figures) -> dict[str, float | None]:
    return {name: _value(figure) for name, figure in figures.items()}


def _value(figure: Figure) -> float | None:
    return round(figure.value, 4) if figure.count else None


def _counts(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in (*map(str, Outcome), MISSING)}


def _notes(
    suite: Suite,
    questions: int,
    total: Counter[str],
    by_task: Mapping[str, Counter[str]],
    read: PredictionFile,
) -> list[str]:
    notes = []
    answered = total[Outcome.ANSWERED]
    if not answered:
        outcomes = ", ".join(f"{count} {to_words(name)}" for name, count in total.items())
        notes.append(f"nothing was answered ({outcomes}): the score is 0, and not that of chance")
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
        notes.append(f"{count_of(len(read.unknown), 'id')} not in the data, and left out: {first_few(read.unknown)}")
    if read.unusable:
        notes.append(
            f"{count_of(len(read.unusable), 'answer')} not usable, and counted as unparsed: {first_few(read.unusable)}"
        )
    if lenient := read.readings[ReplyReading.LENIENT]:
        notes.append(f"{lenient} of {count_of(answered, 'answer')} were read leniently: they had not the asked form")
    if suite.ranges != RANGES:
        notes.append(f"what stands beside a figure is its {suite.ranges}, and no interval of 95 %")
    return notes


Row = tuple[float, ...]


class PublishedTable(Config):
    """One table, with a value per column in percent or out of 5. Spreads stand beside values where reported.

    `variant` holds the task arguments that its rows were asked with, where they differ from another table's.
    """

    source: str
    variant: dict[str, str] = Field(default_factory=dict)
    columns: tuple[str, ...]
    rows: dict[str, Row]
    spreads: dict[str, Row] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _whole(self) -> "PublishedTable":
        for name, values in (*self.rows.items(), *self.spreads.items()):
            if len(values) != len(self.columns):
                raise ValueError(f"{name} has {len(values)} values for {len(self.columns)} columns")
        return self

    def cells(self, row: str, columns: tuple[str, ...]) -> list[str]:
        """Format the row's values in column order. Empty where the paper reports none."""
        values = dict(zip(self.columns, self.rows[row], strict=True))
        spreads = dict(zip(self.columns, self.spreads[row], strict=True)) if row in self.spreads else {}
        cells_by_name = {name: f"{value:g}" for name, value in values.items()}
        cells_by_name |= {name: f"{cells_by_name[name]} ± {spread:g}" for name, spread in spreads.items()}
        return [cells_by_name.get(column, "") for column in columns]


class Published(Config):
    """The tables of one paper, the main one first. `columns` are those of each."""

    columns: tuple[str, ...]
    tables: tuple[PublishedTable, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _columns_of_each(cls, plain: Any) -> Any:
        tables = [{"columns": plain.get("columns"), **table} for table in plain.get("tables", ())]
        return {**plain, "tables": tables}


def published_results(suite: Suite, variant: Mapping[str, Any] | None = None) -> tuple[PublishedTable, ...]:
    """Load the tables of a suite's paper, all of them or those of a run's variant."""
    tables = load_config(Published, suite.published).tables if suite.published else ()
    return tuple(
        table
        for table in tables
        if variant is None or all(variant.get(name) == value for name, value in table.variant.items())
    )
