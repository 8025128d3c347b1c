"""`tactful calibrate thresholds`: fit a site's thresholds to its target on labelled bags, and say what they cost."""

import math
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from calibration.session_flags import Bars, LabelledError, LabelledSession, RaisedError, coded_errors
from calibration.threshold_fit import CONFIDENCE, MeasuredBars, ThresholdFit, ThresholdTarget, fit_thresholds
from norm_core.records.json_codec import sha256_of, to_plain
from norm_core.records.record import record
from norm_core.runtime.artefact import resolve_artefact_path, write_artefact
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of, to_words
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.site_thresholds import FORMAT, KIND, SiteThresholds, hash_parts
from norm_monitor.assessment.unit_model import Sensitivity
from norm_monitor.replay.flag_runs import S_PER_HOUR, BagFlags
from norm_monitor.session_log.study_folder import Study
from tactful_cli.console import complain, err, print_json, print_table, show
from tactful_cli.flag_watch import BagWatch, SenseOptions, shipped_parts
from tactful_cli.verb_options import AsJson, make_app, with_options

app = make_app()

# Every error from this probability on is raised, so that any threshold above it can be tried.
_EVERYTHING = FusionConfig(min_probability=("error=0.01",), max_per_attribute=1000)
_ROWS = 8  # of the path from strict to lax thresholds, in the table


@record
class _Labels:
    bag: Path
    errors: tuple[LabelledError, ...]
    contested_ns: tuple[int, ...] = ()


