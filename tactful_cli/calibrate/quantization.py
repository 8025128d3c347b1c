"""`tactful calibrate quantization`: ask two models the judge's question about the same units, and compare."""

from collections.abc import Sequence
from functools import partial
from html import escape
from itertools import cycle
from pathlib import Path

import numpy as np
import typer
from rich.progress import track
from rich.table import Table

from calibration.bag_questions import BagQuestion, coded_events, questions_of
from calibration.model_process import ModelProcess, TimedScores, model_processes
from calibration.quantization_check import (
    AnswerCalibration,
    ComparedUnit,
    Flip,
    ModelAnswer,
    QuantizationFigures,
    Result,
    Share,
    check_classes,
    differences,
    measure_pair,
)
from norm_core.bags.topic_names import TopicNames
from norm_core.engines.engine_registry import model_info_of
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EngineKind, Manifest
from norm_core.records.json_codec import to_plain
from norm_core.records.record import record
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from norm_monitor.fusion.fusion import FusionConfig
from norm_monitor.judge.judge import JudgeConfig, images_for
from norm_monitor.monitor import Monitor
from norm_monitor.senses.speech.whisper import WhisperConfig
from norm_monitor.units.unit_view import UnitView
from sim_replays.flag_runs.bag_flags import find_bags
from sim_replays.runs.results.calibration import CalibrationFigures
from sim_replays.runs.results.plot import SIDE, Panel, calibration_panel, draw_panels, zero_to_one
from tactful_cli.console import complain, err, out, print_json, print_table
from tactful_cli.flag_watch import BagWatch, FlagOptions

_CALLS_PER_HOUR = 36_000.0  # no unit is left out
_MOST_FAILURES = 8  # units without an answer in a row, after which the asking ends
_NO_FIGURE = "–"


@record
class QuantizationOptions:
    """What is compared on which bags, and against which tolerance."""

    bags: tuple[Path, ...]
    models: tuple[str, str]
    labels: tuple[Path, ...]
    tolerance: float
    limit: int
    control: int
    examples: int
    seed: int
    robot_topics: tuple[str, ...]
    words_topics: tuple[str, ...]
    whisper: WhisperConfig
    plot: Path | None


@record
class ControlFigures:
    """The first model asked twice: how much of a difference is not due to the other model."""

    units: int
    flips: int
    largest_shift: float


@record
class Memory:
    """A model's peak memory and where the figure is from; None if nobody states it."""

    peak_mb: float | None
    source: str


def check_quantization(options: QuantizationOptions, as_json: bool) -> None:
    """Ask, compare and print; exit with 1 unless the tolerance is met."""
    catalogue = Catalogue()
    manifests = catalogue.manifest(options.models[0]), catalogue.manifest(options.models[1])
    _warn(manifests)
    questions = _questions(options, manifests)
    with model_processes(options.models) as models:
        units, answers = _ask(questions, models)
        control = _control(questions[: options.control], units, models[0])
        memory = _memory(manifests[0], models[0]), _memory(manifests[1], models[1])
    figures = measure_pair(units, answers, options.tolerance, labelled=bool(options.labels))
    if options.plot:
        write_atomic(options.plot, _drawn(options.models, units, answers, figures))
    if as_json:
        print_json(
            {
                "models": options.models,
                "answers": answers,
                **to_plain(figures),
                "control": to_plain(control) if control else None,
                "memory": [to_plain(one) for one in memory],
            }
        )
    else:
        _show(options, figures, control, memory)
    if figures.verdict.result is not Result.MET:
        raise typer.Exit(1)


def _warn(manifests: tuple[Manifest, Manifest]) -> None:
    first, second = manifests
    if first.name == second.name:
        err.print(f"--models: both are {first.name}: this is a control, in which no answer should change")
    elif found := differences(first, second):
        complain(
            f"--models: {first.name} and {second.name} seem to be more than two quantizations of one model, so that "
            f"their difference is not that of a quantization: {'; '.join(found)}; compare manifests that differ in "
            "quantization and file alone"
        )


