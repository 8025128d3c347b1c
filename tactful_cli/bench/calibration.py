"""`tactful bench calibrate`: measure from a run's raw answers how well the selector's uncertainty is calibrated."""

from pathlib import Path

from rich.table import Table

from norm_core.records.json_codec import to_plain
from sim_replays.runs.results.conformal_coverage import ConformalCoverage, as_set, cases_of, cross_validated
from sim_replays.runs.results.run_folder import RunError, open_run
from tactful_cli.console import print_json, print_table


def show_calibration(folder: Path, wanted: list[float], as_json: bool) -> None:
    """Print one row for the run's own coverage, and one for each wanted coverage."""
    run = open_run(folder)
    coverage = run.config.get("answering", {}).get("coverage")
    if coverage is None:
        raise RunError(
            f"{folder}: was answered by the judge, which picks one option and keeps no set: nothing to calibrate"
        )
    cases = cases_of(run)
    rows = [as_set(cases, float(coverage)), *(cross_validated(cases, one) for one in wanted)]
    if as_json:
        print_json([to_plain(row) for row in rows])
        return
    table = Table(
        "to hold", "coverage", "held", "sure", "right of sure", "size", title=f"{run.name}: {len(cases)} cases"
    )
    for row in rows:
        table.add_row(*_cells(row))
    print_table(table)
    print("to hold: as the run had it, then FITTED on labels and measured on pictures or videos that were left out")


def _cells(row: ConformalCoverage) -> list[str]:
    wanted = "as set" if row.wanted is None else f"{100 * row.wanted:g} %"
    return [wanted, f"{row.coverage:.3f}", str(row.held), str(row.sure), str(row.right), f"{row.size:.2f}"]
