"""Fit the weights beside a talk reader on encounters and on people with a real robot, and measure both left out.

Run: python -m calibration.real_robots --scout FILE --reader FOLDER [--write]. Writers that the reader was not taught
and a part of the people are left out in turn. What was measured is kept in --cache, so that a run goes on.
"""

import json
import pickle
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from calibration.command import run_command
from calibration.fit_units import FittedTalk, TrainingSet, fit_unit_model, with_slow_talk
from calibration.leave_one_writer_out import MeasuredEncounter, collect, shipped_sources
from calibration.real_robots.scout import CodedStretch, coded_stretches, meets
from calibration.unit_examples import LabelledUnit
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.engines.talk_reader import TalkReader
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.artefact import write_artefact
from norm_core.runtime.time import NS_PER_S
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit_model import SHIPPED, SHIPPED_BY_READER, Sensitivity, UnitModel, is_slow
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.encounters.library import SPLITS, TrueEvent

_FOLDS = 6
_err = Console(stderr=True, highlight=False)


@record
class _Talk:
    """A talk of either material."""

    writer: str
    is_real: bool
    hours: float
    events_by_coder: Mapping[str, tuple[TrueEvent, ...]]
    units: tuple[LabelledUnit, ...]

    @property
    def harmless(self) -> bool:
        """Whether no coder marks an error in it."""
        return not any(event.polarity is Polarity.ERROR for events in self.events_by_coder.values() for event in events)

    @property
    def as_material(self) -> FittedTalk:
        """What a fit knows of it; the budget of false errors is that of invented talk."""
        return FittedTalk(writer=self.writer, harmless=self.harmless and not self.is_real, hours=self.hours)


def fit(
    scout: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="SCOUT's sessions, one JSON a line.")],
    reader: Annotated[Path, typer.Option(help="Folder of the talk reader.")],
    cache: Annotated[Path, typer.Option(help="Folder of what was measured.")] = Path("scratch/real_robots"),
    write: Annotated[bool, typer.Option("--write", help="Ship the weights.")] = False,
) -> None:
    """Fit, and print what the weights find in the talk of writers and people that they were not fitted on."""
    cache.mkdir(parents=True, exist_ok=True)
    manifest = TalkReader.open(reader, verify=False).manifest
    untaught = set(json.loads(manifest.adapter.get("without", "[]")))
    talks = [*_kept(cache / "encounters.pkl", lambda: _of_encounters(reader, untaught)), *_kept(
        cache / "scout.pkl", lambda: _of_scout(scout, reader)
    )]  # fmt: skip
    table = Table(
        "labels",
        "sensitivity",
        "errors F1",
        "precision",
        "recall",
        "competences F1",
        "precision",
        "recall",
        "false errors/h",
    )
    flagged = [
        (talk, sensitivity, unit, polarity)
        for model, talk, units in track(_left_out(talks), "fitting without each part", console=_err, total=len(talks))
        for sensitivity in Sensitivity
        for unit, polarity in _flags(model, units, sensitivity)
    ]
    for coder in sorted({coder for talk in talks for coder in talk.events_by_coder}):
        for sensitivity in Sensitivity:
            part = [talk for talk in talks if coder in talk.events_by_coder]
            ids = {id(talk) for talk in part}
            table.add_row(coder, sensitivity, *_figures(coder, part, [
                (talk, unit, polarity) for talk, at, unit, polarity in flagged if id(talk) in ids and at is sensitivity
            ]))  # fmt: skip
    Console(highlight=False, width=None if sys.stdout.isatty() else 200).print(table)
    if not write:
        return
    model, own_path = _fitted(talks, manifest.adapter.get("taught", "")), SHIPPED_BY_READER[manifest.size]
    write_artefact(model, own_path)
    for path in {SHIPPED, *SHIPPED_BY_READER.values()} - {own_path}:
        other = UnitModel.load(path)
        points = {
            sensitivity: point.model_copy(update={"slow": model.operating_points[sensitivity].slow})
            for sensitivity, point in other.operating_points.items()
        }
        write_artefact(other.model_copy(update={"slow_kinds": model.slow_kinds, "operating_points": points}), path)


def _kept(path: Path, measure: Callable[[], list[dict[str, Any]]]) -> list[_Talk]:
    if not path.exists():
        path.write_bytes(pickle.dumps(measure()))
    return [_Talk(**talk) for talk in pickle.loads(path.read_bytes())]


def _of_encounters(reader: Path, untaught: Collection[str]) -> list[dict[str, Any]]:
    sources = [source for source in shipped_sources(SPLITS) if source.writer in untaught]
    measured = collect(
        sources, Path("scratch/sensed"), readers=[reader], follow=lambda some: _watched(some, len(sources))
    )
    return [
        {
            "writer": source.writer,
            "is_real": False,
            "hours": (encounter.truth.end_ns - encounter.truth.start_ns) / NS_PER_S / 3600,
            "events_by_coder": {"encounters": encounter.truth.events},
            "units": encounter.units,
        }
        for source, encounter in zip(sources, measured, strict=True)
    ]