def _questions(options: QuantizationOptions, manifests: tuple[Manifest, Manifest]) -> list[BagQuestion]:
    config = JudgeConfig()
    shown = [images_for(model_info_of(manifest), config) for manifest in manifests]
    if shown[0] != shown[1]:
        complain(f"--models: one takes {max(shown)} pictures, and the other {min(shown)}; both are shown {min(shown)}")
    bags = find_bags(options.bags)
    labels = _labels_by_bag(options.labels, list(bags))
    flag_options = FlagOptions(
        topic="",
        robot_topics=options.robot_topics,
        words_topics=options.words_topics,
        names=TopicNames.parse(()),
        whisper=options.whisper,
        fusion=FusionConfig(),
    )
    watch = BagWatch(flag_options, bags, None, is_alone=len(bags) == 1)
    watch.calls_per_hour = _CALLS_PER_HOUR
    views: list[UnitView] = []

    def keep(monitor: Monitor) -> None:
        views.extend(monitor.units_to_judge())

    watch.on_step = keep
    questions: list[BagQuestion] = []
    for result in watch:
        events = coded_events(labels[result.bag], bags[result.bag]) if labels else ()
        questions += questions_of(result.bag, views, min(shown), events)
        views.clear()
    if not questions:
        raise TactfulError(
            f"{', '.join(map(str, options.bags))}: no unit that a judge is asked about is in there; name bags in which "
            f"the robot and people talk ({PROGRAM} flags BAG shows what is heard)"
        )
    if options.limit and options.limit < len(questions):
        places = sorted(np.random.default_rng(options.seed).permutation(len(questions))[: options.limit])
        questions = [questions[place] for place in places]
    if labels:
        check_classes([one.polarity for one in questions], "of these bags")
    return questions


def _labels_by_bag(labels: tuple[Path, ...], bags: Sequence[str]) -> dict[str, Path]:
    if len(labels) == 1 and labels[0].is_dir():
        return dict.fromkeys(bags, labels[0])
    if labels and len(labels) != len(bags):
        raise TactfulError(
            f"--labels: {count_of(len(labels), 'file')} for {count_of(len(bags), 'bag')}; give one for each bag in the "
            "order of the bags, or one folder with BAG.truth.json for each"
        )
    return dict(zip(bags, labels, strict=False))


def _ask(
    questions: Sequence[BagQuestion], models: tuple[ModelProcess, ModelProcess]
) -> tuple[list[ComparedUnit], tuple[str, ...]]:
    """Ask both about each unit, the one that is first by turns; return the answers in English too."""
    units: list[ComparedUnit] = []
    in_a_row = [0, 0]
    shown = f"asking {models[0].name} and {models[1].name}"
    for one, order in zip(track(questions, shown, console=err), cycle(((0, 1), (1, 0))), strict=False):
        replies = {side: _reply(models[side].ask(one.prompt, one.question)) for side in order}
        units.append(
            ComparedUnit(
                bag=one.bag,
                unit_id=one.unit_id,
                words=one.words,
                polarity=one.polarity,
                replies=(replies[0], replies[1]),
            )
        )
        for side, model in enumerate(models):
            in_a_row[side] = 0 if replies[side].is_answer else in_a_row[side] + 1
            if in_a_row[side] == _MOST_FAILURES:
                raise TactfulError(
                    f"{model.name}: gave no answer to {_MOST_FAILURES} units in a row "
                    f"({replies[side].outcome.value}: {replies[side].reason}); quantize it again, then repeat"
                )
    return units, questions[0].question.options


def _reply(timed: TimedScores) -> ModelAnswer:
    scores = timed.scores
    return ModelAnswer(
        outcome=scores.outcome, reason=scores.reason, probabilities=scores.probabilities, seconds=timed.seconds
    )


def _control(
    questions: Sequence[BagQuestion], units: Sequence[ComparedUnit], model: ModelProcess
) -> ControlFigures | None:
    again = [_reply(model.ask(one.prompt, one.question)) for one in questions]
    pairs = [(one.replies[0], two) for one, two in zip(units, again, strict=False)]
    pairs = [(one, two) for one, two in pairs if one.is_answer and two.is_answer]
    if not pairs:
        return None
    moved = [np.subtract(one.probabilities, two.probabilities) for one, two in pairs]
    flips = sum(one.choice != two.choice for one, two in pairs)
    return ControlFigures(units=len(pairs), flips=flips, largest_shift=float(np.abs(moved).max()))


def _memory(manifest: Manifest, model: ModelProcess) -> Memory:
    if manifest.engine is not EngineKind.OPENAI:
        return Memory(peak_mb=model.peak_mb(), source="main memory of its own process beyond the imports")
    stated = manifest.memory
    return Memory(peak_mb=stated.peak_mb if stated else None, source="its manifest, as a server runs it")


