"""`tactful calibrate monitor`: the figure of record, one writer left out at a time."""

import subprocess
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

from rich.progress import track
from rich.table import Table

from calibration.encounter_reader import write_reader
from calibration.fit_units import fit_unit_model
from calibration.leave_one_writer_out import (
    EARLIER,
    MeasuredMaterial,
    Row,
    Source,
    collect,
    everyone,
    folds,
    shipped_sources,
)
from calibration.looks import LOG, add_looks
from norm_core.evaluation.probabilities import Bin
from norm_core.records.flag import Polarity
from norm_core.records.json_codec import sha256_of, to_plain
from norm_core.records.record import record
from norm_core.runtime.artefact import write_artefact
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.wording import count_of
from norm_monitor.exchange.classifier import SEEN
from norm_monitor.fusion.unit_model import SHIPPED
from sim_replays.runs.results.reliability import CalibrationFigures, picture
from sim_replays.scenarios.library import HERE, SPLITS, encounters_in
from tactful_cli.bench.monitor_bench import BenchSource
from tactful_cli.console import err, print_json, print_table

# Fewer writers leave too little to fit on.
FEWEST_WRITERS = 3
_NO_FIGURE = "–"


@record
class Look:
    """What is measured, and where what was heard is kept."""

    sources: tuple[BenchSource, ...]
    folder: Path | None
    why: str
    write: bool
    plot: Path | None
    cache_folder: Path
    jobs: int


def measure(look: Look, as_json: bool) -> None:
    """Measure, print, log the look, and write the weights if asked."""
    if look.folder is None and not look.why:
        raise TactfulError("--why: each look at the shipped encounters is logged; say why you look, in a few words")
    if look.write and look.folder:
        raise TactfulError("--write: the shipped weights are fitted on the shipped encounters; leave out --encounters")
    chosen = _chosen(look)
    writers = len({one.writer for one in chosen})
    err.print(f"{len({one.encounter.id for one in chosen})} encounters by {writers} writers")
    collected = collect(
        chosen,
        look.cache_folder,
        look.jobs,
        lambda some: track(some, "running the monitor", total=len(chosen), console=err),
    )
    measured = MeasuredMaterial(chosen, collected)
    rows = measured.rows(folds(measured.material, lambda some: track(some, "fitting without each writer", console=err)))
    if as_json:
        print_json({"rows": to_plain(rows)})
    else:
        _show(rows)
    if look.plot:
        write_atomic(look.plot, drawn(rows))
    if look.folder is None:
        add_looks([_logged(row, look.why) for row in rows])
        err.print(f"{len(rows)} rows were added to {LOG.name}")
    if look.write:
        _write(measured)


def _chosen(look: Look) -> list[Source]:
    if look.folder is None:
        return [one for source in look.sources for one in shipped_sources(SPLITS, by_sound=source is BenchSource.AUDIO)]
    if not look.folder.is_dir():
        raise TactfulError(f"{look.folder}: is no folder; give one with a folder of encounters for each writer")
    folders = sorted(path for path in look.folder.iterdir() if path.is_dir())
    if len(folders) < FEWEST_WRITERS:
        raise TactfulError(
            f"{look.folder}: has {count_of(len(folders), 'folder')}, and {FEWEST_WRITERS} writers are needed to leave "
            "one out; make a folder for each writer"
        )
    return [
        Source(encounter=one, writer=folder.name, by_sound=source is BenchSource.AUDIO)
        for source in look.sources
        for folder in folders
        for one in encounters_in(folder)
    ]


