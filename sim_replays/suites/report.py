"""A complete score: figures, outcomes and notes; and the tables of the suites' papers, with their sources."""

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
    find_picks,
    list_first,
)
from sim_replays.suites.suite import INTERVAL_LABEL, Suite

Row = tuple[float, ...]

MISSING = "missing"  # the outcome of a question without a prediction
ROBOT_KIND = "robot"
MODEL_KIND = "model"
# Figures of the two kinds never share a table.
KINDS = {MODEL_KIND: "the model alone", ROBOT_KIND: "the robot: the model inside our steps"}
CONTROL = "control"
_DECIMALS = 4  # of figures in JSON


@record
class Headline:
    """The gain of a run over its control, in points of one figure."""

    name: str
    value: Figure
    control: Figure
    difference: Figure


@record
class Report:
    """The score of a run or of a file of predictions.

    - `outcomes` count questions, also by task. `unknown` are ids that are not in the data.
    - `controls` saw no input, or are another run.
    - `notes` are cautions for the reader. `kind` is robot or model; empty for a file of predictions.
    - `read_leniently` counts replies that were understood without the asked form.
    """

    suite: str
    figures: Figures
    items: int
    questions: int
    outcomes: Mapping[str, int]
    outcomes_by_task: Mapping[str, Mapping[str, int]]
    controls: Mapping[str, Figures]
    unknown: tuple[str, ...]
    notes: tuple[str, ...]
    kind: str = ""
    headline: Headline | None = None
    read_leniently: int = 0


def make_report(
    suite: Suite,
    targets: Sequence[Target],
    prediction_file: PredictionFile,
    control: Predictions | None = None,
    option_choices: Mapping[str, Predictions] | None = None,
) -> Report:
    """Compute the figures over all targets, answered or not, beside controls that answered the same questions."""
    predictions = prediction_file.predictions
    counts_by_task: dict[str, Counter[str]] = {}
    for target in targets:
        prediction = predictions.get(target.key)
        outcome = prediction.outcome.value if prediction else MISSING
        counts_by_task.setdefault(target.task, Counter())[outcome] += 1
    total: Counter[str] = sum(counts_by_task.values(), Counter())
    controls = {CONTROL: suite.compute_figures(targets, control)} if control else {}
    for name, choices in (option_choices or {}).items():
        controls[name] = suite.compute_figures(targets, choices)
    for name, compute_control in suite.controls.items():
        controls[name] = compute_control(suite, targets)
    return Report(
        suite=suite.name,
        figures=suite.compute_figures(targets, predictions),
        items=len({target.id for target in targets}),
        questions=len(targets),
        outcomes=_list_counts(total),
        outcomes_by_task={task: _list_counts(counts) for task, counts in counts_by_task.items()},
        controls=controls,
        unknown=prediction_file.unknown,
        notes=tuple(_write_notes(suite, len(targets), total, counts_by_task, prediction_file)),
        headline=_make_headline(suite, targets, predictions, control) if control else None,
        read_leniently=prediction_file.readings[ReplyReading.LENIENT],
    )


def _make_headline(suite: Suite, targets: Sequence[Target], run: Predictions, control: Predictions) -> Headline:
    """Compare the first figure of the suite, item by item, with that of a control."""
    name = suite.columns[0]
    tasks = suite.joint_tasks.get(name) or suite.tasks[:1]
    if len(suite.tasks) > 1 and name not in suite.joint_tasks:  # such as an F1, which is not a share of items
        name = f"accuracy of {tasks[0]}"
    group_by_item = {target.id: target.group for target in targets if target.task in tasks}
    run_scores = dict.fromkeys(group_by_item, 1.0)
    control_scores = dict.fromkeys(group_by_item, 1.0)
    for target in targets:
        if target.task in tasks:  # An item is right only if it is right in each task.
            run_scores[target.id] *= find_picks(target, run) == target.right
            control_scores[target.id] *= find_picks(target, control) == target.right
    groups = list(group_by_item.values())
    gains = [run_scores[item] - control_scores[item] for item in group_by_item]
    return Headline(
        name=name,
        value=estimate_share(list(run_scores.values()), groups),
        control=estimate_share(list(control_scores.values()), groups),
        difference=estimate_difference(gains, groups),
    )