def _show(
    options: QuantizationOptions,
    figures: QuantizationFigures,
    control: ControlFigures | None,
    memory: tuple[Memory, Memory],
) -> None:
    first, second = options.models
    for flip in figures.flips[: options.examples]:
        _show_flip(flip, options.models)
    table = Table("", first, second)
    table.add_row("units asked", *[str(figures.units)] * 2)
    table.add_row("without an answer", *(_counts(one) for one in figures.unanswered))
    if figures.calibration:
        for name in ("accuracy", "expected_calibration_error", "brier"):
            table.add_row(name.replace("_", " "), *(f"{getattr(one, name):.3f}" for one in figures.calibration))
        table.add_row("control: accuracy of the commonest label", *[f"{figures.commonest:.3f}"] * 2)
    table.add_row("seconds a unit (median)", *(f"{one:.3f}" for one in figures.seconds))
    table.add_row("peak memory", *(f"{one.peak_mb:.0f} MB" if one.peak_mb else _NO_FIGURE for one in memory))
    print_table(table)
    out.print(f"equal answers: {_share(figures.agreement)}", soft_wrap=True)
    out.print(f"changed or lost answers: {_share(figures.changed)}", soft_wrap=True)
    if shift := figures.shift:
        out.print(
            f"probabilities moved by {shift.mean:.3f} on average, by {shift.most:.3f} at most; "
            f"KL divergence {shift.divergence:.4f} nats",
            soft_wrap=True,
        )
    if speed := figures.speed:
        low, high = speed.interval
        out.print(f"{second} is {speed.value:.2f} [{low:.2f}, {high:.2f}] times as fast", soft_wrap=True)
    if control:
        out.print(
            f"control, {first} asked twice: {count_of(control.flips, 'changed answer')} in "
            f"{count_of(control.units, 'unit')}, moved by {control.largest_shift:.3f} at most",
            soft_wrap=True,
        )
    out.print(_verdict(figures), soft_wrap=True)


def _show_flip(flip: Flip, models: tuple[str, str]) -> None:
    out.print(f"{flip.bag}: {flip.words}", markup=False, soft_wrap=True)
    for model, answer, probabilities in zip(models, flip.answers, flip.probabilities, strict=True):
        shown = ", ".join(f"{one:.2f}" for one in probabilities)
        out.print(f"    {model}: {answer} ({shown})", markup=False, soft_wrap=True)


def _counts(unanswered: dict[str, int]) -> str:
    return ", ".join(f"{outcome} {count}" for outcome, count in unanswered.items()) or "0"


def _share(share: Share | None) -> str:
    if share is None:
        return _NO_FIGURE
    low, high = share.interval
    return f"{share.units} of {share.of}, {100 * share.value:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def _verdict(figures: QuantizationFigures) -> str:
    verdict = figures.verdict
    bound = f"at most {100 * verdict.tolerance:g} % of answers may change"
    if verdict.result is Result.MET:
        return f"met: {bound}, and the whole interval is below"
    if verdict.result is Result.NOT_MET:
        return f"not met: {bound}, and the whole interval is above"
    if figures.changed is None:
        return (
            f"cannot tell: {bound}, and neither model answered; see the outcomes above, and try {PROGRAM} models bench"
        )
    if verdict.units_missing is None:
        return f"cannot tell: {bound}, and what was found is as likely above as below; raise or lower --tolerance"
    more = count_of(verdict.units_missing, "more unit is", "more units are")
    return f"cannot tell: {bound}, and the interval holds that; if the share stays, {more} needed: name more bags"


def _drawn(
    models: tuple[str, str], units: Sequence[ComparedUnit], answers: Sequence[str], figures: QuantizationFigures
) -> str:
    panels: list[Panel] = [partial(_scatter, units, option, answer) for option, answer in enumerate(answers)]
    for model, one in zip(models, figures.calibration or (), strict=False):
        panels.append(partial(calibration_panel, _calibration(model, one, figures.answered_by_both)))
    return draw_panels(
        f"{models[0]} (across) and {models[1]} (upwards)", "probabilities of both models", panels, len(answers)
    )


def _calibration(model: str, one: AnswerCalibration, count: int) -> CalibrationFigures:
    return CalibrationFigures(task=model, count=count, error=100 * one.expected_calibration_error, bins=one.bins)


def _scatter(units: Sequence[ComparedUnit], option: int, answer: str, x: int, y: int) -> str:
    """Draw a point a unit: the first model's probability of an answer across, the second's upwards."""
    parts = [
        f'<text x="{x + SIDE / 2:.0f}" y="{y - 10}" text-anchor="middle">probability of {escape(answer)}</text>',
        f'<rect class="axis" x="{x}" y="{y}" width="{SIDE}" height="{SIDE}"/>',
        f'<line class="ideal" x1="{x}" y1="{y + SIDE}" x2="{x + SIDE}" y2="{y}" stroke-width="2"/>',
    ]
    for one in units:
        first, second = one.replies
        if first.is_answer and second.is_answer:
            left, high = first.probabilities[option] * SIDE, second.probabilities[option] * SIDE
            parts.append(
                f'<circle class="bar" cx="{x + left:.1f}" cy="{y + SIDE - high:.1f}" r="3" fill-opacity="0.6">'
                f"<title>{escape(one.words)}</title></circle>"
            )
    return "\n".join([*parts, *zero_to_one(x, y)])
