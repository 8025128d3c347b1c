"""Fit the weights for slow robots on coded people with a real one, and measure them on people left out.

Run: python -m calibration.real_robots --scout FILE --reader FOLDER [--json FILE] [--write]. A sixth of the people is
left out in turn. What is not slow there is weighed by the weights that ship with the reader.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from calibration.command import run_command
from calibration.fit_units import fit_slow_kinds, with_slow_kinds
from calibration.leave_one_writer_out import collect, shipped_sources
from calibration.real_robots.figures import make_figures, print_figures
from calibration.real_robots.scout import CodedStretch, coded_stretches
from calibration.unit_examples import LabelledUnit
from norm_core.records.flag import Polarity
from norm_core.runtime.artefact import write_artefact
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit_model import (
    SHIPPED,
    SHIPPED_WITH_READER,
    Sensitivity,
    UnitModel,
    is_slow,
    shipped_unit_model,
)
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.encounters.library import SPLITS

_FOLDS = 6
_err = Console(stderr=True, highlight=False)

Units = Sequence[LabelledUnit]


def fit(
    scout: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="SCOUT's sessions, one JSON a line.")],
    reader: Annotated[str, typer.Option(help="Folder of the talk reader that is measured with the weights.")] = "none",
    json_file: Annotated[Path | None, typer.Option("--json", help="File of the figures.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Ship the weights.")] = False,
) -> None:
    """Fit, and print what the weights find in the talk of people that they were not fitted on."""
    matcher = EncoderMatcher.shipped(reader, remembered=50_000)
    stretches = list(track(coded_stretches(scout, matcher, ThresholdTable.shipped()), "SCOUT", console=_err, total=60))
    sources = shipped_sources(SPLITS)
    invented = [
        unit
        for encounter in collect(
            sources, Path("scratch/sensed"), follow=lambda some: track(some, "encounters", len(sources), console=_err)
        )
        for unit in encounter.units
    ]
    flagged = _left_out(stretches, invented, shipped_unit_model(has_reader=matcher.has_reader))
    figures = {
        coder: {
            str(sensitivity): {
                str(polarity): make_figures(stretches, flagged[sensitivity], coder, polarity) for polarity in Polarity
            }
            for sensitivity in Sensitivity
        }
        for coder in stretches[0].events_by_coder
    }
    print_figures(figures)
    if json_file:
        json_file.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    if write:
        slow_kinds = fit_slow_kinds(invented, [unit for stretch in stretches for unit in stretch.units])
        for path in (SHIPPED, SHIPPED_WITH_READER):
            write_artefact(with_slow_kinds(UnitModel.load(path), slow_kinds), path)


def _left_out(
    stretches: Sequence[CodedStretch], invented: Units, shipped: UnitModel
) -> dict[Sensitivity, list[list[tuple[LabelledUnit, Polarity]]]]:
    """Return the units of each stretch that are flagged by weights fitted without its person, by sensitivity."""
    people = sorted({stretch.person for stretch in stretches})
    flagged: dict[Sensitivity, list[list[tuple[LabelledUnit, Polarity]]]] = {
        sensitivity: [[] for _ in stretches] for sensitivity in Sensitivity
    }
    for fold in track(range(_FOLDS), "fitting without each part", console=_err):
        out = set(people[fold::_FOLDS])
        real = [unit for stretch in stretches if stretch.person not in out for unit in stretch.units]
        model = with_slow_kinds(shipped, fit_slow_kinds(invented, real))
        for place, stretch in enumerate(stretches):
            for sensitivity in Sensitivity if stretch.person in out else ():
                flagged[sensitivity][place] = list(_flags(model, stretch.units, sensitivity))
    return flagged


def _flags(model: UnitModel, units: Units, sensitivity: Sensitivity) -> Iterator[tuple[LabelledUnit, Polarity]]:
    point = model.operating_points[sensitivity]
    for unit in units:
        reading = model.read(unit.kind, unit.facts)
        if reading:
            polarity = max(Polarity, key=lambda polarity: reading.odds[polarity])
            likely = reading.odds[polarity] / (1 + sum(reading.odds.values()))
            is_flagged = likely >= point.threshold(polarity, is_slow=is_slow(unit.kind, unit.facts))
            if is_flagged and reading.attributes[polarity]:
                yield unit, polarity


if __name__ == "__main__":
    run_command(fit)
