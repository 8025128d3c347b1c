"""`python -m calibration.verbs.selector`: fit how far the selector's probabilities hold."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from action_selector.choose.calibration import FORMAT, KIND, SelectorCalibration
from action_selector.choose.probability_scaling import ScalingMethod
from calibration.scalers import reliability_table
from calibration.selector_fit import CHOSEN, SelectorFit, SelectorMeasured, fit_selector, measure_selector
from calibration.selector_labels import SelectorLabels, read_choices
from norm_core.records.json_codec import sha256_of, to_plain
from norm_core.runtime.artefact import resolve_artefact_path, write_artefact
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.wording import count_of
from sim_replays.verbs.suite_runs import import_inspect
from tactful_cli.console import complain, err, print_json, print_table, show
from tactful_cli.main import main
from tactful_cli.verb_options import AsJson, make_app

if TYPE_CHECKING:
    from sim_replays.evals.logs import RobotRun

app = make_app()


@app.command()
def calibrate(
    runs: Annotated[list[Path], typer.Argument(metavar="LOG...", help="Logs of `bench run` by one selector.")],
    write: Annotated[
        str, typer.Option("--write", metavar="NAME", help="Write the calibration: a bare name, or a file.")
    ] = "",
    coverage: Annotated[
        list[float] | None,
        typer.Option(min=0.5, max=0.99, help="Share of cases in which a set holds the right option; repeatable."),
    ] = None,
    control: Annotated[
        list[Path] | None,
        typer.Option(metavar="LOG", help="Log of a control (blind, swapped others) to show beside; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit how far the selector's probabilities hold, and measure it on images that are left out."""
    import_inspect()
    from sim_replays.evals.logs import read_robot_run  # noqa: PLC0415  only where inspect_ai is

    answered = [read_robot_run(path) for path in runs]
    labels = read_choices(answered)
    controls = {run.name: read_choices([run]) for run in map(read_robot_run, control or ())}
    if len(controls) < len(control or ()):
        raise TactfulError("--control: two runs have the same name; rename the folder of one")
    if labels.without_model:
        complain(f"{count_of(labels.without_model, 'answer')} of similarity, where the model failed, are left out")
    labels_by_name = {answered[0].name: labels, **{f"control: {name}": control for name, control in controls.items()}}
    coverages = tuple(coverage or (0.8, 0.9, 0.95))
    measured = {
        name: measure_selector(choice_labels.choices, coverages) for name, choice_labels in labels_by_name.items()
    }
    fit = fit_selector(labels.choices)
    if as_json:
        print_json(
            {"runs": {name: _plain(scores) for name, scores in measured.items()}, "fit": to_plain(_summary(fit))}
        )
    else:
        for name, scores in measured.items():
            _show(name, scores)
        show(f"fitted on all choices: {_summary(fit)}")
    if write:
        path = resolve_artefact_path(write)
        write_artefact(_artefact(fit, labels, answered), path)
        err.print(f"{path} was written; name it in the selector's setting: calibration: {write}")


def _artefact(fit: SelectorFit, labels: SelectorLabels, runs: "Sequence[RobotRun]") -> SelectorCalibration:
    return SelectorCalibration(
        kind=KIND,
        format=FORMAT,
        made_on=date.today().isoformat(),
        made_with=labels.made_with,
        fitted_on={
            "runs": ", ".join(run.name for run in runs),
            "data": ", ".join(sorted({run.data_sha256 for run in runs})),
            "choices": str(len(labels.choices)),
            "labels": sha256_of(
                sorted((*choice.labelled.probabilities, choice.labelled.right) for choice in labels.choices)
            ),
        },
        scaling=fit.scaling,
        masses=fit.masses,
        masses_by_count=fit.masses_by_count,
    )


def _summary(fit: SelectorFit) -> dict[str, object]:
    scaling = fit.scaling
    by_count = {str(count): round(value, 2) for count, value in scaling.temperature_by_count.items()}
    return {
        "method": scaling.method.value,
        "temperature": round(scaling.temperature, 2),
        "temperature_by_count": by_count,
        "sets_by_count": sorted(fit.masses_by_count),
    }


def _plain(measured: SelectorMeasured) -> dict[str, object]:
    """Return the figures without the points of curves and bins."""
    qualities = {
        name: {
            "error": quality.error,
            "adaptive_error": quality.adaptive_error,
            "brier": quality.brier,
            "log_loss": quality.log_loss,
            "area": quality.curve.area,
            "gain": to_plain(quality.gain),
        }
        for name, quality in measured.qualities.items()
    }
    return {
        "choices": measured.choices,
        "groups": measured.groups,
        "accuracy": to_plain(measured.accuracy),
        "qualities": qualities,
        "gain_by_count": to_plain(measured.gain_by_count),
        "methods": measured.methods,
        "sets": [to_plain(option_set) for option_set in measured.sets],
    }


def _show(name: str, measured: SelectorMeasured) -> None:
    table = Table(
        "scaling", "ECE", "adaptive\nECE", "Brier", "log loss", "area\nof risk", "80 % answered:\npoints gained",
        title=f"{name}: {measured.choices} choices of {measured.groups} images, right {measured.accuracy}",
    )  # fmt: skip
    for method, quality in measured.qualities.items():
        table.add_row(
            method,
            f"{quality.error:.3f}",
            f"{quality.adaptive_error:.3f}",
            f"{quality.brier:.3f}",
            f"{quality.log_loss:.3f}",
            f"{quality.curve.area:.3f}",
            str(quality.gain),
        )
    table.add_row("fewest options left first", *[""] * 5, str(measured.gain_by_count))
    print_table(table)
    for title, method in (("before", ScalingMethod.NONE.value), ("after", CHOSEN)):
        print_table(reliability_table(title, measured.qualities[method].bins))
    table = Table("coverage", "one sum for", "held", "size", "one option", "held by number of options")
    for sets in measured.sets:
        table.add_row(
            f"{100 * sets.stated:g} %",
            "each number" if sets.by_count else "all",
            str(sets.held),
            f"{sets.size:.2f}",
            str(sets.sure),
            "; ".join(f"{count}: {figure.value:.0f}" for count, figure in sets.held_of_count.items()),
        )
    print_table(table)
    chosen = ", ".join(f"{method} in {count}" for method, count in measured.methods.items())
    show(f"measured on images that were left out; of the folds, {chosen}")


if __name__ == "__main__":
    main(app, "selector")