def _watched(some: Iterable[MeasuredEncounter], total: int) -> Iterator[MeasuredEncounter]:
    yield from track(some, "running the monitor", total=total, console=_err)


def _of_scout(sessions: Path, reader: Path) -> list[dict[str, Any]]:
    meaning, table = EncoderMatcher.shipped(str(reader), remembered=50_000), ThresholdTable.shipped()
    stretches: list[CodedStretch] = list(track(coded_stretches(sessions, meaning, table), "SCOUT", console=_err))
    return [
        {
            "writer": stretch.person,
            "is_real": True,
            "hours": stretch.hours,
            "events_by_coder": {f"SCOUT, coder {coder}": marks for coder, marks in stretch.events_by_coder.items()},
            "units": stretch.units,
        }
        for stretch in stretches
    ]


def _left_out(talks: Sequence[_Talk]) -> Iterator[tuple[UnitModel, _Talk, list[LabelledUnit]]]:
    """Yield each talk with the weights that were fitted without its writer or person."""
    units = [replace(unit, talk=index) for index, talk in enumerate(talks) for unit in talk.units]
    material = TrainingSet(units, [talk.as_material for talk in talks], SentenceEncoder())
    writers = {is_real: sorted({talk.writer for talk in talks if talk.is_real is is_real}) for is_real in (False, True)}
    for fold in range(_FOLDS):
        out = {writer for named in writers.values() for writer in named[fold::_FOLDS]}
        model = _fitted([talk for talk in talks if talk.writer not in out], "")
        is_out = np.isin(material.writers, sorted(out))
        # The reading that is learnt from encounters must not have seen what it is measured on.
        seen = list(material.seen(np.flatnonzero(~is_out), np.flatnonzero(is_out)).values())
        for index, talk in enumerate(talks):
            if talk.writer in out:
                yield model, talk, [unit for unit in seen if unit.talk == index]


def _fitted(talks: Sequence[_Talk], taught: str) -> UnitModel:
    """Fit on invented talk and what real robots do at its pace; then the weights for slow robots, on both."""
    units = [
        replace(unit, talk=index)
        for index, talk in enumerate(talks)
        for unit in talk.units
        if not (talk.is_real and is_slow(unit.facts))
    ]
    material = TrainingSet(units, [talk.as_material for talk in talks], SentenceEncoder())
    fitted_on = {
        "writers": str(len({talk.writer for talk in talks if not talk.is_real})),
        "people with SCOUT's robot": str(len({talk.writer for talk in talks if talk.is_real})),
        "units": str(sum(len(talk.units) for talk in talks)),
        "reader": taught,
    }
    model = fit_unit_model(material, np.arange(len(units)), fitted_on)
    return with_slow_talk(
        model,
        [unit for talk in talks if not talk.is_real for unit in talk.units],
        [unit for talk in talks if talk.is_real for unit in talk.units],
    )


def _flags(
    model: UnitModel, units: Sequence[LabelledUnit], sensitivity: Sensitivity
) -> Iterator[tuple[LabelledUnit, Polarity]]:
    point = model.operating_points[sensitivity]
    for unit in units:
        reading = model.read(unit.kind, unit.facts)
        if reading:
            polarity = max(Polarity, key=lambda polarity: reading.odds[polarity])
            likely = reading.odds[polarity] / (1 + sum(reading.odds.values()))
            is_flagged = likely >= point.threshold(polarity, is_slow=is_slow(unit.facts))
            if is_flagged and reading.attributes[polarity]:
                yield unit, polarity


def _figures(coder: str, talks: Sequence[_Talk], flagged: Sequence[tuple[_Talk, LabelledUnit, Polarity]]) -> list[str]:
    figures: list[str] = []
    for polarity in Polarity:
        hits, marked, raised = 0, 0, 0
        for talk in talks:
            left = [unit for other, unit, what in flagged if other is talk and what is polarity]
            events = [event for event in talk.events_by_coder[coder] if event.polarity is polarity]
            raised, marked = raised + len(left), marked + len(events)
            for event in events:
                met = next((unit for unit in left if meets(unit, event)), None)
                if met:
                    left.remove(met)
                    hits += 1
        rates: NDArray[np.float64] = (
            100 * np.array([2 * hits, hits, hits]) / np.maximum(1, [marked + raised, raised, marked])
        )
        figures += [f"{rate:.0f}" for rate in rates]
    harmless = [talk for talk in talks if talk.harmless]
    false = sum(talk.harmless and polarity is Polarity.ERROR for talk, _, polarity in flagged)
    return [*figures, f"{false / max(1e-9, sum(talk.hours for talk in harmless)):.1f}"]


if __name__ == "__main__":
    run_command(fit)
