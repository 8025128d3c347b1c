"""`tactful calibrate budget`: measure what this machine can carry, and write it into a profile."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from norm_core.engines.engine import Engine
from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import Task
from norm_core.models.store import Store
from norm_core.records.record import record
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.config import ConfigError
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from norm_monitor.judge.judge import JudgeConfig, images_for
from tactful_cli.calibrate.budget_check import compare
from tactful_cli.calibrate.budget_parts import (
    JudgePart,
    LoadPart,
    PartTiming,
    PicturePart,
    TranscriptionPart,
    WindowPart,
    alone,
    picture_in,
    shipped_pictures,
    shipped_sound,
    sound_in,
)
from tactful_cli.calibrate.budget_plan import (
    BudgetPlan,
    BudgetWishes,
    JudgeTrial,
    fits,
    propose,
    senses_p95_ms,
)
from tactful_cli.calibrate.budget_report import MeasuredBudget, forecast_of, plain, show
from tactful_cli.calibrate.part_process import PartProcess, running, together
from tactful_cli.console import err, print_json
from tactful_cli.up.profile import Profile, load
from tactful_cli.up.ros_tools import effective_parameters
from tactful_cli.up.runtime_settings import merged

MOST_HEADROOM = 0.9
_SHORTEST_WINDOW_S = 5.0


@record
class BudgetOptions:
    """What is measured on what, and where the profile goes."""

    profile: str
    model: str
    try_installed: bool
    headroom: float
    deadline_s: float | None
    seconds: float
    repeats: int
    sound: Path | None
    picture: Path | None
    write: Path | None
    check: Path | None


def measure_budget(options: BudgetOptions, as_json: bool) -> None:
    """Measure, propose, print, write the profile and compare with a bag if asked."""
    _check(options)
    profile = load(options.profile)
    effective = effective_parameters(profile)
    if effective.problems:
        raise TactfulError(f"{profile.source}: {'; '.join(effective.problems)}")
    parameters = effective.parameters
    wishes = _wishes(parameters, options)
    measured = _measure(parameters, options, wishes)
    plan = propose(measured.senses, measured.cores_used, measured.trials, wishes)
    written = _merged(profile, plan, writes_model=bool(_judge_of(parameters, options)))
    if plan.model and not _judge_of(parameters, options):
        err.print(f"{plan.model} fits as judge; --model {plan.model} puts it into the profile", soft_wrap=True)
    if options.write:
        write_atomic(options.write, _text(profile, plan, written))
        err.print(f"{options.write} was written; start it with {PROGRAM} up {options.write}", soft_wrap=True)
    compared = compare(options.check, written, plan.forecast_p95_ms) if options.check else ()
    if as_json:
        print_json(plain(measured, plan, wishes, compared))
    else:
        show(measured, plan, wishes, compared)


def _check(options: BudgetOptions) -> None:
    if not 0 <= options.headroom <= MOST_HEADROOM:  # also refuses NaN
        raise TactfulError(f"--headroom: {options.headroom:g} is not from 0 to {MOST_HEADROOM:g}; 0.3 leaves 30 % free")
    if options.deadline_s is not None and not 0 < options.deadline_s <= 600:
        raise TactfulError(f"--deadline: {options.deadline_s:g} is not above 0 and up to 600 s; such as 4")
    if options.write and options.write.suffix not in {".yaml", ".yml"}:
        raise TactfulError(f"--write: {options.write}: name the profile to write, such as my_robot.yaml")
    if options.write and options.write.exists():
        raise TactfulError(f"--write: {options.write} exists already; name another file, or remove it")
    if options.check and not options.check.is_dir():
        raise TactfulError(f"--check: {options.check}: is no folder of a bag; check the path")


def _judge_of(parameters: Mapping[str, Any], options: BudgetOptions) -> str:
    return options.model or str(parameters.get("monitor", {}).get("judge", {}).get("model", ""))


def _wishes(parameters: Mapping[str, Any], options: BudgetOptions) -> BudgetWishes:
    monitor = parameters.get("monitor")
    if monitor is None:
        raise TactfulError(f"--profile: {options.profile} has no section /tactful/monitor; add one, if only with {{}}")
    return BudgetWishes(
        deadline_s=options.deadline_s or monitor["judge"]["deadline_s"],
        headroom=options.headroom,
        cores=len(os.sched_getaffinity(0)),
        keep_hz=parameters.get("camera", {}).get("keep_hz", 1.0),
        step_s=monitor["windows"]["step_s"],
        calls_per_hour=monitor["judge"]["calls_per_hour"],
    )


def _measure(parameters: Mapping[str, Any], options: BudgetOptions, wishes: BudgetWishes) -> MeasuredBudget:
    named = _judge_of(parameters, options)
    if named:
        Catalogue().manifest(named)  # an unknown name is refused before anything is measured
    with ExitStack() as stack:
        parts = {part.name: part for part in _processes(parameters, options, stack)}
        return _measure_parts(parts, parameters, options, wishes)


def _processes(parameters: Mapping[str, Any], options: BudgetOptions, stack: ExitStack) -> Iterator[PartProcess]:
    """Start a process for each part that the profile runs; the stack ends them."""
    monitor = parameters["monitor"]
    made: list[tuple[Callable[..., LoadPart], *tuple[object, ...]]] = [
        (WindowPart, monitor, monitor["windows"]["length_s"])
    ]
    if "camera" in parameters:
        pictures = [picture_in(options.picture)] if options.picture else shipped_pictures()
        made.append((PicturePart, parameters["camera"], pictures))
    if "ears" in parameters and parameters["ears"]["words_from"] == "whisper":
        sound = sound_in(options.sound) if options.sound else shipped_sound()
        made.append((TranscriptionPart, parameters["ears"], sound))
    for make, *arguments in made:
        part = PartProcess(make, *arguments)
        stack.callback(part.close)
        yield part


def _measure_parts(
    parts: Mapping[str, PartProcess], parameters: Mapping[str, Any], options: BudgetOptions, wishes: BudgetWishes
) -> MeasuredBudget:
    load_before = os.getloadavg()[0]
    every = list(parts.values())
    by_itself = {}
    for part in every:
        err.print(f"measuring {part.name} alone")
        by_itself[part.name] = PartTiming.of(alone(part, options.repeats))
    encoded = [float(parts[WindowPart.name].call("encode", number)) for number in range(options.repeats)]
    err.print(f"measuring all at the pace of a session, {options.seconds:g} s")
    taken_ms, cores_used = together(every, options.seconds)
    beside = {name: PartTiming.of(taken) for name, taken in taken_ms.items() if taken}
    senses = {name: forecast_of(timing, beside.get(name)) for name, timing in by_itself.items()}
    named = _judge_of(parameters, options)
    models = [named] if named else _installed() if options.try_installed else []
    trials, judge = _try_judges(
        models, parameters, every, options.repeats, lambda trial: fits(trial, senses_p95_ms(senses), wishes)
    )
    hears, heard = parts.get(TranscriptionPart.name), senses.get(TranscriptionPart.name)
    factor = hears.call("real_time_factor", heard.mean_ms) if hears and heard else None
    return MeasuredBudget(
        alone=by_itself,
        beside=beside,
        cores_used=cores_used,
        real_time_factor=factor,
        sentence=PartTiming.of(encoded),
        trials=tuple(trials),
        judge=judge,
        load=max(load_before, os.getloadavg()[0]),
    )


def _installed() -> list[str]:
    """Return the installed models that could judge, largest first."""
    catalogue, store = Catalogue(), Store()
    sizes: dict[str, float] = {}
    for name in catalogue.names():
        try:
            manifest = catalogue.manifest(name)
        except ConfigError as error:
            err.print(f"{name} is left out: {error}", soft_wrap=True)
            continue
        answers = manifest.task in {Task.LANGUAGE, Task.VISION_LANGUAGE} and not manifest.source.url
        if answers and store.found(manifest, catalogue.path(name).parent):
            sizes[name] = manifest.parameters_million or 0.0
    return sorted(sizes, key=lambda name: -sizes[name])


def _try_judges(
    models: Sequence[str],
    parameters: Mapping[str, Any],
    parts: Sequence[PartProcess],
    repeats: int,
    is_in_time: Callable[[JudgeTrial], bool],
) -> tuple[list[JudgeTrial], dict[str, Any]]:
    """Time models until one keeps the deadline; return the trials, and how fast that one reads."""
    trials: list[JudgeTrial] = []
    for model in models:
        try:
            engine = open_engine_by_name(model, WallClock())
        except TactfulError as error:
            if len(models) == 1:
                raise
            err.print(f"{model} is left out: {error}", soft_wrap=True)
            continue
        try:
            for pictures, length_s in _choices(engine, parameters):
                err.print(f"measuring {model} as judge with {count_of(pictures, 'picture')} of {length_s:g} s")
                config = _judge_config(parameters["monitor"]["judge"]).model_copy(update={"images": pictures})
                judge = JudgePart(engine, config, length_s)
                timing, reason = _time_beside(judge, parts, repeats)
                trials.append(
                    JudgeTrial(model=model, pictures=pictures, length_s=length_s, timing=timing, reason=reason)
                )
                if is_in_time(trials[-1]):
                    return trials, {name: judge.answers[-1][name] for name in ("read_tokens_per_s", "score_s")}
        finally:
            engine.close()
    return trials, {}


def _choices(engine: Engine, parameters: Mapping[str, Any]) -> Iterator[tuple[int, float]]:
    """Yield pictures and windows, the best first: fewer pictures before a shorter window."""
    monitor = parameters["monitor"]
    length_s = monitor["windows"]["length_s"]
    pictures = images_for(engine.model_info, _judge_config(monitor["judge"])) if "camera" in parameters else 0
    while pictures:
        yield pictures, length_s
        pictures //= 2
    yield 0, length_s
    if length_s / 2 >= _SHORTEST_WINDOW_S:
        yield 0, length_s / 2


def _time_beside(judge: JudgePart, parts: Sequence[PartProcess], repeats: int) -> tuple[PartTiming | None, str]:
    """Time a judge beside the senses; return why not where it gives no answer in its own deadline."""
    judge.once()  # the first answer is slow, and tells whether there is any
    taken_ms: list[float] = []
    with running(parts):
        while judge.answers[-1]["keeps_deadline"] and len(taken_ms) < repeats:
            taken_ms.append(judge.once())
    last = judge.answers[-1]
    return (PartTiming.of(taken_ms) if last["keeps_deadline"] else None), last["reason"]


def _judge_config(settings: Mapping[str, Any]) -> JudgeConfig:
    return JudgeConfig.model_validate({**settings, "calibration": "", "prompts_folder": ""})


def _merged(profile: Profile, plan: BudgetPlan, *, writes_model: bool) -> dict[str, dict[str, Any]]:
    """Return the profile's parameters with the proposal; a judge that nobody named is left out."""
    left_out = () if writes_model else ("judge.", "budget.judge", "windows.length_s")
    written = {}
    for node, values in profile.parameters.items():
        proposed = plan.settings.get(node, {})
        kept = {name: value for name, value in proposed.items() if not name.startswith(left_out)}
        written[node] = merged(values, kept)
    return written


def _text(profile: Profile, plan: BudgetPlan, parameters: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [
        f"# {profile.source.stem} with the budget of one machine, by {PROGRAM} calibrate budget on {date.today()}.",
        f"# Forecast p95 in ms: {', '.join(f'{name} {ms:.1f}' for name, ms in plan.forecast_p95_ms.items())}.",
        "# The status warns where a live p95 is above budget.p95_ms: the forecast with its headroom used up.",
        f"# The comments are in {profile.source.name}.",
    ]
    for node, values in parameters.items():
        section = {f"/tactful/{node}": {"ros__parameters": dict(values)}}
        lines += ["", yaml.safe_dump(section, sort_keys=False, allow_unicode=True).rstrip("\n")]
    return "\n".join(lines) + "\n"
