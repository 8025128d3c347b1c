"""`python -m calibration.judge`: fit one model's temperature and weight on labels, and say what it adds."""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track
from rich.table import Table

from calibration.judge_answers import (
    JudgeAnswers,
    LabelledEncounter,
    LabelledUnitView,
    read_labels,
    sample_units,
    units_with_views,
)
from calibration.judge_fit import JudgeFit, ReaderScore, fit_judge
from calibration.unit_examples import LabelledRecords
from norm_core.engines.engine_factory import open_engine
from norm_core.engines.reply import ModelInfo
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.models.catalogue import Catalogue
from norm_core.records.json_codec import sha256_of, to_plain
from norm_core.runtime.artefact import write_artefact
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit_model import shipped_unit_model
from norm_monitor.context.meaning import Concepts, EncoderMatcher
from norm_monitor.encounters.library import SPLITS, paths
from norm_monitor.judge.judge import FORMAT, KIND, JudgeCalibration, identify_model
from sim_replays.monitor_bench.script_driver import make_script_records
from tactful_cli.console import err, print_json, print_table, show
from tactful_cli.main import main
from tactful_cli.verb_options import AsJson, make_app

app = make_app()


@app.command()
def calibrate(  # noqa: PLR0917
    model: Annotated[str, typer.Option("--model", help="The judge's model (`tactful models list`).")],
    labels: Annotated[
        Path, typer.Option("--labels", help="Folder of labelled encounters, or with one folder of them a writer.")
    ],
    limit: Annotated[
        int, typer.Option(min=0, help="Most units to ask about, half of them labelled; 0: all labelled ones.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write the calibration, for judge.calibration.")
    ] = None,
    cache_folder: Annotated[
        Path, typer.Option(metavar="DIR", help="Cache of answers; an interrupted run resumes from it.")
    ] = Path("scratch/judge_answers"),
    as_json: AsJson = False,
) -> None:
    """Fit a model's temperature and its weight beside the facts, and measure what it adds."""
    clock = WallClock()
    engine = open_engine(Catalogue().read_manifest(model), clock)  # a missing model fails at once
    try:
        sources = read_labels(labels)
        _check_shipped(sources, writes=write is not None)
        units = _units(sources)
        sample = sample_units(units, limit, seed)
        answers = JudgeAnswers(cache_folder / f"{model}.jsonl", engine, clock)
        shown = f"asking {model}"
        answered = answers.collect(sample, lambda every: track(every, shown, console=err))
        model_info = engine.model_info
    finally:
        engine.close()
    for why, count in answers.unanswered.items():
        err.print(f"{count} units without an answer: {why}")
    fit = fit_judge(answered, Counter(unit.polarity for unit in units))
    if write:
        write_artefact(_artefact(fit, model_info, sources), write)
        err.print(f"{write} was written; name it in judge.calibration beside judge.model: {model}")
    unanswered = sum(answers.unanswered.values())
    if as_json:
        print_json({"model": model, "asked": len(sample), "unanswered": unanswered, **to_plain(fit)})
    else:
        _show(fit, model, len(sample), unanswered)


def _units(sources: Sequence[LabelledEncounter]) -> list[LabelledUnitView]:
    meaning, table = EncoderMatcher(SentenceEncoder(cache_size=100_000), Concepts.shipped()), ThresholdTable.shipped()
    model = shipped_unit_model()
    units = []
    for source in track(sources, "measuring the facts", console=err):
        entries, truth = make_script_records(source.encounter)
        labelled = LabelledRecords(given=tuple(entries), sources=(UTTERANCES,), truth=truth)
        units += units_with_views(source, labelled, meaning, table, model)
    return units


def _check_shipped(sources: Sequence[LabelledEncounter], *, writes: bool) -> None:
    """Warn where the facts have an advantage, and refuse to write what would then be fitted: too low a weight."""
    shipped = {path.stem for split in SPLITS for path in paths(split)}
    if shipped_count := sum(source.encounter.id in shipped for source in sources):
        why = (
            f"--labels: {shipped_count} of {len(sources)} encounters are shipped ones, on which the weights of the "
            "facts were "
            "fitted, so a judge seems to add less than on new talk; label encounters of your own"
        )
        if writes:
            raise TactfulError(why)
        err.print(why)


def _artefact(fit: JudgeFit, model_info: ModelInfo, sources: Sequence[LabelledEncounter]) -> JudgeCalibration:
    return JudgeCalibration(
        kind=KIND,
        format=FORMAT,
        made_on=date.today().isoformat(),
        made_with=identify_model(model_info),
        fitted_on={
            "encounters": sha256_of(sorted(source.encounter.sha256() for source in sources)),
            "writers": ", ".join(sorted({source.writer for source in sources})),
            "units": str(fit.units),
        },
        temperature=fit.temperature,
        weight=fit.weight,
    )


def _show(fit: JudgeFit, model: str, asked: int, unanswered: int) -> None:
    table = Table("reader", "log loss", "average precision of errors")
    for name, score in {**fit.readers, "both less facts": fit.added}.items():
        table.add_row(name, *_cells(score))
    print_table(table)
    table = Table("the judge alone", "ECE", "Brier", "log loss")
    for name, quality in fit.qualities.items():
        figures = (quality.error, quality.brier, quality.log_loss)
        table.add_row(name, *(f"{figure:.3f}" for figure in figures))
    print_table(table)
    show(f"{model}: temperature {fit.temperature:g}, weight {fit.weight:g}")
    show(f"{asked} units asked, {fit.units} answered, {unanswered} not; {fit.left_out} left out in turn")
    low, high = fit.added.log_loss_interval
    if low > 0:
        show("the judge does harm beside the facts: its log loss is higher with it; use another model")
    elif high >= 0:
        show("these labels do not show that the judge adds anything: the interval of the log loss includes 0")


def _cells(score: ReaderScore) -> tuple[str, str]:
    losses, precisions = score.log_loss_interval, score.average_precision_interval
    return (
        f"{score.log_loss:.3f} [{losses[0]:.3f}, {losses[1]:.3f}]",
        f"{score.average_precision:.2f} [{precisions[0]:.2f}, {precisions[1]:.2f}]",
    )


if __name__ == "__main__":
    main(app, "judge")