@app.command()
@with_options
def calibrate(
    studies: Annotated[
        list[Path], typer.Argument(metavar="STUDY", help="Folders of studies whose sessions are coded.")
    ],
    *,
    rate: Annotated[
        float | None, typer.Option("--false-errors-per-hour", help="The most false errors an hour that you accept.")
    ] = None,
    precision: Annotated[
        float | None, typer.Option(help="The least share of flagged errors that coders bear out.")
    ] = None,
    senses: SenseOptions,
    folder: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of the run; an interrupted run resumes.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed that draws which sessions shape the thresholds.")] = 0,
    write: Annotated[
        str, typer.Option("--write", metavar="NAME", help="Write the thresholds, for fusion.operating_point.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Fit the thresholds of your site to a target, on bags that your coders labelled."""
    target = ThresholdTarget(false_errors_per_hour=rate, precision=precision)
    _check(target)
    labelled = _each_once([*_of_studies(studies)])
    if not labelled:
        raise TactfulError("no session of these is coded and names its bag; see study status")
    options = senses.for_flags(fusion=_EVERYTHING)
    watch = BagWatch(options, {name: recording.bag for name, recording in labelled.items()}, folder, is_alone=False)
    sessions = [_session(result, labelled[result.bag]) for result in watch if not result.problem]
    usual = shipped_parts()[0].operating_points[Sensitivity.BALANCED].error
    fit = fit_thresholds(sessions, target, Bars(rest=usual), seed)
    if as_json:
        print_json(to_plain(fit))
    else:
        _show(fit, sessions)
    if fit.chosen is None:
        raise TactfulError(f"no thresholds hold the target ({target}) on these sessions; {_missing(fit)}")
    if write:
        path = resolve_artefact_path(write)
        write_artefact(_artefact(fit, fit.chosen, sessions), path)
        err.print(f"{path} was written; set fusion.operating_point: {write} in the monitor", soft_wrap=True)


def _check(target: ThresholdTarget) -> None:
    rate, precision = target.false_errors_per_hour, target.precision
    if (rate is None) is (precision is None):
        raise TactfulError("name one target: --false-errors-per-hour, or --precision")
    if rate is not None and not (math.isfinite(rate) and rate > 0):
        raise TactfulError(f"--false-errors-per-hour {rate:g}: give a number above 0")
    if precision is not None and not 0 < precision < 1:
        raise TactfulError(f"--precision {precision:g}: give a share between 0 and 1, such as 0.8")


def _each_once(sources: Sequence[tuple[str, _Labels]]) -> dict[str, _Labels]:
    """Return labels by name; raise TactfulError where a name or a bag would count twice."""
    names: dict[str, _Labels] = {}
    bags: dict[Path, str] = {}
    for name, labels in sources:
        if name in names:
            raise TactfulError(f"{name}: is in {names[name].bag} and {labels.bag}; give one study another name")
        if first := bags.get(labels.bag.resolve()):
            raise TactfulError(f"{labels.bag}: is named twice, by {first} and {name}; leave out one")
        names[name], bags[labels.bag.resolve()] = labels, name
    return names


def _of_studies(folders: Sequence[Path]) -> Iterator[tuple[str, _Labels]]:
    """Yield the coded sessions of studies that name their bag; say which are left out, and why."""
    for folder in folders:
        study = Study(folder)
        for name, planned in study.file.sessions.items():
            shown = name if len(folders) == 1 else f"{study.file.study}/{name}"
            if not planned.bag:
                complain(f"{shown}: left out: study.yaml names no bag of it; add sessions.{name}.bag")
                continue
            recording = study.recording_of(name)
            if recording.missing:
                complain(f"{shown}: left out: {recording.missing}")
                continue
            if not recording.coders:
                complain(f"{shown}: left out: nobody coded it; import a coding with {PROGRAM} study import")
                continue
            coded = coded_errors(recording)
            if coded.contested_ns:
                complain(
                    f"{shown}: {count_of(len(coded.contested_ns), 'moment')} left out, as the coders disagree there; "
                    "settle them on the page of the coders' comparison"
                )
            bag = study.folder / planned.bag
            yield shown, _Labels(bag=bag, errors=coded.errors, contested_ns=coded.contested_ns)


def _session(result: BagFlags, labels: _Labels) -> LabelledSession:
    end_ns = result.start_ns + round(result.length_s * 1e9)
    if outside := [error for error in labels.errors if not result.start_ns <= error.onset_ns <= end_ns]:
        raise TactfulError(
            f"{result.bag}: {count_of(len(outside), 'label')} lie outside {labels.bag}; is this the bag that was coded?"
        )
    if any(not math.isfinite(flag.probability) for flag in result.errors):
        raise TactfulError(f"{result.bag}: a probability is no number; fit the weights anew, or use the shipped ones")
    return LabelledSession(
        name=result.bag,
        hours=result.length_s / S_PER_HOUR,
        errors=labels.errors,
        raised=tuple(
            RaisedError(onset_ns=flag.onset_ns, probability=flag.probability, attributes=flag.attributes)
            for flag in result.errors
        ),
        contested_ns=labels.contested_ns,
    )


def _artefact(fit: ThresholdFit, chosen: MeasuredBars, sessions: Sequence[LabelledSession]) -> SiteThresholds:
    return SiteThresholds(
        kind=KIND,
        format=FORMAT,
        made_on=date.today().isoformat(),
        made_with=hash_parts(*shipped_parts()),
        fitted_on={
            "labels": sha256_of([to_plain(session) for session in sessions]),
            "sessions": str(len(sessions)),
            "errors": str(sum(len(session.errors) for session in sessions)),
            "target": str(fit.target),
        },
        by_attribute=chosen.bars.by_attribute,
        rest=chosen.bars.rest,
        expectation=f"thresholds of this site: {_sentence(fit, chosen)}",
    )


def _sentence(fit: ThresholdFit, bars: MeasuredBars) -> str:
    rate = f"{bars.estimate:.2g} false errors an hour (at most {bars.bound:.2g}"
    if fit.target.precision is not None:
        rate = f"precision {1 - bars.estimate:.2f} (at least {1 - bars.bound:.2f}"
    low, high = bars.recall_interval
    return (
        f"expect {rate} with about {CONFIDENCE:.0%} confidence) and recall {bars.recall:.2f} [{low:.2f}, {high:.2f}], "
        f"as measured on {count_of(len(fit.testing), 'session')}"
    )


def _missing(fit: ThresholdFit) -> str:
    if fit.more is None:
        return "choose a laxer target: the errors that the monitor raises here are too often false for this one"
    return (
        f"about {count_of(fit.more.sessions, 'more session')} like these ({fit.more.hours:.1f} h, "
        f"{count_of(fit.more.errors, 'labelled error')}) would narrow the bound to the target at a recall of "
        f"{fit.more.recall:.2f}"
    )


def _show(fit: ThresholdFit, sessions: Sequence[LabelledSession]) -> None:
    hours = sum(session.hours for session in sessions)
    errors = sum(len(session.errors) for session in sessions)
    show(
        f"{count_of(len(sessions), 'session')}, {hours:.1f} h, {count_of(errors, 'labelled error')}; "
        f"{len(fit.learning)} shape the thresholds, {len(fit.testing)} test them. Target: {fit.target}"
    )
    table = Table("", "flags", "false", "false an hour", "precision", "recall")
    path = {f"others from {bars.bars.rest:.2f}": bars for bars in fit.path[:: max(1, len(fit.path) // _ROWS)]}
    for name, one in {"balanced, as shipped": fit.before, "thresholds of the site": fit.chosen, **path}.items():
        if one:
            flags = one.false + one.right
            table.add_row(
                name,
                str(flags),
                str(one.false),
                f"{one.false / one.hours:.1f}",
                f"{one.right / flags:.2f}" if flags else "–",
                f"{one.recall:.2f} [{one.recall_interval[0]:.2f}, {one.recall_interval[1]:.2f}]",
            )
    print_table(table)
    if fit.chosen:
        bars = {to_words(attribute): fit.chosen.bars.of(attribute) for attribute in fit.own} | {
            "all others": fit.chosen.bars.rest
        }
        show("thresholds: " + ", ".join(f"{name} {least:.2f}" for name, least in bars.items()))
        show(_sentence(fit, fit.chosen))
        if fit.more:
            show(f"laxer thresholds: {_missing(fit)}")
