"""Fit the shipped weights, and measure the figure of record: one writer left out at a time.

Run: python -m calibration.monitor --from script --from audio --why WHY [--write]. --help lists the options.
"""

import csv
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from calibration.command import run_command
from calibration.encounter_reader import write_reader
from calibration.fit_units import fit_unit_model
from calibration.leave_one_writer_out import (
    EARLIER,
    CrossValidation,
    EvaluationRow,
    collect,
    dialogue_sources,
    everyone,
    find_readers_by_writer,
    folds,
    shipped_sources,
)
from norm_core.engines.talk_reader import TalkReader
from norm_core.files.data_files import shipped_file
from norm_core.records.json_codec import sha256_of, to_json
from norm_core.runtime.artefact import write_artefact
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import read_checkout_commit
from norm_monitor.assessment.unit_model import SHIPPED, SHIPPED_WITH_READER
from norm_monitor.context.exchange import SEEN
from norm_monitor.encounters.library import SPLITS
from sim_replays.monitor_bench.script_driver import BenchSource

# Each evaluation on the shipped encounters, and its figures.
LOG = shipped_file("calibration", "looks.csv")
_err = Console(stderr=True, highlight=False)


def measure(  # noqa: PLR0917
    source: Annotated[
        list[BenchSource] | None,
        typer.Option("--from", help="script (default) or audio: through sound and ears. Give it twice to fit on both."),
    ] = None,
    why: Annotated[str, typer.Option(help="Reason for the log.")] = "",
    write: Annotated[bool, typer.Option("--write", help="Ship the weights fitted on all writers.")] = False,
    cache_folder: Annotated[Path, typer.Option(help="Cache of the senses' output.")] = Path("scratch/sensed"),
    jobs: Annotated[int, typer.Option(min=0, help="Processes; 0: one a core.")] = 0,
    readers: Annotated[
        list[Path] | None,
        typer.Option("--reader", help="Folder of a talk reader. Only writers that it was not taught are measured."),
    ] = None,
) -> None:
    """Measure the monitor on each writer by weights fitted without that writer, and print the figures as JSON."""
    if not why:
        raise TactfulError("--why: each evaluation on the shipped encounters is logged; give the reason")
    sizes = {TalkReader.open(folder, verify=False).manifest.size for folder in readers or ()}
    if len(sizes) > 1:
        raise TactfulError(f"--reader: {' and '.join(sorted(sizes))}: name readers of one size")
    readers_by_writer = find_readers_by_writer(readers or ())
    sources = dict.fromkeys(source or [BenchSource.SCRIPT])
    chosen = [
        source
        for by in sources
        for source in (
            *shipped_sources(SPLITS, by_sound=by is BenchSource.AUDIO),
            *(dialogue_sources() if readers and by is BenchSource.SCRIPT else ()),
        )
        if not readers or source.writer in readers_by_writer
    ]
    if not chosen:
        raise TactfulError("--reader: no reader was taught without a writer; teach one (--without)")
    writers = len({source.writer for source in chosen})
    _err.print(f"{len({source.encounter.id for source in chosen})} encounters by {writers} writers")
    collected = collect(
        chosen,
        cache_folder,
        jobs,
        lambda some: track(some, "running the monitor", total=len(chosen), console=_err),
        readers=readers_by_writer,
    )
    measured = CrossValidation(chosen, collected)
    rows = measured.rows(
        folds(measured.material, lambda some: track(some, "fitting without each writer", console=_err))
    )
    print(to_json({"rows": rows}))
    log_evaluation([_logged(row, why) for row in rows])
    _err.print(f"{len(rows)} rows were added to {LOG.name}")
    if write:
        _write(measured, readers or ())


def log_evaluation(rows: Sequence[Mapping[str, object]]) -> None:
    """Add rows to the log, which nothing removes; the first row names the columns."""
    is_new = not LOG.exists()
    with LOG.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def _logged(row: EvaluationRow, why: str) -> dict[str, object]:
    errors, competences, harmless = row.scores.errors, row.scores.competences, row.scores.harmless
    error = row.expected_calibration_error
    bounds = {
        f"{name}_{bound}": f"{scores.f1_interval[at]:.1f}" if scores.f1_interval else ""
        for name, scores in (("errors", errors), ("competences", competences))
        for at, bound in enumerate(("low", "high"))
    }
    return {
        "date": date.today().isoformat(),
        "commit": read_checkout_commit()[:8],
        "source": row.part.source,
        "material": row.part.material,
        "language": row.part.language,
        "sensitivity": row.sensitivity.value,
        "encounters": row.encounters,
        "errors_f1": f"{errors.f1:.1f}",
        "errors_low": bounds["errors_low"],
        "errors_high": bounds["errors_high"],
        "competences_f1": f"{competences.f1:.1f}",
        "competences_low": bounds["competences_low"],
        "competences_high": bounds["competences_high"],
        "false_errors_per_hour": f"{harmless.false_errors_per_hour:.1f}" if harmless.minutes else "",
        "expected_calibration_error": "" if error is None else f"{error:.3f}",
        "why": why,
    }


def _write(measured: CrossValidation, readers: Sequence[Path]) -> None:
    digest = sha256_of(sorted({source.encounter.sha256() for source in measured.chosen}))
    fitted_on = {
        "encounters": digest,
        "from": ", ".join(sorted({source.part.source for source in measured.chosen})),
        "writers": ", ".join(sorted({source.writer for source in measured.chosen} - {EARLIER})),
    }
    opened = [TalkReader.open(folder) for folder in readers]
    if opened:
        fitted_on["readers"] = ", ".join(sorted(reader.sha256 for reader in opened))
    rows = everyone(measured.material)
    written = SHIPPED_WITH_READER if opened else SHIPPED
    write_artefact(fit_unit_model(measured.material, rows, fitted_on), written)
    if not readers:
        write_reader(measured.material.weights(rows), measured.encoder, digest, SEEN)
    _err.print(f"{written.name} was written; python -m calibration.real_robots --write adds what slow robots weigh")


if __name__ == "__main__":
    run_command(measure)
