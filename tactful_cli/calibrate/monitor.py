"""`tactful calibrate monitor`: the figure of record, one writer left out at a time."""

import subprocess
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from rich.progress import track
from rich.table import Table

from calibration.encounter_reader import write_reader
from calibration.fit_units import Material, fit_unit_model
from calibration.leave_one_writer_out import (
    EARLIER,
    Collected,
    Fold,
    Source,
    collect,
    everyone,
    flagged,
    folds,
    material_of,
    reliability,
    sources,
    writer_interval,
)
from calibration.looks import LOG, add_looks
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.evaluation.probabilities import expected_calibration_error, reliability_bins
from norm_core.records.flag import Polarity
from norm_core.records.json_codec import sha256_of, to_plain
from norm_core.records.record import record
from norm_core.runtime.artefact import write_artefact
from norm_core.runtime.errors import TactfulError
from norm_monitor.exchange.classifier import SEEN
from norm_monitor.fusion.unit_model import SHIPPED, Sensitivity
from sim_replays.monitor_bench.encounter_scores import EncounterScores, score_encounters
from sim_replays.scenarios.library import HERE, SPLITS, encounters_in
from tactful_cli.console import err, print_json, print_table

# Fewer writers leave too little to fit on.
FEWEST_WRITERS = 3


@record
class Look:
    """What is measured, and where what was heard is kept."""

    by_sound: bool
    folder: Path | None
    why: str
    write: bool
    cache_folder: Path
    jobs: int


def measure(look: Look, as_json: bool) -> None:
    """Measure, print, log the look, and write the weights if asked."""
    if look.folder is None and not look.why:
        raise TactfulError("--why: each look at the shipped encounters is logged; say why you look")
    if look.write and (look.folder or look.by_sound):
        raise TactfulError("--write: the shipped weights are fitted on the shipped scripts alone; leave out the rest")
    chosen = _chosen(look)
    err.print(f"{len(chosen)} encounters by {len({one.writer for one in chosen})} writers")
    collected = collect(chosen, look.cache_folder, look.jobs)
    encoder = SentenceEncoder(remembered=100_000)
    material = material_of(chosen, collected, encoder)
    found = folds(material, lambda writers: track(writers, "fitting without each writer", console=err))
    parts = _parts(chosen)
    rows = [
        (name, sensitivity, _scored(collected, found, sensitivity, places))
        for name, places in parts.items()
        for sensitivity in Sensitivity
    ]
    stated = {name: reliability(found, {chosen[place].writer for place in places}) for name, places in parts.items()}
    if as_json:
        print_json(_as_json(look, rows, stated, chosen, collected, found, parts))
    else:
        _show(rows, stated, chosen, collected, found, parts)
    if look.folder is None:
        add_looks([_logged(look, *row, stated[row[0]], len(parts[row[0]])) for row in rows])
        err.print(f"{len(rows)} rows were added to {LOG.name}")
    if look.write:
        _write(material, chosen, encoder)


def _chosen(look: Look) -> list[Source]:
    if look.folder is None:
        return sources(SPLITS, by_sound=look.by_sound)
    folders = sorted(path for path in look.folder.iterdir() if path.is_dir()) if look.folder.is_dir() else []
    chosen = [
        Source(encounter=one, writer=folder.name, by_sound=look.by_sound)
        for folder in folders
        for one in encounters_in(folder)
    ]
    if len(folders) < FEWEST_WRITERS:
        raise TactfulError(
            f"{look.folder}: has folders of {len(folders)} writers, and {FEWEST_WRITERS} are needed to leave one out; "
            "make a folder for each writer"
        )
    return chosen


def _parts(chosen: Sequence[Source]) -> dict[str, list[int]]:
    """Return the encounters whose writers are known apart from the earlier ones."""
    parts: dict[str, list[int]] = {}
    for place, one in enumerate(chosen):
        parts.setdefault("earlier" if one.writer == "earlier" else "by known writers", []).append(place)
    return dict(sorted(parts.items()))


def _scored(
    collected: Sequence[Collected], found: Sequence[Fold], sensitivity: Sensitivity, places: Sequence[int]
) -> EncounterScores:
    sessions = flagged(collected, found, sensitivity)
    return score_encounters([sessions[place] for place in places])