def _show(rows: Sequence[Row]) -> None:
    for polarity, title in ((Polarity.ERROR, "errors"), (Polarity.COMPETENCE, "competences")):
        table = Table(
            "encounters", "sensitivity", "F1 %", "over\nwriters", "precision", "recall", "by chance", title=title
        )
        for row in rows:
            scores = row.scores.of(polarity)
            table.add_row(
                f"{row.encounters} {row.part}",
                row.sensitivity,
                f"{scores.f1:.0f} {_span(scores.f1_interval)}",
                _span(row.interval_over_writers[polarity]),
                f"{scores.precision:.0f}",
                f"{scores.recall:.0f}",
                f"{row.f1_by_chance[polarity]:.0f}",
            )
        print_table(table)
    table = Table("encounters", "sensitivity", "false\nerrors/h", "harmless\nminutes", "calibration\nerror",
                  "attributes\na flag", *(f"recall,\n{basis}" for basis in _bases(rows)))  # fmt: skip
    for row in rows:
        harmless = row.scores.harmless
        rate, span = harmless.false_errors_per_hour, harmless.false_errors_per_hour_interval
        table.add_row(
            str(row.part),
            row.sensitivity,
            f"{rate:.1f} {_span(span)}" if harmless.minutes else _NO_FIGURE,
            f"{harmless.minutes:.0f}",
            _NO_FIGURE if row.expected_calibration_error is None else f"{row.expected_calibration_error:.3f}",
            _NO_FIGURE if row.attributes_per_flag is None else f"{row.attributes_per_flag:.2f}",
            *(f"{row.scores.errors.by_basis.get(basis, 0):.0f}" for basis in _bases(rows)),
        )
    print_table(table)
    for row in rows[:: len({row.sensitivity for row in rows})]:
        _show_reliability(str(row.part), row.reliability)


def drawn(rows: Iterable[Row]) -> str:
    """Draw how often coders mark what is stated, a panel for each part."""
    by_part = {str(row.part): row for row in rows}
    panels = [
        CalibrationFigures(
            task=name,
            count=sum(part.count for part in row.reliability),
            error=100 * (row.expected_calibration_error or 0),
            bins=row.reliability,
        )
        for name, row in by_part.items()
    ]
    return picture("stated probability of an error", panels)


def _show_reliability(title: str, bins: Iterable[Bin]) -> None:
    table = Table("stated error", "units", "mean", "marked by coders", "", title=f"reliability: {title}")
    for part in bins:
        table.add_row(
            f"{part.low:.1f} to {part.high:.1f}",
            str(part.count),
            f"{part.confidence:.2f}",
            f"{part.right:.2f}",
            "█" * round(20 * part.right),
        )
    print_table(table)


def _span(interval: tuple[float, float] | None) -> str:
    return f"[{interval[0]:.0f}, {interval[1]:.0f}]" if interval else _NO_FIGURE


def _bases(rows: Iterable[Row]) -> list[str]:
    return sorted({basis for row in rows for basis in row.scores.errors.by_basis})


def _logged(row: Row, why: str) -> dict[str, object]:
    errors, competences, harmless = row.scores.errors, row.scores.competences, row.scores.harmless
    error = row.expected_calibration_error
    return {
        "date": date.today().isoformat(),
        "commit": _commit(),
        "source": row.part.source,
        "material": row.part.material,
        "language": row.part.language,
        "sensitivity": row.sensitivity.value,
        "encounters": row.encounters,
        "errors_f1": f"{errors.f1:.1f}",
        "errors_low": f"{errors.f1_interval[0]:.1f}",
        "errors_high": f"{errors.f1_interval[1]:.1f}",
        "competences_f1": f"{competences.f1:.1f}",
        "competences_low": f"{competences.f1_interval[0]:.1f}",
        "competences_high": f"{competences.f1_interval[1]:.1f}",
        "false_errors_per_hour": f"{harmless.false_errors_per_hour:.1f}" if harmless.minutes else "",
        "expected_calibration_error": "" if error is None else f"{error:.3f}",
        "why": why,
    }


def _commit() -> str:
    """Return the commit that is measured; empty outside a checkout."""
    done = subprocess.run(
        ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _write(measured: MeasuredMaterial) -> None:
    digest = sha256_of(sorted({one.encounter.sha256() for one in measured.chosen}))
    fitted_on = {
        "encounters": digest,
        "from": ", ".join(sorted({one.part.source for one in measured.chosen})),
        "writers": ", ".join(sorted({one.writer for one in measured.chosen} - {EARLIER})),
    }
    rows = everyone(measured.material)
    write_artefact(fit_unit_model(measured.material, rows, fitted_on), SHIPPED)
    write_reader(measured.material.weights(rows), measured.encoder, digest, SEEN)
    err.print(f"{SHIPPED.name} and {SEEN.name} were written")
