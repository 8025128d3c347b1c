"""The tables of `tactful bench` in a terminal: one run's score, and runs beside each other and published rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from norm_core.records.json_codec import to_plain
from norm_core.records.outcome import Outcome
from norm_core.runtime.config import check_config
from norm_core.runtime.json_lines import RunError
from norm_core.runtime.wording import count_of, in_words
from scoring.figures import Figures
from sim_replays.items.run_config import RunConfig, part_of
from sim_replays.runs.results.run_folder import Run, compare, finish, first_differing_question, open_run, why_not_paired
from sim_replays.suites.report import KINDS, MODEL_KIND, Headline, Report, published_results
from sim_replays.suites.report import to_plain as report_plain
from sim_replays.suites.suite import Suite, suite_called, suites
from tactful_cli.console import complain, print_json, print_table, show

# The first and the last columns of a leaderboard.
ASKED = ("run", "model", "setting", "prompt", "items", "text from an oracle")
COUNTED = ("over random model", "n", "unanswered")
PUBLISHED = "published"
TITLES = {**KINDS, PUBLISHED: "published: models alone, on the paper's data"}


def show_report(suite: Suite, scores: Report, as_json: bool = False) -> None:
    """Print the figures with intervals, then outcomes and notes. With JSON, notes also go to standard error."""
    if as_json:
        for note in scores.notes:
            complain(note)
        print_json(report_plain(scores))
        return
    if scores.headline:
        show(_headline(scores.headline))
    kind = f"{KINDS[scores.kind]}: " if scores.kind else ""
    title = f"{suite.name}, {kind}{count_of(scores.items, 'item')}"
    table = Table("figure", "value", suite.ranges, "n", *scores.controls, title=title)
    for name in suite.columns:
        figure = scores.figures[name]
        unit = "" if figure.unit == "%" else f" {figure.unit}"
        shown = (f"{figure.value:.1f}{unit}", f"{figure.low:.1f} to {figure.high:.1f}") if figure.count else ("-", "-")
        beside = [control[name] for control in scores.controls.values()]
        table.add_row(
            name, *shown, str(figure.count), *(f"{column.value:.1f}" if column.count else "-" for column in beside)
        )
    print_table(table)
    show(f"{count_of(scores.questions, 'question')}: {_counts(scores.outcomes)}")
    for task, outcomes in scores.outcomes_by_task.items():
        if len(scores.outcomes_by_task) > 1 and outcomes[Outcome.ANSWERED] < sum(outcomes.values()):
            show(f"  {task}: {_counts(outcomes)}")
    for note in scores.notes:
        show(f"note: {note}")


def show_runs(folders: list[Path], as_json: bool, *, by: str = "") -> None:
    """Print one row per run, scored again from its raw answers, or per group; then controls and published rows.

    Two runs of one kind and the same questions are compared item by item as well.
    """
    runs = [open_run(folder) for folder in folders]
    names = {run.key.suite for run in runs}
    if len(names) != 1:
        raise RunError(f"the runs are of {', '.join(sorted(names))}: compare those of one suite")
    suite = suite_called(names.pop())
    reports = {run.folder: finish(run) for run in runs}
    unpaired = why_not_paired(*runs) if len(runs) == 2 else ""
    pair = (runs[0], runs[1]) if len(runs) == 2 and not unpaired else None
    differing = first_differing_question(*pair) if pair else None
    if as_json:
        plain: dict[str, Any] = {
            "runs": [{"run": run.name, **described(run), **report_plain(reports[run.folder])} for run in runs]
        }
        if pair:
            plain |= {"tasks": to_plain(compare(*pair)), "parity": differing is None, "first": differing}
        if unpaired:
            plain["not_paired"] = unpaired
        print_json(plain)
        return
    columns: tuple[str, ...] = suite.columns
    rows = []
    for run in sorted(runs, key=lambda run: bool(part_of(_asking(run)))):  # whole ones first
        rows += _rows_of(run, reports[run.folder], by)
    published = published_results(suite)
    if published and any(row["kind"] == MODEL_KIND for row in rows):
        paper = published.tables[0]
        columns = tuple(dict.fromkeys((*columns, *paper.columns)))
        for name in paper.rows:
            cells = dict(zip(columns, paper.cells(name, columns), strict=True))
            rows.append({"kind": PUBLISHED, "run": f"{name} ({paper.source})", **cells})
    _show_rows([*ASKED, *columns, *COUNTED], rows)
    for run in runs:
        for note in reports[run.folder].notes:
            show(f"note: {run.name}: {note}")
    if pair:
        _show_pair(*pair, differing)
    if unpaired:
        show(unpaired)


def _rows_of(run: Run, report: Report, by: str) -> list[dict[str, str]]:
    """Make the row of a run, and those of its groups and controls, by the heads of the table."""
    asked = {"kind": report.kind, "run": run.name, **dict(zip(ASKED[1:], described(run).values(), strict=True))}
    beside = {**asked, "n": str(report.items)}
    own = {"unanswered": str(report.questions - report.outcomes["answered"])}
    if report.headline:
        own["over random model"] = str(report.headline.difference)
    if by and by not in report.breakdown:
        breakdowns = ", ".join(report.breakdown) or "nothing"
        raise RunError(f"{report.suite} is not broken down by {by!r}; it is by {breakdowns}")
    rows = [{**beside, **own, **_cells(report.figures)}]
    for value, figures in report.breakdown[by].items() if by else ():
        count = str(next(iter(figures.values())).count)
        rows.append({**beside, "run": f"{run.name}, {by} {value}", "n": count, **_cells(figures)})
    for name, figures in report.controls.items():
        rows.append({**beside, "run": f"{name} ({run.name})", "model": name, **_cells(figures)})
    return rows


def described(run: Run) -> dict[str, str]:
    """Describe what a run asked: model, setting, prompt, the part of the items, and text that an oracle gave."""
    asking = _asking(run)
    prompt = [getattr(asking, name) for name in ("style", "sampling", "frames", "precedents")]
    whose = "paper's" if asking.bare else "ours"
    if asking.bare and run.key.suite not in suites():  # it has no paper
        whose, prompt = "the suite's", [part for part in prompt if part not in {"default", "paper", "discrete"}]
    return {
        "model": str(run.config.get("model", "")),
        "setting": asking.setting,
        "prompt": ": ".join(filter(None, (whose, ", ".join(filter(None, prompt))))),
        "items": ", ".join(part_of(asking)) or "all",
        "text_given": suite_called(run.key.suite).given.get(asking.setting, ""),
    }


def _asking(run: Run) -> RunConfig:
    return check_config(RunConfig, run.config["asking"], f"{run.folder}/config.json")


def _show_rows(heads: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
    """Print one table for each kind, and apart where only a part of the items was asked."""
    tables: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        part = ", a part of the items" if row.get("items", "all") != "all" else ""
        tables.setdefault(f"{TITLES[row['kind']]}{part}", []).append(row)
    for title, of_table in tables.items():
        used = [head for head in heads if any(row.get(head) for row in of_table)]
        _print(used, [[row.get(head, "") for head in used] for row in of_table], title=title)


def _counts(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {in_words(name)}" for name, count in outcomes.items() if count)


def _cells(figures: Figures) -> dict[str, str]:
    return {name: str(figure) for name, figure in figures.items()}


def _headline(headline: Headline) -> str:
    gain = headline.difference
    beside = f"{headline.value.value:.1f} against {headline.at_random.value:.1f} %"
    return (
        f"over the same steps with a model that answers at random: {headline.name} {gain.value:+.1f} points "
        f"[{gain.low:+.1f}, {gain.high:+.1f}] ({beside})"
    )


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
        show("parity: every outcome, answer, probability and digest is the same")
    else:
        show(f"the first difference is in {differing['query_id']}: {', '.join(differing['differs_in'])}")
        show(f"  {first.name}: {differing['first']}\n  {second.name}: {differing['second']}")


def _print(head: list[str], rows: list[list[str]], title: str = "") -> None:
    table = Table(*head, title=title or None)
    for row in rows:
        table.add_row(*row)
    print_table(table)
