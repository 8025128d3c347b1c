"""The tables of `tactful bench` in a terminal: one run's score, and runs beside each other and published rows."""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from norm_core.evaluation.figures import Figures
from norm_core.records.json_codec import to_plain
from norm_core.records.outcome import Outcome
from norm_core.runtime.wording import count_of, in_words
from sim_replays.runs.results.compare import compare, first_differing_question
from sim_replays.runs.results.reliability import measure_calibration
from sim_replays.runs.results.run_folder import Run, RunError, finish, open_run
from sim_replays.suites.published import PublishedTable, published_results
from sim_replays.suites.report import Report
from sim_replays.suites.report import to_plain as report_plain
from sim_replays.suites.suite import Suite, suite_called
from tactful_cli.console import complain, print_json, print_table

Rows = Sequence[Sequence[str]]


def markdown(head: Sequence[str], rows: Rows) -> str:
    """Format rows as a Markdown table, with pipes escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def comma_separated(head: Sequence[str], rows: Rows) -> str:
    """Format rows as CSV, without a final line break."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue().rstrip("\n")


def latex(head: Sequence[str], rows: Rows) -> str:
    """Format rows as a LaTeX tabular, the first column to the left."""
    body = "\n".join(f"{' & '.join(map(_escaped, row))} \\\\" for row in rows)
    columns = "l" + "r" * (len(head) - 1)
    top = f"{' & '.join(map(_escaped, head))} \\\\"
    return f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{top}\n\\hline\n{body}\n\\hline\n\\end{{tabular}}"


FORMATS: dict[str, Callable[[Sequence[str], Rows], str]] = {
    "markdown": markdown,
    "csv": comma_separated,
    "latex": latex,
}


# Special characters of LaTeX, and their escapes.
_LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "\\": "\\textbackslash{}",
}


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def show_report(suite: Suite, found: Report, as_json: bool = False) -> None:
    """Print the figures with intervals, then outcomes and notes. With JSON, notes also go to standard error."""
    if as_json:
        for note in found.notes:
            complain(note)
        print_json(report_plain(found))
        return
    table = Table(
        "figure", "value", suite.ranges, "n", *found.controls, title=f"{suite.name}: {count_of(found.items, 'item')}"
    )
    for name in suite.columns:
        figure = found.figures[name]
        unit = "" if figure.unit == "%" else f" {figure.unit}"
        shown = (f"{figure.value:.1f}{unit}", f"{figure.low:.1f} to {figure.high:.1f}") if figure.count else ("-", "-")
        beside = [one[name] for one in found.controls.values()]
        table.add_row(name, *shown, str(figure.count), *(f"{one.value:.1f}" if one.count else "-" for one in beside))
    print_table(table)
    counts = ", ".join(f"{count} {in_words(name)}" for name, count in found.outcomes.items() if count)
    print(f"{count_of(found.questions, 'question')}: {counts}")
    for task, outcomes in found.outcomes_by_task.items():
        if len(found.outcomes_by_task) > 1 and outcomes[Outcome.ANSWERED] < sum(outcomes.values()):
            counts = ", ".join(f"{count} {in_words(name)}" for name, count in outcomes.items() if count)
            print(f"  {task}: {counts}")
    for note in found.notes:
        print(f"note: {note}")


def show_runs(folders: list[Path], form: str, as_json: bool, *, by: str = "", table: str = "") -> bool:
    """Print one row per run, scored again from its raw answers, or per group; then controls and published rows.

    Two runs of the same questions are compared item by item as well. Returns whether they are equal.
    """
    runs = [open_run(folder) for folder in folders]
    suites = {run.key.suite for run in runs}
    if len(suites) != 1:
        raise RunError(f"the runs are of {', '.join(sorted(suites))}: compare those of one suite")
    suite = suite_called(suites.pop())
    reports = {run.folder: finish(run) for run in runs}
    # The controls saw nothing, so they are equal for all runs of the same questions.
    is_same_questions = all(run.key.targets == runs[0].key.targets for run in runs)
    pair = (runs[0], runs[1]) if len(runs) == 2 and is_same_questions else None
    differing = first_differing_question(*pair) if pair else None
    if as_json:
        plain: dict[str, Any] = {
            "runs": [
                {
                    "run": run.name,
                    **report_plain(reports[run.folder]),
                    "calibration": to_plain(measure_calibration(run)),
                }
                for run in runs
            ]
        }
        if pair:
            plain |= {"tasks": to_plain(compare(*pair)), "parity": differing is None, "first": differing}
        print_json(plain)
        return pair is not None and differing is None
    published = published_results(suite)
    paper = published.table(table) if published else None
    columns = tuple(dict.fromkeys((*suite.columns, *(paper.columns if paper else ()))))
    rows: list[list[str]] = []
    for run in runs:
        report = reports[run.folder]
        unanswered = report.questions - report.outcomes["answered"]
        rows.append([run.name, *_cells(report.figures, columns), str(report.items), str(unanswered)])
        rows += _groups(report, run.name, by, columns)
    controls = {
        name if is_same_questions else f"{name} ({run.name})": figures
        for run in runs
        for name, figures in reports[run.folder].controls.items()
    }
    rows += [[name, *_cells(figures, columns), "", ""] for name, figures in controls.items()]
    rows += _published(paper, columns)
    head = ["run", *columns, "n", "unanswered"]
    if form != "terminal":
        print(FORMATS[form](head, rows))
    else:
        _print(head, rows)
        if pair:
            _show_pair(*pair, differing)
    return pair is not None and differing is None


def _published(paper: PublishedTable | None, columns: tuple[str, ...]) -> list[list[str]]:
    return [[f"{name} ({paper.source})", *paper.cells(name, columns), "", ""] for name in paper.rows] if paper else []


def _cells(figures: Figures, columns: tuple[str, ...]) -> list[str]:
    return [str(figures[column]) if column in figures else "" for column in columns]


def _show_pair(first: Run, second: Run, differing: dict[str, Any] | None) -> None:
    head = ["task", "n", first.name, second.name, "difference", "95 % interval", "only 1st", "only 2nd", "p"]
    rows = []
    for row in compare(first, second):
        values = (f"{row.first:.1f}", f"{row.second:.1f}", f"{row.difference:+z.1f}")
        interval = f"{row.low:+z.1f} to {row.high:+z.1f}"
        counts = (str(row.only_first_right), str(row.only_second_right))
        rows.append([row.task, str(row.count), *values, interval, *counts, f"{row.p:.3g}"])
    _print(head, rows)
    if differing is None:
        print("parity: every outcome, answer, probability and digest is the same")
    else:
        print(f"the first difference is in {differing['query_id']}: {', '.join(differing['differs_in'])}")
        print(f"  {first.name}: {differing['first']}\n  {second.name}: {differing['second']}")


def _print(head: list[str], rows: list[list[str]]) -> None:
    table = Table(*head)
    for row in rows:
        table.add_row(*row)
    print_table(table)


def _groups(found: Report, run: str, by: str, columns: tuple[str, ...]) -> list[list[str]]:
    """One row per group, such as a norm's category or a show, with its number of questions."""
    if not by:
        return []
    if by not in found.breakdown:
        known = ", ".join(found.breakdown) or "nothing"
        raise RunError(f"{found.suite} is not broken down by {by!r}; it is by {known}")
    return [
        [f"{run}, {by} {value}", *_cells(figures, columns), str(next(iter(figures.values())).count), ""]
        for value, figures in found.breakdown[by].items()
    ]