def report_to_plain(report: Report) -> dict[str, Any]:
    """Convert a report to JSON: figures by name in percent, null where nothing was counted."""
    figures = report.figures
    headline = report.headline
    return {
        "suite": report.suite,
        **_round_figures(figures),
        "n": report.items,
        "questions": report.questions,
        "counts": {name: figure.count for name, figure in figures.items()},
        "intervals": {
            name: [round(figure.low, _DECIMALS), round(figure.high, _DECIMALS)] if figure.count else None
            for name, figure in figures.items()
        },
        "outcomes": dict(report.outcomes),
        "outcomes_by_task": {task: dict(counts) for task, counts in report.outcomes_by_task.items()},
        "kind": report.kind,
        "headline": headline
        and {
            "figure": headline.name,
            "value": _round_figure(headline.value),
            "control": _round_figure(headline.control),
            "difference": _round_figure(headline.difference),
            "interval": [round(headline.difference.low, _DECIMALS), round(headline.difference.high, _DECIMALS)],
        },
        "read_leniently": report.read_leniently,
        "controls": {name: _round_figures(control) for name, control in report.controls.items()},
        "unknown_ids": list(report.unknown),
        "notes": list(report.notes),
    }


def _round_figures(figures: Figures) -> dict[str, float | None]:
    return {name: _round_figure(figure) for name, figure in figures.items()}


def _round_figure(figure: Figure) -> float | None:
    return round(figure.value, _DECIMALS) if figure.count else None


def _list_counts(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in (*map(str, Outcome), MISSING)}


def _write_notes(
    suite: Suite,
    questions: int,
    total: Counter[str],
    counts_by_task: Mapping[str, Counter[str]],
    prediction_file: PredictionFile,
) -> list[str]:
    """Write the cautions for the reader: what was not answered, not usable or read leniently."""
    notes = []
    answered = total[Outcome.ANSWERED]
    if not answered:
        outcomes = ", ".join(f"{count} {to_words(name)}" for name, count in total.items())
        notes.append(f"nothing was answered ({outcomes}): the score is 0, which is not that of chance")
    elif answered < questions:
        notes.append(
            f"{questions - answered} of {count_of(questions, 'question')} were not answered, and count as wrong"
        )
    notes += [
        f"the task {task} has no answer in the file, and counts as missing"
        for task, counts in counts_by_task.items()
        if answered and counts[MISSING] == counts.total()
    ]
    if unknown := prediction_file.unknown:
        notes.append(f"{count_of(len(unknown), 'id')} not in the data, and left out: {list_first(unknown)}")
    if unusable := prediction_file.unusable:
        notes.append(f"{count_of(len(unusable), 'answer')} not usable, and counted as unparsed: {list_first(unusable)}")
    if lenient := prediction_file.readings[ReplyReading.LENIENT]:
        notes.append(f"{lenient} of {count_of(answered, 'answer')} were read leniently, as they had not the asked form")
    if coerced := prediction_file.readings[ReplyReading.COERCED]:
        notes.append(f"{coerced} of {count_of(answered, 'answer')} were read by a model of the role coercer")
    if suite.interval_label != INTERVAL_LABEL:
        notes.append(f"beside a figure is its {suite.interval_label}, and not an interval of 95 %")
    return notes


class PublishedTable(Config):
    """One table of a paper. Values are in percent or out of 5, with their spreads where the paper has them.

    `variant` holds the task arguments of its rows, where they differ from those of another table.
    """

    source: str
    variant: dict[str, str] = Field(default_factory=dict)
    columns: tuple[str, ...]
    rows: dict[str, Row]
    spreads: dict[str, Row] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_lengths(self) -> "PublishedTable":
        for name, values in (*self.rows.items(), *self.spreads.items()):
            if len(values) != len(self.columns):
                raise ValueError(f"{name} has {len(values)} values for {len(self.columns)} columns")
        return self

    def format_cells(self, row: str, columns: tuple[str, ...]) -> list[str]:
        """Format the values of a row in the order of columns; empty where the paper reports none."""
        values = dict(zip(self.columns, self.rows[row], strict=True))
        spreads = dict(zip(self.columns, self.spreads[row], strict=True)) if row in self.spreads else {}
        cells = {name: f"{value:g}" for name, value in values.items()}
        cells |= {name: f"{cells[name]} ± {spread:g}" for name, spread in spreads.items()}
        return [cells.get(column, "") for column in columns]


class Published(Config):
    """The tables of one paper, the main one first. `columns` are those of tables that state none."""

    columns: tuple[str, ...]
    tables: tuple[PublishedTable, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _give_columns_to_tables(cls, plain: Any) -> Any:
        tables = [{"columns": plain.get("columns"), **table} for table in plain.get("tables", ())]
        return {**plain, "tables": tables}


def load_published_tables(suite: Suite, variant: Mapping[str, Any] | None = None) -> tuple[PublishedTable, ...]:
    """Load the tables of a suite's paper: all of them, or those of the variant of a run."""
    tables = load_config(Published, suite.published).tables if suite.published else ()
    return tuple(
        table
        for table in tables
        if variant is None or all(variant.get(name) == value for name, value in table.variant.items())
    )