def _show(  # noqa: PLR0917
    rows: Sequence[tuple[str, Sensitivity, EncounterScores]],
    stated: Any,
    chosen: Sequence[Source],
    collected: Sequence[Collected],
    found: Sequence[Fold],
    parts: dict[str, list[int]],
) -> None:
    table = Table(
        "encounters", "sensitivity", "errors F1 %", "precision", "recall", "competences F1 %", "false errors/h", "ECE"
    )
    for name, sensitivity, scores in rows:
        errors, competences, harmless = scores.errors, scores.competences, scores.harmless
        by_writer = writer_interval(flagged(collected, found, sensitivity), chosen, parts[name], Polarity.ERROR)
        error = expected_calibration_error([(likely, right) for likely, right, _ in stated[name]])
        table.add_row(
            f"{len(parts[name])} {name}",
            sensitivity,
            f"{errors.f1:.0f} [{errors.f1_interval[0]:.0f}, {errors.f1_interval[1]:.0f}]"
            f" writers [{by_writer[0]:.0f}, {by_writer[1]:.0f}]",
            f"{errors.precision:.0f}",
            f"{errors.recall:.0f}",
            f"{competences.f1:.0f} [{competences.f1_interval[0]:.0f}, {competences.f1_interval[1]:.0f}]",
            f"{harmless.false_errors / harmless.minutes * 60:.1f}" if harmless.minutes else "–",
            f"{error:.3f}" if error is not None else "–",
        )
    print_table(table)
    basis = Table("recall of errors %", *(f"{name}, {one}" for name, one, _ in rows))
    for kind in sorted({kind for *_, scores in rows for kind in scores.errors.by_basis}):
        basis.add_row(kind, *(f"{scores.errors.by_basis.get(kind, 0):.0f}" for *_, scores in rows))
    print_table(basis)
    bins = Table(
        "stated probability of an error", "units", "mean stated", "share that coders mark", title="reliability"
    )
    for part in reliability_bins([(likely, right) for name in stated for likely, right, _ in stated[name]]):
        bins.add_row(
            f"{part.low:.1f} to {part.high:.1f}", str(part.count), f"{part.confidence:.2f}", f"{part.right:.2f}"
        )
    print_table(bins)


def _as_json(  # noqa: PLR0917
    look: Look,
    rows: Sequence[tuple[str, Sensitivity, EncounterScores]],
    stated: Any,
    chosen: Sequence[Source],
    collected: Sequence[Collected],
    found: Sequence[Fold],
    parts: dict[str, list[int]],
) -> dict[str, Any]:
    return {
        "from": "audio" if look.by_sound else "script",
        "writers": sorted({one.writer for one in chosen}),
        "rows": [
            {
                "encounters": len(parts[name]),
                "material": name,
                "sensitivity": sensitivity.value,
                "errors_f1_interval_over_writers": writer_interval(
                    flagged(collected, found, sensitivity), chosen, parts[name], Polarity.ERROR
                ),
                "expected_calibration_error": expected_calibration_error(
                    [(likely, right) for likely, right, _ in stated[name]]
                ),
                **to_plain(scores),
            }
            for name, sensitivity, scores in rows
        ],
    }


def _logged(  # noqa: PLR0917
    look: Look, name: str, sensitivity: Sensitivity, scores: EncounterScores, stated: Any, encounters: int
) -> dict[str, object]:
    harmless = scores.harmless
    error = expected_calibration_error([(likely, right) for likely, right, _ in stated])
    return {
        "date": date.today().isoformat(),
        "commit": _commit(),
        "source": "audio" if look.by_sound else "script",
        "material": name,
        "sensitivity": sensitivity.value,
        "encounters": encounters,
        "errors_f1": f"{scores.errors.f1:.1f}",
        "errors_low": f"{scores.errors.f1_interval[0]:.1f}",
        "errors_high": f"{scores.errors.f1_interval[1]:.1f}",
        "competences_f1": f"{scores.competences.f1:.1f}",
        "competences_low": f"{scores.competences.f1_interval[0]:.1f}",
        "competences_high": f"{scores.competences.f1_interval[1]:.1f}",
        "false_errors_per_hour": f"{harmless.false_errors / harmless.minutes * 60:.1f}" if harmless.minutes else "",
        "expected_calibration_error": "" if error is None else f"{error:.3f}",
        "why": look.why,
    }


def _commit() -> str:
    """Return the commit that is measured; empty outside a checkout."""
    done = subprocess.run(
        ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _write(material: Material, chosen: Sequence[Source], encoder: SentenceEncoder) -> None:
    digest = sha256_of(sorted(one.encounter.sha256() for one in chosen))
    fitted_on = {"encounters": digest, "writers": ", ".join(sorted({one.writer for one in chosen} - set(EARLIER)))}
    write_artefact(fit_unit_model(material, everyone(material), fitted_on), SHIPPED)
    write_reader(material.weights(everyone(material)), encoder, digest, SEEN)
    err.print(f"{SHIPPED.name} and {SEEN.name} were written")
