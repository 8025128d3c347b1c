"""`tactful bench compare`, `show` and `leaderboard`: set runs beside each other and beside published rows."""

from pathlib import Path

from rich.table import Table

from norm_core.records.json_codec import to_plain
from sim_replays.published import published_results
from sim_replays.runs.results.calibration import confusions, measure_calibration
from sim_replays.runs.results.compare import compare, first_differing_question
from sim_replays.runs.results.plot import picture
from sim_replays.runs.results.run_folder import RunError, finish, open_run, write_whole
from sim_replays.runs.results.tables import FORMATS
from sim_replays.suites.catalogue import suite_called
from sim_replays.suites.controls import CONTROLS
from sim_replays.suites.report import Report
from sim_replays.suites.report import to_plain as report_plain
from tactful_cli.console import print_json, print_table


def show_comparison(first: Path, second: Path, as_json: bool) -> bool:
    """Print the differences of two runs. Returns True where every answer, probability and digest is equal."""
    runs = open_run(first), open_run(second)
    rows, differing = compare(*runs), first_differing_question(*runs)
    if as_json:
        print_json({"tasks": [to_plain(row) for row in rows], "parity": differing is None, "first": differing})
        return differing is None
    table = Table("task", "n", first.name, second.name, "difference", "95 % interval", "only 1st", "only 2nd", "p")
    for row in rows:
        values = (f"{row.first:.1f}", f"{row.second:.1f}", f"{row.difference:+.1f}")
        interval = f"{row.low:+.1f} to {row.high:+.1f}"
        counts = (str(row.only_first_right), str(row.only_second_right))
        table.add_row(row.task, str(row.count), *values, interval, *counts, f"{row.mcnemar_p:.3g}")
    print_table(table)
    if differing is None:
        print("parity: every outcome, answer, probability and digest is the same")
    else:
        print(f"the first difference is in {differing['query_id']}: {', '.join(differing['differs_in'])}")
        print(f"  {first.name}: {differing['first']}\n  {second.name}: {differing['second']}")
    return differing is None


def show_runs(folders: list[Path], form: str, as_json: bool, *, table: str | None = None, by: str = "") -> None:
    """Print one row per run, scored again from its raw answers, or per group; then controls and published rows."""
    # Runs fitted on labels come last, because the others must not be compared with them.
    runs = sorted(map(open_run, folders), key=lambda run: run.is_fitted)
    suites = {run.key.suite for run in runs}
    if len(suites) != 1:
        raise RunError(f"the runs are of {', '.join(sorted(suites))}: show those of one suite together")
    suite = suite_called(suites.pop())
    reports = [(run.name, finish(run)) for run in runs]
    if as_json:
        told = [to_plain(measure_calibration(run)) for run in runs]
        print_json(
            [
                {"run": name, **report_plain(found), "calibration": one}
                for (name, found), one in zip(reports, told, strict=True)
            ]
        )
        return
    paper = None if table is None else published_results(suite.name).table(table)
    columns = tuple(dict.fromkeys((*suite.columns, *(paper.columns if paper else ()))))
    head = ["run", *columns, "n", "unanswered"]
    rows: list[list[str]] = []
    fitted: list[list[str]] = []
    for run, (name, found) in zip(runs, reports, strict=True):
        unanswered = found.questions - found.outcomes["answered"]
        figures = [str(found.figures[c]) if c in found.figures else "" for c in columns]
        its_rows = [[name, *figures, str(found.items), str(unanswered)], *_groups(found, name, by, columns)]
        (fitted if run.is_fitted else rows).extend(its_rows)
    # The controls saw nothing, so they are equal for all runs of the same questions.
    alike = all(run.key.targets == runs[0].key.targets for run in runs)
    controls = {
        name if alike and name in CONTROLS[suite.name] else f"{name} ({of})": figures
        for of, found in reports
        for name, figures in found.controls.items()
    }
    rows += [[name, *(str(one[c]) if c in one else "" for c in columns), "", ""] for name, one in controls.items()]
    if paper:
        rows += [[f"{name} ({paper.source})", *paper.cells(name, columns), "", ""] for name in paper.rows]
    rows += fitted
    if form != "terminal":
        print(FORMATS[form](head, rows))
        return
    shown = Table(*head)
    for row in rows:
        shown.add_row(*row)
    print_table(shown)


def _groups(found: Report, run: str, by: str, columns: tuple[str, ...]) -> list[list[str]]:
    """One row per group, such as a norm's category or a show, with its number of questions."""
    if not by:
        return []
    if by not in found.breakdown:
        known = ", ".join(found.breakdown) or "nothing"
        raise RunError(f"{found.suite} is not broken down by {by!r}; it is by {known}")
    rows = []
    for value, figures in found.breakdown[by].items():
        shown = [str(figures[column]) if column in figures else "" for column in columns]
        rows.append([f"{run}, {by} {value}", *shown, str(next(iter(figures.values())).count), ""])
    return rows


def draw(folder: Path, path: Path) -> None:
    """Draw a run's calibration and confusion matrix as SVG."""
    run = open_run(folder)
    write_whole(path, picture(run.name, measure_calibration(run), confusions(run)))
    print(
        f"{path}: "
        + "; ".join(f"{one.task}: expected calibration error {one.error:.1f} %" for one in measure_calibration(run))
    )
